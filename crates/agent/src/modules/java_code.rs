//! JIT code of a HotSpot virtual machine: the kind of code at an address of its code cache, and the
//! unwind rule of its frames. (They have no tables and, except for the interpreter's, no frame
//! pointer.)
//!
//! ```text
//! a heap of code      | block: used | blob … | block: free | block: used | blob …         |
//! its map of segments | 0 1 2 3 4 5          | ff ff ff    | 0 1 2 3 4 5 6 7 8 …          |
//! ```
//! Each byte of the map is the number of segments to go back towards the block's beginning; several
//! steps may be necessary. Code that has a frame on a stack is not freed, and its bytes do not
//! change.

use crate::arch::Rule;
use crate::modules::java_layout::Layout;

/// Largest number of code heaps, and of steps in a map, that are read.
const HEAPS_MAX: usize = 16;
const STEPS_MAX: usize = 1 << 16;
const FREE: u8 = 0xff;
/// Largest frame of compiled code, in bytes, that is believed.
const FRAME_BYTES_MAX: usize = 1 << 24;
/// First bytes of the names of blobs with compiled methods, and with calls of native ones.
const COMPILED: [[u8; 8]; 2] = [*b"nmethod\0", *b"native n"];

/// Kind of code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JavaCode {
    /// The interpreter.
    Interpreter,
    /// A compiled method, or the call of a native one.
    Compiled { blob: usize, frame_bytes: usize },
    /// Code that the virtual machine has made for itself; 0 bytes: it has a frame pointer.
    Stub { frame_bytes: usize },
}

impl JavaCode {
    /// Returns the unwind rule of the code's frames; `None`: by the frame pointer.
    #[inline(always)]
    pub(crate) fn rule(self) -> Option<Rule> {
        match self {
            Self::Interpreter => Some(Rule::LINKED),
            Self::Compiled { frame_bytes, .. } | Self::Stub { frame_bytes } => {
                (frame_bytes != 0).then(|| Rule::plain_with_frame_pointer(frame_bytes))
            }
        }
    }
}

/// Reads a word of the virtual machine's memory.
///
/// # Safety
/// 1. `address` is that of a variable of its module, or of a structure that the machine has made
///    and never frees.
#[inline(always)]
unsafe fn word(address: usize) -> usize {
    // SAFETY: (1).
    unsafe { (address as *const usize).read_volatile() }
}

/// # Safety See [`word`].
#[inline(always)]
unsafe fn half(address: usize) -> u32 {
    // SAFETY: (1) of `word`.
    unsafe { (address as *const u32).read_volatile() }
}

/// True if an address may lie in the code cache.
#[inline(always)]
pub(crate) fn may_hold(layout: &Layout, address: usize) -> bool {
    // SAFETY: two static variables of the virtual machine.
    unsafe { address >= word(layout.low_at) && address < word(layout.high_at) }
}

/// Returns the code that a frame returns to, if it lies in the virtual machine's code cache.
#[inline(always)]
pub(crate) fn find(return_address: usize) -> Option<JavaCode> {
    let layout = Layout::known()?;
    may_hold(layout, return_address).then(|| find_in(layout, return_address))?
}

/// Finds the code of a return address that may lie in the code cache.
pub(crate) fn find_in(layout: &Layout, return_address: usize) -> Option<JavaCode> {
    let address = return_address.wrapping_sub(1);
    // SAFETY: variables of the virtual machine, its array of heaps, and the heaps, which it never
    // frees.
    unsafe {
        let interpreter = word(layout.interpreter_at);
        if interpreter != 0 {
            let begin = word(interpreter.wrapping_add(layout.stubs));
            let bytes = half(interpreter.wrapping_add(layout.stubs_bytes)) as usize;
            if address.wrapping_sub(begin) < bytes {
                return Some(JavaCode::Interpreter);
            }
        }
        let heaps = word(layout.heaps_at);
        if heaps == 0 {
            return None;
        }
        let count = (half(heaps.wrapping_add(layout.array_length)) as usize).min(HEAPS_MAX);
        let data = word(heaps.wrapping_add(layout.array_data));
        for number in 0..count {
            let heap = word(data.wrapping_add(number.wrapping_mul(8)));
            let memory = heap.wrapping_add(layout.memory);
            let (low, high) =
                (word(memory.wrapping_add(layout.space_low)), word(memory.wrapping_add(layout.space_high)));
            if address >= low && address < high {
                return find_in_heap(layout, heap, (low, high), address);
            }
        }
    }
    None
}

/// # Safety
/// 1. `heap` is a code heap of the virtual machine, which lies in this range.
unsafe fn find_in_heap(
    layout: &Layout,
    heap: usize,
    (low, high): (usize, usize),
    address: usize,
) -> Option<JavaCode> {
    // SAFETY: (1), and the map that belongs to the heap, with a byte for each segment that is in
    // use.
    unsafe {
        let space = heap.wrapping_add(layout.segment_map);
        let (map, map_end) =
            (word(space.wrapping_add(layout.space_low)), word(space.wrapping_add(layout.space_high)));
        let log2 = half(heap.wrapping_add(layout.segment_bytes_log2)) & 31;
        let mut segment = address.wrapping_sub(low) >> log2;
        if segment >= map_end.wrapping_sub(map) {
            return None;
        }
        for _ in 0..STEPS_MAX {
            let step = (map.wrapping_add(segment) as *const u8).read_volatile();
            if step == FREE || usize::from(step) > segment {
                return None;
            }
            segment = segment.wrapping_sub(usize::from(step));
            if step == 0 {
                break;
            }
        }
        let block = low.wrapping_add(segment << log2);
        let blob = block.wrapping_add(layout.block_bytes);
        let is_inside = block >= low && blob.wrapping_add(layout.compiled_bytes) < high;
        if !is_inside || (block.wrapping_add(layout.block_used) as *const u8).read_volatile() == 0 {
            return None;
        }
        let frame_words = half(blob.wrapping_add(layout.frame_words)).cast_signed();
        let frame_bytes = usize::try_from(frame_words).unwrap_or(0).wrapping_mul(8);
        if frame_bytes > FRAME_BYTES_MAX {
            return None;
        }
        let name = word(blob.wrapping_add(layout.blob_name));
        let is_compiled = name != 0 && COMPILED.contains(&(name as *const [u8; 8]).read_unaligned());
        Some(if is_compiled && frame_bytes >= 16 {
            JavaCode::Compiled { blob, frame_bytes }
        } else {
            JavaCode::Stub { frame_bytes: if frame_bytes >= 16 { frame_bytes } else { 0 } }
        })
    }
}
