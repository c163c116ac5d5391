//! Blocks in trees (talloc): freeing one frees all its descendants, by internal functions of the
//! library that have no name. So the tree is walked before the free.
//!
//! ```text
//! header, 96 bytes before a block (talloc 2.1.9 and later):
//!   0 flags, with the library's mark   8 next   16 previous   24 parent, of the first child
//!  32 first child   40 references   48 destructor   56 name   64 bytes   80 its pool's own header
//! a pool's own header, 32 bytes before the header of the block that it is made of
//! ```
//! A block in a pool is recorded here. Every other one is a block of malloc's, which the library
//! calls for it, and is recorded there. The first header that is read must have the requested size
//! at the offset above. If it has not, no header is ever read again, and the recorder is notified.
//!
//! A block that a destructor refuses to free counts as freed. Functions with variable arguments
//! (talloc_named) are not seen, except those that call one that is (talloc_asprintf).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use heapr_wire::{FLAG_STACK_REALLOC, InnerAction, InnerFunction, MARK_TREE_UNKNOWN, Signature};

use crate::hooks::hooked_function::{Arguments, HookedFunction, Outcome};
use crate::hooks::outermost;
use crate::hooks::plain_calls::note_block;
use crate::hooks::{Caller, forwarded, stack_for};
use crate::record::events;
use crate::record::thread::{self, Outermost, Scope};
use crate::state::AGENT;

/// The library's mark, without the flags; [`UNREAD`] and [`UNKNOWN`] are no valid marks.
static MARK: AtomicU32 = AtomicU32::new(UNREAD);
const UNREAD: u32 = 0;
const UNKNOWN: u32 = 1;
/// 1: a block in a pool was recorded. Until then no tree need be walked.
static HAS_BLOCKS: AtomicU32 = AtomicU32::new(0);

const FLAGS: u32 = 15;
const IS_FREE: u32 = 1;
const IS_IN_POOL: u32 = 8;

const HEADER_BYTES: usize = 96;
const POOL_HEADER_BYTES: usize = 32;
/// Largest depth of nested pools that are followed.
const POOLS_MAX: usize = 16;
/// Largest number of headers that are read for one call.
const LOOKED_AT_MAX: usize = 1 << 24;

/// Address of the header before a block; 0: no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header(usize);

impl Header {
    const fn of(block: usize) -> Self {
        Self(block.wrapping_sub(HEADER_BYTES))
    }

    const fn block(self) -> usize {
        self.0.wrapping_add(HEADER_BYTES)
    }

    fn word(self, offset: usize) -> usize {
        // SAFETY: a header that the library is about to read, or has just written. It belongs to a
        // block that the library's caller names, or another header leads to it and it bears the
        // library's mark.
        unsafe { (self.0.wrapping_add(offset) as *const usize).read_unaligned() }
    }

    fn flags(self) -> u32 {
        self.word(0) as u32
    }

    /// Returns the header to which the word at `offset` leads, if it is one.
    fn follow(self, offset: usize) -> Option<Self> {
        let next = Self(self.word(offset));
        (next.0 != 0 && next.is_marked()).then_some(next)
    }

    fn is_marked(self) -> bool {
        let mark = MARK.load(Relaxed);
        mark > UNKNOWN && self.flags() & !FLAGS == mark && self.flags() & IS_FREE == 0
    }

    fn next(self) -> Option<Self> {
        self.follow(8)
    }

    fn previous(self) -> Option<Self> {
        self.follow(16)
    }

    fn first_child(self) -> Option<Self> {
        self.follow(32)
    }

    fn has_references(self) -> bool {
        self.word(40) != 0
    }

    fn name(self) -> usize {
        self.word(56)
    }

    fn size(self) -> usize {
        self.word(64)
    }

