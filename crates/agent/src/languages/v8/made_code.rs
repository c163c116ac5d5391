//! JIT code of V8's compilers: finds the object in which a return address lies, and the bytecode
//! instruction that the address belongs to.

use crate::arch::ADDRESS_END;
use crate::languages::readable::word;
use crate::languages::v8::heap::{Heap, is_object, small_integer};
use crate::languages::v8::layout::{CODE_ITSELF, Layout};
use crate::languages::v8::translation::{self, FRAMES_MAX, FunctionFrame};
use crate::languages::v8::variable_bytes::Numbers;
use crate::modules::memory_map::{Access, Place, place_of};

/// Alignment of code's start, in bytes.
const ALIGNMENT: usize = 64;
/// Largest distance, in bytes, over which the beginning of code is searched.
const BYTES_MAX: usize = 2 << 20;
/// Instruction object: offset of its `Code`.
const CODE_AT: usize = 8;
/// `Code`: offsets of its instruction object, and of the first instruction's address.
const STREAM_AT: usize = 32;
const START_AT: usize = 40;
/// Log2 of the size of memory that is mapped as a whole.
const CHUNK_BITS: u32 = 18;
/// Largest number of safepoint entries that are searched.
const SAFEPOINTS_MAX: usize = 1 << 16;
/// Deoptimization data: index of its translations; number of an entry's elements, and index of its
/// translation.
const TRANSLATIONS: usize = 0;
const ENTRY_ELEMENTS: usize = 3;
const ENTRY_TRANSLATION: usize = 1;

/// A `Code` object, and the start of its instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeCode {
    pub(crate) code: usize,
    pub(crate) start: usize,
}

/// Compiler that produced code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Baseline,
    /// The faster one of the two optimizing compilers.
    Maglev,
    Turbofan,
    Other,
}

/// Returns words that distinguish code, which begins at `start`, from other code that lies there
/// later.
pub(crate) fn check_words(heap: &mut Heap<'_>, start: usize, pc: usize) -> Option<[usize; 2]> {
    let layout = heap.layout;
    let head = start.wrapping_sub(layout.stream_bytes);
    if !is_one_piece(head, pc) && !heap.readable.has(head, layout.stream_bytes) {
        return None;
    }
    // SAFETY: readable, as was just found.
    let at = |offset: usize| unsafe { word(head.wrapping_add(offset)) };
    if layout.stream_bytes == CODE_ITSELF {
        return Some([at(layout.deoptimization), at(layout.size)]);
    }
    let code = at(CODE_AT);
    Some([code, heap.field(code, layout.deoptimization)?])
}

/// True if the code at `start` still has these words.
///
/// # Safety
/// 1. `pc` is a return address of the calling thread, in code.
#[inline(always)]
pub(crate) unsafe fn still_has(layout: &Layout, start: usize, pc: usize, words: [usize; 2]) -> bool {
    let head = start.wrapping_sub(layout.stream_bytes);
    let [first, second] = words;
    // SAFETY: (1), and the same piece of memory is equally readable; code in it is an object.
    is_one_piece(head, pc)
        && unsafe {
            if layout.stream_bytes == CODE_ITSELF {
                word(head.wrapping_add(layout.deoptimization)) == first
                    && word(head.wrapping_add(layout.size)) == second
            } else {
                word(head.wrapping_add(CODE_AT)) == first
                    && word(first.wrapping_sub(1).wrapping_add(layout.deoptimization)) == second
            }
        }
}

/// True if two addresses lie in memory that is mapped and unmapped as a whole.
#[inline(always)]
fn is_one_piece(one: usize, other: usize) -> bool {
    (one ^ other) >> CHUNK_BITS == 0
}

/// True if code begins at `start` in which a return address lies.
pub(crate) fn is_at(heap: &mut Heap<'_>, start: usize, pc: usize) -> bool {
    let head = start.wrapping_sub(heap.layout.stream_bytes);
    (is_one_piece(head, pc) || heap.readable.has(head, heap.layout.stream_bytes))
        && at(heap, start).is_some_and(|(_, end)| end >= pc)
}

