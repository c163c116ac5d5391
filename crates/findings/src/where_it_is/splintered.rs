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
        for node in (1..tree.count()).rev() {
            if sums[node] == 0 {
                continue;
            }
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

#[cfg(test)]
mod tests {
    use heapr_query::engine::{CodeTable, StackSource};
    use heapr_query::{FrameSink, SourceFrame, SymbolSource};
    use heapr_trace::{ModuleIndex, ProcessIndex, StackIndex, StackNode};

    use super::*;

    /// Stacks as (caller, number of the function); the first is the empty one.
    struct Stacks(Vec<(u32, u64)>);

    impl StackSource for Stacks {
        fn node_count(&self) -> u32 {
            self.0.len() as u32
        }

        fn node(&self, stack: StackIndex) -> StackNode {
            let (parent, function) = self.0[stack.0 as usize];
            StackNode {
                parent: StackIndex(parent),
                return_address_avma: function * 16 + 1,
                process: ProcessIndex(0),
                first_seen_ns: 0,
            }
        }

        fn parent(&self, stack: StackIndex) -> StackIndex {
            StackIndex(self.0[stack.0 as usize].0)
        }

        fn locate(&self, _process: ProcessIndex, avma: u64, _time_ns: u64) -> Option<(ModuleIndex, u64)> {
            Some((ModuleIndex(0), avma))
        }

        fn module_path(&self, _module: ModuleIndex) -> &str {
            "/app/program"
        }
    }

    struct Names;

    impl SymbolSource for Names {
        fn resolve(&mut self, _module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>) {
            for (number, &svma) in svmas.iter().enumerate() {
                let name = match svma / 16 {
                    1 => "main".to_owned(),
                    2 => "parse".to_owned(),
                    3 => "write".to_owned(),
                    other => format!("small{other}"),
                };
                sink(
                    number,
                    &[SourceFrame { symbol: Some(&name), file: None, line: None, is_inlined: false }],
                );
            }
        }
    }

    #[test]
    fn the_walk_ends_where_the_blocks_part_and_never_at_the_entry() {
        // main > parse > 20 x small, and main > write > 20 x small.
        let mut stacks = vec![(0, 0), (0, 1), (1, 2), (1, 3)];
        stacks.extend((0..40).map(|number| (2 + number % 2, 4 + u64::from(number))));
        let stacks = Stacks(stacks);
        let wanted = vec![true; stacks.0.len()];
        let tree = SymbolTree::build(&stacks, CodeTable::new(&[]), &mut Names, wanted);
        let own = OwnCode::default();
        let held = |bytes: [u64; 2]| {
            let each = (4..44_u32).map(move |stack| (stack, bytes[(stack % 2) as usize]));
            each.map(|(stack, bytes)| (tree.named(StackIndex(stack)), bytes)).collect::<Vec<_>>()
        };
        let name = |bytes: [u64; 2]| {
            let splinters = Splinters::new(&tree, held(bytes).into_iter());
            let whole = splinters.sums[0];
            assert_eq!(whole, 20 * (bytes[0] + bytes[1]));
            let found = heaviest_function(&tree, &own, &splinters, whole);
            found.and_then(|frame| tree.frames.symbol(frame)).map(str::to_owned)
        };
        assert_eq!(name([900, 100]), Some("parse".to_owned()));
        assert_eq!(name([100, 900]), Some("write".to_owned()));
    }
}
