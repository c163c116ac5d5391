//! Functions of embedded allocators: found by name from outside, hooked with detours.
//!
//! The injector fills in one [`InnerFunction`] for each, in a table of the agent. A [`Signature`],
//! packed in a word, says what the function's arguments mean.

use core::sync::atomic::{AtomicU64, AtomicUsize};

/// Largest number of embedded allocators' functions that can be hooked in a process.
pub const INNER_FUNCTIONS: usize = 320;

/// Largest number of heaps that embedded allocators can have in a process.
pub const INNER_HEAPS: usize = 16;
/// Number of the first heap of an embedded allocator. Lower numbers are heaps that programs
/// announce by heapr's interface.
pub const INNER_HEAP_FIRST: usize = 240;
/// Number of the heap that the recorder fills in from a runtime's own account; agents never use it.
pub const RUNTIME_HEAP: usize = INNER_HEAP_FIRST - 1;

/// One hooked function of an embedded allocator. Written by the injector before the first call,
/// [`Self::real`] first of all.
#[derive(Debug)]
#[repr(C)]
pub struct InnerFunction {
    /// Address of the function; 0 if the entry is free. For [`InnerAction::New`]: the function that
    /// returns null where this one throws.
    pub real: AtomicUsize,
    /// Address of the function itself if `real` holds another one; else 0.
    pub own: AtomicUsize,
    /// Packed [`Signature`]: see [`Signature::word`].
    pub signature: AtomicU64,
    /// Number of the heap that the function's blocks belong to.
    pub heap: AtomicUsize,
    /// Address of the function's code in its module, whichever instructions were moved.
    pub code: AtomicUsize,
    /// Size of the code in bytes; 0 if unknown.
    pub code_bytes: AtomicUsize,
}

impl InnerFunction {
    /// Returns a free entry.
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

/// Effect of a function's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InnerAction {
    /// Returns a new block, or null.
    Allocate = 1,
    /// Frees a block.
    Free = 2,
    /// Returns the block in its new size, or null.
    Reallocate = 3,
    /// Stores a new block's address where its argument `block` points, and returns a status.
    Store = 4,
    /// Changes a block's size in place, and returns the resulting size.
    Resize = 5,
    /// Changes a block's size in place; returns null if it cannot.
    Expand = 6,
    /// Returns a new block with a text in it.
    Text = 7,
    /// Returns a new block; throws if it cannot.
    New = 8,
    /// Allocates if the block is null, frees if the size is 0, else reallocates.
    Any = 9,
    /// Frees all blocks of a pool.
    Clear = 10,
    /// Neither allocates nor frees a block for the program; calls that it makes to other allocators
    /// are not recorded.
    Quiet = 11,
    /// Frees a linked list of blocks. Each block holds the address of the next one at the offset in
    /// bytes that argument `more` gives.
    Chain = 12,
    /// Allocates or frees blocks that form a tree (talloc); blocks in a pool are recorded. The
    /// arguments decide:
    ///
    /// * without block and pool: returns a new block;
    /// * block and size: resizes the block;
    /// * block: frees it with all its descendants;
    /// * pool: frees the pool's descendants;
    /// * block and pool: frees the block unless it has another parent.
    Tree = 13,
    /// Ends a pool whose blocks live on.
    Dissolve = 14,
    /// `mallctl` of jemalloc, which may end an arena's blocks.
    Control = 15,
    /// `mallctlbymib` of jemalloc.
    ControlByMib = 16,
    /// `mallctlnametomib` of jemalloc.
    NameToMib = 17,
}

/// Packed form of an absent argument.
const NONE: u8 = 7;
/// [`Signature::pool`]: the pool is named by the word before a new block, instead of by an
/// argument.
pub const POOL_BEFORE_BLOCK: u8 = 6;
/// Mask of a fixed size: 28 bits.
const FIXED_MASK: u64 = (1 << 28) - 1;

/// Effect of a function, and the meaning of its first four arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Effect of the call.
    pub action: InnerAction,
    /// Number of the argument that names the block.
    pub block: Option<u8>,
    /// Number of the argument that multiplies the size.
    pub count: Option<u8>,
    /// Number of the argument that is the size.
    pub size: Option<u8>,
    /// Number of the argument that is added to the product of size and count.
    pub more: Option<u8>,
    /// Number of the argument that names the pool, or [`POOL_BEFORE_BLOCK`].
    pub pool: Option<u8>,
    /// Size in bytes if no argument gives it; less than 2^28.
    pub fixed_bytes: u32,
    /// Number in [`crate::CALLED`] under which its calls are shown.
    pub called: u8,
}

impl Signature {
    /// Packs the signature into a word, which is never 0.
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

    /// [`Self::called`] of a packed signature.
    #[must_use]
    #[inline(always)]
    pub const fn called_of(word: u64) -> u8 {
        (word >> 24) as u8
    }

    /// Unpacks a signature; `None` if the action is unknown.
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

/// Signature of the most frequent kinds of calls, which a single fact describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainCall {
    /// A new block; its size is this argument.
    Allocate(usize),
    /// A new block of this fixed size in bytes.
    AllocateFixed(usize),
    /// A free of the block that is this argument.
    Free(usize),
}

impl PlainCall {
    /// Unpacks a word if its signature is one of these kinds, with the result of
    /// [`Signature::of_word_untrusted`]. `None`: the full signature is needed.
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
