//! Whose code stacks are of.

use heapr_query::engine::{FrameId, NamedStack, SymbolTree};
use heapr_query::{CullList, NAMED_WITHIN, OwnCode, Owner};

/// Whose a stack is: the function, and what the code is.
pub(crate) type OwnOf = (Option<FrameId>, Owner);

/// By stack of the tree: the innermost frame of the program's, else of a library's, else of the
/// runtime's; what only allocates for others is none of them. Of stacks that are not in `wanted`,
/// and lead to none of them, nothing is said.
pub(crate) fn own_frames(
    tree: &SymbolTree,
    own: &OwnCode,
    wanted: impl Iterator<Item = NamedStack>,
) -> Vec<OwnOf> {
    let is_asked = with_callers(tree, wanted);
    let mut owners = Owners { tree, own, allocators: CullList::built_in(), known: Vec::new() };
    owners.known.resize(tree.frames.count(), None);
    let mut found: Vec<OwnOf> = vec![(None, Owner::Runtime); tree.count()];
    for stack in (1..tree.count()).filter(|&stack| is_asked[stack]) {
        let Some(frame) = tree.frame(stack as NamedStack) else { continue };
        let of_caller = found[tree.parent(stack as NamedStack) as usize];
        found[stack] = match owners.of(frame) {
            // Who comes first owns more of it.
            Some(owner) if owner <= of_caller.1 => {
                let named = named_near(&mut owners, stack as NamedStack, owner).unwrap_or(frame);
                (Some(tree.frames.function(named)), owner)
            }
            None if of_caller.0.is_none() => (Some(tree.frames.function(frame)), Owner::Runtime),
            _ => of_caller,
        };
    }
    found
}

/// By stack: whether it is one of these, or leads to one.
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

/// Who owns frames: each is judged once, when it is asked for.
struct Owners<'a> {
    tree: &'a SymbolTree,
    own: &'a OwnCode,
    allocators: CullList,
    known: Vec<Option<Option<Owner>>>,
}

impl Owners<'_> {
    /// `None`: it only allocates for others.
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

/// As [`OwnCode::place`]: of code without a name the nearest caller that has one.
fn named_near(owners: &mut Owners<'_>, stack: NamedStack, owner: Owner) -> Option<FrameId> {
    let tree = owners.tree;
    let has_name = |frame: FrameId| tree.frames.symbol(frame).is_some();
    let mut frames = tree.frames_of(stack);
    if frames.next().is_none_or(has_name) {
        return None;
    }
    frames.take(NAMED_WITHIN).find(|&frame| has_name(frame) && owners.of(frame) == Some(owner))
}