/// Reason why no code is found in which a return address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoCode {
    /// Range without code, from the address down to `low`. `is_large`: the range is larger than
    /// V8's pieces of mapped code.
    Bare {
        low: usize,
        high: usize,
        is_large: bool,
    },
    Unknown,
}

/// Finds the code in which a return address lies.
#[cold]
pub(crate) fn find(heap: &mut Heap<'_>, pc: usize) -> Result<MadeCode, NoCode> {
    let call = pc.wrapping_sub(1);
    let Place::Mapped { low, .. } = place_of(call, Access::Read) else { return Err(NoCode::Unknown) };
    let lowest = low.max(call.saturating_sub(BYTES_MAX)).wrapping_add(heap.layout.stream_bytes);
    let mut start = call & !(ALIGNMENT.wrapping_sub(1));
    while start >= lowest {
        if let Some((code, end)) = at(heap, start) {
            // An address after the end of the nearest code is in unknown code.
            return if end > call { Ok(code) } else { Err(NoCode::Unknown) };
        }
        start = start.wrapping_sub(ALIGNMENT);
    }
    let is_large = call.wrapping_sub(lowest) >> CHUNK_BITS > 0;
    Err(NoCode::Bare { low: lowest, high: call, is_large })
}

/// Returns the code that begins at a readable address, if there is any, and its end.
fn at(heap: &mut Heap<'_>, start: usize) -> Option<(MadeCode, usize)> {
    let layout = heap.layout;
    let head = start.wrapping_sub(layout.stream_bytes);
    let stream = head | 1;
    let is_itself = layout.stream_bytes == CODE_ITSELF;
    let code = if is_itself {
        stream
    } else {
        // SAFETY: between the mapping's beginning and the return address.
        unsafe { word(head.wrapping_add(CODE_AT)) }
    };
    if !is_object(code) {
        return None;
    }
    // SAFETY: as above.
    let map = unsafe { word(head) };
    // In an object that the collector is moving, this word is the forwarding address.
    let is_moving = !is_itself && map & 7 == 0 && map != 0;
    if !(is_object(map) || is_moving) || map >= ADDRESS_END {
        return None;
    }
    let code = heap.of_kind(code, layout.kinds.code)?;
    let points_here = [heap.field(code, STREAM_AT)? == stream, heap.field(code, START_AT)? == start];
    let is_whole = is_itself || points_here == [true, true] || (is_moving && points_here != [false, false]);
    let end = start.wrapping_add(heap.half(code, layout.size)? as usize);
    is_whole.then_some((MadeCode { code, start }, end))
}

impl MadeCode {
    /// Returns the code that begins at an address where there was some before.
    pub(crate) fn at_start(heap: &mut Heap<'_>, start: usize) -> Option<Self> {
        heap.readable
            .has(start.wrapping_sub(heap.layout.stream_bytes), heap.layout.stream_bytes)
            .then_some(())?;
        at(heap, start).map(|(code, _)| code)
    }

    pub(crate) fn maker(self, heap: &mut Heap<'_>) -> Option<Maker> {
        let kind = heap.half(self.code, heap.layout.flags)? & 15;
        Some(match kind.wrapping_sub(heap.layout.baseline) {
            0 => Maker::Baseline,
            1 => Maker::Maglev,
            2 => Maker::Turbofan,
            _ => Maker::Other,
        })
    }

    /// Returns the instruction of `instructions` to which the baseline code at `pc` belongs; `None`
    /// at the function's beginning, or if it is not known.
    pub(crate) fn baseline_instruction(
        self,
        heap: &mut Heap<'_>,
        instructions: &[u8],
        pc: usize,
    ) -> Option<i64> {
        let offset = pc.checked_sub(self.start)? as u64;
        let table = heap.field(self.code, heap.layout.position_table)?;
        let mut ends = Numbers::new(heap.bytes(table)?);
        let mut end = ends.unsigned()?;
        let (mut at, mut next) = (None, 0_usize);
        while end < offset {
            end = end.checked_add(ends.unsigned()?)?;
            at = Some(next as i64);
            next = next.checked_add(heap.layout.sizes.of_first(instructions.get(next..)?)?)?;
        }
        at
    }