    /// Returns the parent, which is stored in the first header of the parent's children.
    fn parent(self, left: &mut usize) -> Option<Self> {
        let mut first = self;
        while let Some(previous) = first.previous() {
            *left = left.checked_sub(1)?;
            first = previous;
        }
        first.follow(24)
    }

    /// True if the block lies in a pool whose memory is not recorded elsewhere. (An object that is
    /// allocated together with its pool has a size, which a pool itself does not have. It is a
    /// block of malloc's, unless it lies in a pool in turn.)
    fn is_in_pool(self) -> bool {
        let mut header = self;
        for _ in 0..POOLS_MAX {
            if !header.is_marked() || header.flags() & IS_IN_POOL == 0 {
                return false;
            }
            let pool = Self(header.word(80).wrapping_add(POOL_HEADER_BYTES));
            if header.word(80) == 0 || !pool.is_of_pool() {
                return false;
            }
            if pool.size() == 0 {
                return true;
            }
            header = pool;
        }
        false
    }

    /// True if this is a pool's header. The block that a pool is made of may be free while others
    /// lie in it.
    fn is_of_pool(self) -> bool {
        const IS_POOL: u32 = 4;
        self.flags() & IS_POOL != 0
    }
}

/// Reads the library's mark from a block that was requested with this size.
fn learn(block: usize, bytes: usize) {
    if MARK.load(Relaxed) != UNREAD {
        return;
    }
    let header = Header::of(block);
    let (flags, mark) = (header.flags() & FLAGS, header.flags() & !FLAGS);
    if header.size() == bytes && mark > FLAGS && (flags == 0 || flags == IS_IN_POOL) {
        MARK.store(mark, Relaxed);
        return;
    }
    MARK.store(UNKNOWN, Relaxed);
    if let Some(slot) = AGENT.slot() {
        slot.exit_marks.fetch_or(MARK_TREE_UNKNOWN, Relaxed);
    }
}

/// Handles a call of a tree function; `None` if the function is not one.
pub(crate) fn run(kept: &HookedFunction, all: &Arguments, caller: Caller) -> Option<Outcome> {
    let function: &InnerFunction = kept.inner?;
    let signature = Signature::of_word_untrusted(function.signature.load(Relaxed))?;
    if signature.action != InnerAction::Tree {
        return None;
    }
    if MARK.load(Relaxed) == UNKNOWN {
        return Some(Outcome::PassOn);
    }
    let argument = |place: Option<u8>| all.get(usize::from(place?)).copied();
    let call = TreeCall {
        kept,
        all,
        heap: function.heap.load(Relaxed) as u8,
        bytes: argument(signature.size)
            .map(|size| size.saturating_mul(argument(signature.count).unwrap_or(1))),
        caller: caller.of_function(signature.called),
    };
    Some(match (argument(signature.block), argument(signature.pool)) {
        (Some(block), None) if call.bytes.is_some() => call.reallocate(block),
        (None, None) => call.allocate(),
        (block, pool) => {
            call.note_freed(block, pool);
            Outcome::PassOn
        }
    })
}

struct TreeCall<'a> {
    kept: &'a HookedFunction,
    all: &'a Arguments,
    heap: u8,
    /// Requested size in bytes, if the call states it.
    bytes: Option<usize>,
    caller: Caller,
}

