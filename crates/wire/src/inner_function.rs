//! Functions of allocators inside of a program or a library: found by name from outside, hooked by
//! changing their first instructions.
//!
//! The injector fills in one [`InnerFunction`] for each, of a table that the agent has; what its
//! arguments mean is a [`Signature`] in a word.

use core::sync::atomic::{AtomicU64, AtomicUsize};

/// Inner functions that a process can have hooked.
pub const INNER_FUNCTIONS: usize = 320;

/// Heaps of their own that inner functions can have.
pub const INNER_HEAPS: usize = 16;
/// Number of the first of them; below are those that programs tell of.
pub const INNER_HEAP_FIRST: usize = 240;
/// No agent's: what the recorder reads of a runtime's own account.
pub const RUNTIME_HEAP: usize = INNER_HEAP_FIRST - 1;

/// One of them. Written by the injector before the first call, [`Self::real`] first of all.
#[derive(Debug)]
#[repr(C)]
pub struct InnerFunction {
    /// Where the function itself is; 0: the entry is free. (For [`InnerAction::New`]: the function
    /// that answers null where this one throws.)
    pub real: AtomicUsize,
    /// Where the function itself is, if `real` is another; else 0.
    pub own: AtomicUsize,
    /// [`Signature::word`].
    pub signature: AtomicU64,
    /// Which heap its blocks belong to.
    pub heap: AtomicUsize,
    /// Where its code begins in its module, whatever was moved.
    pub code: AtomicUsize,
    /// Bytes of that; 0: unknown.
    pub code_bytes: AtomicUsize,
}

impl InnerFunction {
    /// A free entry.
    #[must_use]
    pub const fn free() -> Self {
        Self {
            real: AtomicUsize::new(0),
            own: AtomicUsize::new(0),
            signature: AtomicU64::new(0),
            heap: AtomicUsize::new(0),
            code: AtomicUsize::new(0),
            code_bytes: AtomicUsize::new(0),
        }
    }
}

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InnerAction {
    /// Answers a new block, or null.
    Allocate = 1,
    /// Takes a block back.
    Free = 2,
    /// Answers the block in its new size, or null.
    Reallocate = 3,
    /// Stores a new block where its argument `block` points, and answers a status.
    Store = 4,
    /// Changes a block's size in place, and answers what it has then.
    Resize = 5,
    /// Changes a block's size in place, and answers null where it cannot.
    Expand = 6,
    /// Answers a new block with a text in it.
    Text = 7,
    /// As [`Self::Allocate`], but throws where it cannot.
    New = 8,
    /// Allocates where the block is null, frees where the size is 0, else reallocates.
    Any = 9,
    /// Takes all blocks of a pool back.
    Clear = 10,
    /// Neither gives nor takes a block; what it calls of other allocators is its own affair.
    Quiet = 11,
    /// Takes back the block, and all that it leads to: each has the address of the next, so many
    /// bytes from its begin as the argument `more` says.
    Chain = 12,
    /// Gives or takes blocks that hang on one another, and of which those in a pool are recorded
    /// (talloc). By its arguments: no block and no pool: it answers a new one; block and size: the
    /// block in its new size; a block: takes it back with all that hangs on it; a pool: takes back
    /// what hangs on that; both: takes the block back unless it hangs on another.
    Tree = 13,
    /// The blocks of a pool live on without it.
    Dissolve = 14,
    /// jemalloc's `mallctl`, which may end an arena's blocks.
    Control = 15,
    /// `mallctlbymib`.
    ControlByMib = 16,
    /// `mallctlnametomib`.
    NameToMib = 17,
}

/// No argument.
const NONE: u8 = 7;
/// [`Signature::pool`]: no argument, but the word that lies before a new block.
pub const POOL_BEFORE_BLOCK: u8 = 6;
/// What a size may be that no argument tells.
const FIXED_MASK: u64 = (1 << 28) - 1;

/// What a function does with which of its first four arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// What it does.
    pub action: InnerAction,
    /// Number of the argument that names the block.
    pub block: Option<u8>,
    /// Number of the argument that the size is multiplied with.
    pub count: Option<u8>,
    /// Number of the argument that is the size.
    pub size: Option<u8>,
    /// Number of the argument that is added to the size, or to its multiple.
    pub more: Option<u8>,
    /// Number of the argument that names the pool, or [`POOL_BEFORE_BLOCK`].
    pub pool: Option<u8>,
    /// The size where no argument tells it; less than 2^28.
    pub fixed_bytes: u32,
    /// Number in [`crate::CALLED`] of what its calls are shown as.
    pub called: u8,
}

impl Signature {
    /// All of it in a word, never 0.
    #[must_use]
    pub const fn word(self) -> u64 {
        const fn place(argument: Option<u8>) -> u64 {
            match argument {
                Some(number) if number < 4 => number as u64,
                _ => NONE as u64,
            }
        }
        self.action as u64
            | place(self.block) << 8
            | place(self.count) << 12
            | place(self.size) << 16
            | place(self.more) << 20
            | (self.called as u64) << 24
            | (self.fixed_bytes as u64 & FIXED_MASK) << 32
            | match self.pool {
                Some(POOL_BEFORE_BLOCK) => (POOL_BEFORE_BLOCK as u64) << 60,
                argument => place(argument) << 60,
            }
    }

    /// [`Self::called`] of a word.
    #[must_use]
    #[inline(always)]
    pub const fn called_of(word: u64) -> u8 {
        (word >> 24) as u8
    }

