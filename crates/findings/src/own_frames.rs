//! Own frames of stacks: the code that each stack belongs to.

use heapr_query::engine::{FrameId, NamedStack, SymbolTree};
use heapr_query::{CullList, NAMED_WITHIN, OwnCode, Owner};

/// Own frame of a stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnOf {
    /// The function; `None`: unknown.
    pub(crate) frame: Option<FrameId>,
    /// Owner of the code.
    pub(crate) owner: Owner,
    /// Whether the function only waits for code to be loaded, by an `import` or the like.
    pub(crate) is_loading: bool,
}

impl OwnOf {
    const NONE: Self = Self { frame: None, owner: Owner::Runtime, is_loading: false };
}

/// Own frames by stack of the tree: the innermost frame of the program, or else of a library, or
/// else of the runtime. Frames that only allocate for others count only if no other frame exists.
/// Stacks that are neither in `wanted` nor callers of such stacks are not judged.
pub(crate) fn own_frames(
    tree: &SymbolTree,
    own: &OwnCode,
    wanted: impl Iterator<Item = NamedStack>,
) -> Vec<OwnOf> {
    let is_asked = with_callers(tree, wanted);
    let mut owners = Owners { tree, own, allocators: CullList::built_in(), known: Vec::new() };
    owners.known.resize(tree.frames.count(), None);
    let mut found: Vec<OwnOf> = vec![OwnOf::NONE; tree.count()];
    for stack in (1..tree.count()).filter(|&stack| is_asked[stack]) {
        let Some(frame) = tree.frame(stack as NamedStack) else { continue };
        let of_caller = found[tree.parent(stack as NamedStack) as usize];
        found[stack] = match owners.of(frame) {
            // Owners are ordered by precedence: the program's code owns more than a library's.
            Some(owner) if owner <= of_caller.owner => {
                let named = named_near(&mut owners, stack as NamedStack, owner).unwrap_or(frame);
                // Only functions of the user end the loading that a caller waits for.
                let is_loading = of_caller.is_loading && owner != Owner::Program;
                OwnOf { frame: Some(tree.frames.function(named)), owner, is_loading }
            }
            None if of_caller.frame.is_none() => {
                OwnOf { frame: Some(tree.frames.function(frame)), ..OwnOf::NONE }
            }
            _ => OwnOf { is_loading: of_caller.is_loading || owners.is_loader(frame), ..of_caller },
        };
    }
    found
}

/// Marks stacks and all their callers, by stack.
fn with_callers(tree: &SymbolTree, stacks: impl Iterator<Item = NamedStack>) -> Vec<bool> {
    let mut is_asked = vec![false; tree.count()];
    for stack in stacks {
        let mut next = stack;
        while !std::mem::replace(&mut is_asked[next as usize], true) && next != 0 {
            next = tree.parent(next);
        }
    }
    is_asked
}

/// Owners of frames. Each frame is judged once, when it is first needed.
struct Owners<'a> {
    tree: &'a SymbolTree,
    own: &'a OwnCode,
    allocators: CullList,
    known: Vec<Option<Option<Owner>>>,
}

impl Owners<'_> {
    /// Whether a frame loads code for its caller.
    fn is_loader(&self, frame: FrameId) -> bool {
        let frames = &self.tree.frames;
        self.own.is_loader(frames.module(frame), frames.symbol(frame), frames.file(frame))
    }

    /// Owner of a frame; `None`: the frame only allocates for others.
    fn of(&mut self, frame: FrameId) -> Option<Owner> {
        if let Some(known) = self.known[frame.0 as usize] {
            return known;
        }
        let frames = &self.tree.frames;
        let (module, symbol) = (frames.module(frame), frames.symbol(frame));
        let owner = match self.own.owner(module, symbol, frames.file(frame)) {
            Owner::Runtime if self.allocators.matches(module, symbol) => None,
            owner => Some(owner),
        };
        self.known[frame.0 as usize] = Some(owner);
        owner
    }
}

/// Nearest named caller of the same owner, for code without a name: see [`OwnCode::place`].
fn named_near(owners: &mut Owners<'_>, stack: NamedStack, owner: Owner) -> Option<FrameId> {
    let tree = owners.tree;
    let has_name = |frame: FrameId| tree.frames.symbol(frame).is_some();
    let mut frames = tree.frames_of(stack);
    if frames.next().is_none_or(has_name) {
        return None;
    }
    frames.take(NAMED_WITHIN).find(|&frame| has_name(frame) && owners.of(frame) == Some(owner))
}