impl TreeCall<'_> {
    /// Begins a call. The library's calls of its own functions during this one are not the
    /// program's, but its calls of malloc are recorded. Returns `false`, without beginning one, if
    /// this call is nested itself.
    fn begin(&self) -> bool {
        let Some(mut scope) = Scope::enter(self.caller.sp()) else { return false };
        let before = scope.state().tree;
        let is_outer = !outermost::is_around(&mut scope, before, self.caller.sp());
        if is_outer {
            let function = core::ptr::from_ref(self.kept) as usize;
            scope.state().tree = Outermost { entry_sp: self.caller.sp(), function };
        }
        is_outer
    }

    /// Makes a call that was begun.
    fn make(&self) -> usize {
        let answer = forwarded::call(self.kept.real, *self.all);
        let state = thread::current();
        if !state.is_null() {
            // SAFETY: this thread's state, which is never unmapped.
            unsafe { (*state).tree = Outermost::NONE };
        }
        answer
    }

    fn allocate(&self) -> Outcome {
        if !self.begin() {
            return Outcome::PassOn;
        }
        let block = self.make();
        self.note_new(block);
        Outcome::Answered(block)
    }

    fn note_new(&self, block: usize) {
        if block == 0 {
            return;
        }
        if let Some(bytes) = self.bytes {
            learn(block, bytes);
        }
        let header = Header::of(block);
        if header.is_in_pool() {
            HAS_BLOCKS.store(1, Relaxed);
            note_block(self.heap, block, header.size(), 0, self.caller);
        }
    }

    fn reallocate(&self, block: usize) -> Outcome {
        // A realloc to size 0 frees the block, through a function that is hooked.
        if self.bytes == Some(0) {
            return Outcome::PassOn;
        }
        let was_in_pool = block != 0 && Header::of(block).is_in_pool();
        if !was_in_pool {
            return self.allocate();
        }
        if !self.begin() {
            return Outcome::PassOn;
        }
        let is_prepared = Scope::enter(self.caller.sp())
            .is_some_and(|mut scope| events::realloc_prepare(&mut scope, self.heap, block));
        let new = self.make();
        if is_prepared && let Some(mut scope) = Scope::enter(self.caller.sp()) {
            if new == 0 {
                events::realloc_abort(&mut scope, self.heap, block, self.bytes.unwrap_or(0));
            } else {
                let stack = stack_for(&mut scope, self.caller, FLAG_STACK_REALLOC);
                // The block may have moved out of the pool.
                let header = Some(Header::of(new)).filter(|header| header.is_in_pool());
                let (place, bytes) = header.map_or((0, 0), |header| (new, header.size()));
                events::realloc_commit(&mut scope, self.heap, place, bytes, stack);
            }
        }
        Outcome::Answered(new)
    }

    /// Records blocks that are about to be freed: `block` with all its descendants, or the
    /// descendants of `pool`. If both are given: `block`, provided that `pool` is its only parent.
    #[cold]
    fn note_freed(&self, block: Option<usize>, pool: Option<usize>) {
        if HAS_BLOCKS.load(Relaxed) == 0 {
            return;
        }
        let Some(mut scope) = Scope::enter(self.caller.sp()) else { return };
        let mut left = LOOKED_AT_MAX;
        let mut note = |header: Header| events::free(&mut scope, self.heap, header.block());
        let marked = |block: usize| Some(Header::of(block)).filter(|header| block != 0 && header.is_marked());
        match (block, pool) {
            (Some(block), pool) => {
                let Some(header) = marked(block) else { return };
                let pool = pool.filter(|&pool| pool != 0);
                let is_its = pool.is_none_or(|pool| header.parent(&mut left) == Some(Header::of(pool)));
                if is_its && !header.has_references() {
                    note_tree(header, &mut left, &mut note);
                }
            }
            (None, Some(pool)) => {
                let parent = marked(pool);
                let mut child = parent.and_then(Header::first_child);
                while let Some(header) = child {
                    // The block that is the parent's name stays.
                    let is_name = parent.is_some_and(|parent| parent.name() == header.block());
                    if !is_name && !header.has_references() {
                        note_tree(header, &mut left, &mut note);
                    }
                    child = if left == 0 { None } else { header.next() };
                }
            }
            (None, None) => {}
        }
    }
}

