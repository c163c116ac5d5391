//! Callers of blocks that many functions hold: the walk from the outermost frame to where the
//! blocks part.

use heapr_query::engine::{FrameId, NamedStack, SymbolTree};
use heapr_query::{OwnCode, Owner, plain_symbol};

/// Bytes of the stacks below each caller, and the caller's largest call.
pub(super) struct Splinters {
    sums: Vec<u64>,
    largest: Vec<NamedStack>,
}

impl Splinters {
    /// Sums the bytes of stacks.
    pub(super) fn new(tree: &SymbolTree, stacks: impl Iterator<Item = (NamedStack, u64)>) -> Self {
        let mut sums = vec![0_u64; tree.count()];
        let mut largest = vec![0; tree.count()];
        for (node, bytes) in stacks {
            sums[node as usize] = sums[node as usize].saturating_add(bytes);
        }
        // Callers have smaller numbers than the stacks that they call.
        for node in (1..tree.count()).rev().filter(|&node| sums[node] > 0).collect::<Vec<_>>() {
            let caller = tree.parent(node as NamedStack) as usize;
            sums[caller] = sums[caller].saturating_add(sums[node]);
            let known: NamedStack = largest[caller];
            if known == 0 || sums[node] > sums[known as usize] {
                largest[caller] = node as NamedStack;
            }
        }
        Self { sums, largest }
    }
}

/// Function where the heaviest path from the outermost frame parts. `whole`: all live bytes. `None`
/// if the path parts at once, or under the program's entry.
pub(super) fn heaviest_function(
    tree: &SymbolTree,
    own: &OwnCode,
    splinters: &Splinters,
    whole: u64,
) -> Option<FrameId> {
    let mut node = 0;
    loop {
        let next = splinters.largest[node as usize];
        let (held, of_next) = (splinters.sums[node as usize], splinters.sums[next as usize]);
        // A caller of most memory tells little: the walk goes on while a large part stays together.
        let is_too_much = held >= whole / 5 * 3 && of_next >= whole / 10;
        if next == 0 || (of_next < held / 2 && !is_too_much) {
            break;
        }
        node = next;
    }
    while node != 0 {
        let frame = tree.frame(node)?;
        let frames = &tree.frames;
        let (module, symbol) = (frames.module(frame), frames.symbol(frame));
        let owner = own.owner(module, symbol, frames.file(frame));
        if let Some(symbol) = symbol.filter(|_| owner != Owner::Runtime) {
            let plain = plain_symbol(symbol);
            let is_entry = plain == "main" || plain.ends_with("::main");
            return (!is_entry).then(|| frames.function(frame));
        }
        node = tree.parent(node);
    }
    None
}