    /// Reads the functions that an optimized frame at `pc` stands for, the outermost first. Returns
    /// their number, and the array that their numbers index.
    pub(crate) fn optimized_frames(
        self,
        heap: &mut Heap<'_>,
        pc: usize,
        maker: Maker,
        frames: &mut [FunctionFrame; FRAMES_MAX],
    ) -> Option<(usize, usize)> {
        let layout = heap.layout;
        let entry = self.deoptimization_entry(heap, pc, maker)?;
        let data = heap.field(self.code, layout.deoptimization)?;
        let (data, _) = heap.object(data)?;
        let first = entry.checked_mul(ENTRY_ELEMENTS)?.checked_add(layout.first_entry)?;
        let translation = heap.element(data, first.checked_add(ENTRY_TRANSLATION)?)?;
        let translation = usize::try_from(small_integer(translation)?).ok()?;
        let translations = heap.element(data, TRANSLATIONS)?;
        let translations = heap.bytes(translations)?;
        let literals = heap.element(data, layout.literals)?;
        let (literals, _) = heap.object(literals)?;
        let count = translation::frames(layout.opcodes, translations, translation, frames)?;
        Some((count, literals))
    }

    /// Returns the deoptimization entry for a call that returns to `pc`, from the table after the
    /// instructions.
    fn deoptimization_entry(self, heap: &mut Heap<'_>, pc: usize, maker: Maker) -> Option<usize> {
        let layout = heap.layout;
        let table = self.start.checked_add(heap.half(self.code, layout.size)? as usize)?;
        let length_at = layout.safepoints_length;
        let head = heap.readable.bytes(table, length_at.wrapping_add(8))?;
        let number = |at: usize| Some(u32::from_le_bytes(head.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let count = number(length_at)? as usize;
        let form = number(length_at.wrapping_add(4))?;
        let field = |shift: u32| (form >> shift & 7) as usize;
        // Whether there are deoptimization entries; sizes in bytes of registers, of addresses, of
        // entry indexes.
        let (has_entries, register_bytes, pc_bytes, index_bytes) =
            (form & 1 != 0, field(1), field(4), field(7));
        if !has_entries || count > SAFEPOINTS_MAX || pc_bytes == 0 {
            return None;
        }
        let is_maglev = maker == Maker::Maglev;
        let head_bytes = if is_maglev { layout.maglev_head_bytes } else { length_at.wrapping_add(8) };
        let bytes = pc_bytes.wrapping_mul(2).wrapping_add(index_bytes).wrapping_add(register_bytes);
        let bytes = bytes.wrapping_add(usize::from(is_maglev));
        let entries = heap.readable.bytes(table.wrapping_add(head_bytes), count.wrapping_mul(bytes))?;
        let offset = pc.checked_sub(self.start)?;
        let value = |bytes: Option<&[u8]>| {
            bytes
                .unwrap_or_default()
                .iter()
                .rev()
                .fold(0_usize, |value, &byte| value << 8 | usize::from(byte))
        };
        // (`max(1)` shows the compiler that the size is not 0.)
        entries.chunks_exact(bytes.max(1)).find_map(|entry| {
            let index_end = pc_bytes.wrapping_add(index_bytes);
            let at = value(entry.get(..pc_bytes));
            let index = value(entry.get(pc_bytes..index_end));
            // Each is stored plus one; 0: missing. A call whose code has been deoptimised returns
            // to the second address.
            let given_up = value(entry.get(index_end..index_end.wrapping_add(pc_bytes)));
            (at == offset || given_up == offset.wrapping_add(1)).then_some(index)?.checked_sub(1)
        })
    }
}

/// Returns the instruction that a word of an interpreter's frame gives.
pub(crate) fn interpreted_instruction(layout: &Layout, word: usize) -> Option<i64> {
    // The word counts from the array's beginning, less the mark of its pointer.
    small_integer(word)?.checked_sub(layout.instructions as i64)?.checked_add(1)
}
