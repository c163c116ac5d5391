//! A frame of a stack, and a word that its rule has read.

/// Where a stack begins: the state right after the hooked function will have returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Start {
    /// Return address of the hooked call.
    pub(crate) pc: usize,
    /// Stack pointer after the return.
    pub(crate) sp: usize,
    /// Frame pointer register of the caller.
    pub(crate) bp: usize,
}

/// A kept frame: 40 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Frame {
    /// Return address into the frame's function; for a frame interrupted by a signal its address
    /// plus one.
    pub(crate) pc: usize,
    pub(crate) sp: usize,
    pub(crate) bp: usize,
    /// [`crate::tree::path_hash`] of the path to it, if it is one of the first `Kept::hashed`
    /// frames.
    pub(crate) hash: u64,
    pub(crate) words_end: u32,
    /// It was interrupted by a signal at `pc - 1`.
    pub(crate) is_exact: bool,
    /// Its rule, or one further out that is reached before the frame pointer register is restored,
    /// reads that register. Else `bp` is whatever the program had in it, and proves nothing.
    pub(crate) needs_bp: bool,
    /// Whether `needs_bp` does not depend on the frames further out: its own rule reads or restores
    /// the register.
    pub(crate) settles_bp: bool,
    /// Its last word is the caller's `bp`.
    pub(crate) has_bp_word: bool,
}

const _: () = assert!(size_of::<Frame>() == 40);

impl Frame {
    #[inline(always)]
    pub(crate) fn state(&self) -> Start {
        Start { pc: self.pc, sp: self.sp, bp: self.bp }
    }

    /// Whether unwinding from `state` is unwinding from this frame, as long as the words outwards
    /// are the same.
    #[inline(always)]
    pub(crate) fn is_at(&self, state: Start) -> bool {
        self.pc == state.pc && self.sp == state.sp && (self.bp == state.bp || !self.needs_bp)
    }
}

/// What is remembered of a frame that calls the allocator: only a hash is made from it. All zero:
/// nothing.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Innermost {
    pub(crate) pc: usize,
    /// How far above it its caller lies; 0: it is no plain frame, or was not known when it was
    /// asked for.
    pub(crate) frame_bytes: usize,
}

/// A stack word that a rule has read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Word {
    pub(crate) address: usize,
    pub(crate) value: usize,
}

/// Reads a stack word.
///
/// # Safety
/// 1. The address is readable.
#[inline(always)]
pub(crate) unsafe fn read(address: usize) -> usize {
    // SAFETY: (1). Volatile: the word belongs to the program's running functions.
    unsafe { (address as *const usize).read_volatile() }
}