    /// What a word says.
    #[must_use]
    pub const fn of_word_untrusted(word: u64) -> Option<Self> {
        const fn argument(nibble: u64) -> Option<u8> {
            let number = (nibble & 15) as u8;
            if number < 4 { Some(number) } else { None }
        }
        let action = match word as u8 {
            1 => InnerAction::Allocate,
            2 => InnerAction::Free,
            3 => InnerAction::Reallocate,
            4 => InnerAction::Store,
            5 => InnerAction::Resize,
            6 => InnerAction::Expand,
            7 => InnerAction::Text,
            8 => InnerAction::New,
            9 => InnerAction::Any,
            10 => InnerAction::Clear,
            11 => InnerAction::Quiet,
            12 => InnerAction::Chain,
            13 => InnerAction::Tree,
            14 => InnerAction::Dissolve,
            15 => InnerAction::Control,
            16 => InnerAction::ControlByMib,
            17 => InnerAction::NameToMib,
            _ => return None,
        };
        Some(Self {
            action,
            block: argument(word >> 8),
            count: argument(word >> 12),
            size: argument(word >> 16),
            more: argument(word >> 20),
            called: Self::called_of(word),
            pool: match (word >> 60) as u8 {
                POOL_BEFORE_BLOCK => Some(POOL_BEFORE_BLOCK),
                _ => argument(word >> 60),
            },
            fixed_bytes: (word >> 32 & FIXED_MASK) as u32,
        })
    }
}

/// A signature of which one thing says all: those of most calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainCall {
    /// A new block, of the size that this argument is.
    Allocate(usize),
    /// A new block of this size.
    AllocateFixed(usize),
    /// This argument is a block, and taken back.
    Free(usize),
}

impl PlainCall {
    /// Must be what [`Signature::of_word_untrusted`] says. `None`: more is to be looked at.
    #[must_use]
    #[inline(always)]
    pub const fn of_word_untrusted(word: u64) -> Option<Self> {
        const CALLED: u64 = 0xff << 24;
        const BLOCK: u64 = 3 << 8;
        const SIZE: u64 = 3 << 16;
        const FIXED: u64 = FIXED_MASK << 32;
        const NO_ARGUMENT: u64 = {
            let none = NONE as u64;
            none << 8 | none << 12 | none << 16 | none << 20 | none << 60
        };
        const ALLOCATES: u64 = InnerAction::Allocate as u64 | NO_ARGUMENT;
        const FREES: u64 = InnerAction::Free as u64 | NO_ARGUMENT;
        if word & !(CALLED | SIZE) == ALLOCATES & !((NONE as u64) << 16) {
            return Some(Self::Allocate((word >> 16 & 3) as usize));
        }
        if word & !(CALLED | BLOCK) == FREES & !((NONE as u64) << 8) {
            return Some(Self::Free((word >> 8 & 3) as usize));
        }
        if word & !(CALLED | FIXED) == ALLOCATES {
            return Some(Self::AllocateFixed((word >> 32 & FIXED_MASK) as usize));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_comes_back_out_of_its_word() {
        let all = Signature {
            action: InnerAction::Reallocate,
            block: Some(0),
            count: Some(1),
            size: Some(3),
            more: Some(2),
            pool: Some(3),
            called: 200,
            fixed_bytes: 0,
        };
        let least = Signature {
            action: InnerAction::Text,
            block: None,
            count: None,
            size: None,
            more: None,
            pool: None,
            called: 0,
            fixed_bytes: FIXED_MASK as u32,
        };
        let before = Signature { action: InnerAction::Allocate, pool: Some(POOL_BEFORE_BLOCK), ..least };
        for signature in [all, least, before] {
            assert_eq!(Signature::of_word_untrusted(signature.word()), Some(signature));
        }
        for word in [0, 18, u64::MAX] {
            assert_eq!(Signature::of_word_untrusted(word), None);
        }
    }

    #[test]
    fn what_is_plain_is_what_the_signature_says() {
        let places = || [None, Some(0), Some(1), Some(2), Some(3)].into_iter();
        let actions = [InnerAction::Allocate, InnerAction::Free, InnerAction::Reallocate, InnerAction::Clear];
        let mut plain_count = 0;
        for action in actions {
            for (block, size) in places().flat_map(|block| places().map(move |size| (block, size))) {
                for (count, more, pool, fixed_bytes) in [
                    (None, None, None, 0),
                    (None, None, None, 48),
                    (Some(0), None, None, 0),
                    (None, Some(1), None, 0),
                    (None, None, Some(2), 0),
                    (None, None, Some(POOL_BEFORE_BLOCK), 0),
                ] {
                    let called = 200;
                    let signature = Signature { action, block, count, size, more, pool, fixed_bytes, called };
                    let is_more = count.is_some() || more.is_some() || pool.is_some();
                    let expected = match (action, block, size, fixed_bytes) {
                        _ if is_more => None,
                        (InnerAction::Allocate, None, Some(place), 0) => {
                            Some(PlainCall::Allocate(usize::from(place)))
                        }
                        (InnerAction::Allocate, None, None, bytes) => {
                            Some(PlainCall::AllocateFixed(bytes as usize))
                        }
                        (InnerAction::Free, Some(place), None, 0) => {
                            Some(PlainCall::Free(usize::from(place)))
                        }
                        _ => None,
                    };
                    let found = PlainCall::of_word_untrusted(signature.word());
                    assert_eq!(found, expected, "{signature:?}");
                    plain_count += usize::from(found.is_some());
                }
            }
        }
        assert_eq!(plain_count, 4 + 2 + 4);
    }
}
