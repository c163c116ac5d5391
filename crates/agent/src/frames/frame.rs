//! A frame of a stack, and a word that its rule has read.

/// State at which a stack begins: right after the hooked function will have returned.
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

/// A frame of the cached stack: 40 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Frame {
    /// Return address into the frame's function. For a frame that a signal interrupted: the address
    /// of the interrupted instruction plus one.
    pub(crate) pc: usize,
    pub(crate) sp: usize,
    pub(crate) bp: usize,
    /// [`crate::tree::path_hash`] of the path to this frame, if it is one of the first
    /// `Kept::hashed` frames.
    pub(crate) hash: u64,
    pub(crate) words_end: u32,
    /// Whether the frame was interrupted by a signal, at `pc - 1`.
    pub(crate) is_exact: bool,
    /// True if the frame's own rule reads the frame pointer register, or the rule of an outer frame
    /// does before one restores the register. If false, `bp` is whatever the program had in the
    /// register, and proves nothing.
    pub(crate) needs_bp: bool,
    /// Whether `needs_bp` is independent of the frames further out: the frame's own rule reads or
    /// restores the register.
    pub(crate) settles_bp: bool,
    /// Whether the frame's last word is the caller's `bp`.
    pub(crate) has_bp_word: bool,
}

const _: () = assert!(size_of::<Frame>() == 40);

impl Frame {
    #[inline(always)]
    pub(crate) fn state(&self) -> Start {
        Start { pc: self.pc, sp: self.sp, bp: self.bp }
    }

    /// True if unwinding from `state` is the same as unwinding from this frame, as long as the
    /// words outwards are equal.
    #[inline(always)]
    pub(crate) fn is_at(&self, state: Start) -> bool {
        self.pc == state.pc && self.sp == state.sp && (self.bp == state.bp || !self.needs_bp)
    }
}

/// Size of an innermost frame, one that calls the allocator; it is used for a hash only. All zero:
/// unused entry.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Innermost {
    pub(crate) pc: usize,
    /// Distance from its stack pointer to its caller's, in bytes; 0: the frame is not plain, or its
    /// rule was not known then.
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