/// Calls `note` for a header and all its descendants that lie in pools. (A block to which a
/// reference exists stays live.)
fn note_tree(root: Header, left: &mut usize, note: &mut dyn FnMut(Header)) {
    let mut header = root;
    loop {
        let lives_on = header != root && header.has_references();
        if !lives_on && header.is_in_pool() {
            note(header);
        }
        let child = if lives_on { None } else { header.first_child() };
        header = match child {
            Some(child) => child,
            None => loop {
                if header == root {
                    return;
                }
                if let Some(next) = header.next() {
                    break next;
                }
                match header.parent(left) {
                    Some(parent) => header = parent,
                    None => return,
                }
            },
        };
        match left.checked_sub(1) {
            Some(less) => *left = less,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers with blocks of 32 bytes, in the library's format.
    struct Blocks(Vec<[usize; 16]>);

    const LIBRARYS_MARK: u32 = 0x4ca_bb80;

    impl Blocks {
        fn header(&self, number: usize) -> Header {
            Header(self.0[number].as_ptr() as usize)
        }

        /// Makes headers from, for each: the parent's index, the flags, the bytes.
        fn of(of: &[(Option<usize>, u32, usize)]) -> Self {
            let mut blocks = Self(vec![[0; 16]; of.len()]);
            for (number, &(parent, flags, bytes)) in of.iter().enumerate() {
                let at = blocks.header(number).0;
                let pool = blocks.header(0).0 - POOL_HEADER_BYTES;
                let block = &mut blocks.0[number];
                (block[0], block[8]) = ((LIBRARYS_MARK | flags) as usize, bytes);
                block[10] = if flags & IS_IN_POOL != 0 { pool } else { 0 };
                let Some(parent) = parent else { continue };
                // Inserted before its parent's other children.
                let first = std::mem::replace(&mut blocks.0[parent][4], at);
                (blocks.0[number][1], blocks.0[number][3]) = (first, blocks.header(parent).0);
                if let Some(other) = (0..number).find(|&other| blocks.header(other).0 == first) {
                    (blocks.0[other][2], blocks.0[other][3]) = (at, 0);
                }
            }
            blocks
        }

        fn noted(&self, root: usize) -> Vec<usize> {
            let (mut noted, mut left) = (Vec::new(), 1000);
            note_tree(self.header(root), &mut left, &mut |header| noted.push(header));
            let number = |found: &Header| (0..self.0.len()).find(|&number| self.header(number) == *found);
            let mut numbers: Vec<usize> = noted.iter().filter_map(number).collect();
            numbers.sort_unstable();
            numbers
        }
    }

    #[test]
    fn what_hangs_on_a_block_goes_with_it_and_only_what_lies_in_a_pool_is_told() {
        let mut blocks = Blocks::of(&[
            (None, 4, 0),
            (Some(0), IS_IN_POOL, 32),
            (Some(1), IS_IN_POOL, 32),
            (Some(2), 0, 32),
            (Some(3), IS_IN_POOL, 32),
            (Some(1), IS_IN_POOL, 32),
            (Some(0), IS_IN_POOL, 32),
        ]);
        // The mark is not known yet, and nothing is noted.
        assert!(blocks.noted(0).is_empty());
        learn(blocks.header(1).block(), 32);
        assert_eq!(MARK.load(Relaxed), LIBRARYS_MARK);
        assert_eq!(blocks.noted(1), [1, 2, 4, 5]);
        assert_eq!(blocks.noted(0), [1, 2, 4, 5, 6]);
        let mut left = 100;
        assert_eq!(blocks.header(4).parent(&mut left), Some(blocks.header(3)));
        assert_eq!(blocks.header(2).parent(&mut left), Some(blocks.header(1)));
        // A reference to the block exists.
        blocks.0[2][5] = 1;
        assert_eq!(blocks.noted(1), [1, 5]);
        // Other data lies where a child should be.
        blocks.0[5][0] = 7;
        assert_eq!(blocks.noted(1), [1]);
        // A cycle ends the walk.
        blocks.0[5][0] = (LIBRARYS_MARK | IS_IN_POOL) as usize;
        blocks.0[2][1] = blocks.header(5).0;
        blocks.noted(1);
    }
}
