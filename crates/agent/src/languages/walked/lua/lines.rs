//! The line of an instruction.

use crate::languages::readable::Readable;
use crate::languages::walked::lua::layout::{Layout, Lines};

/// Difference that means that the line is among the pairs.
const IN_PAIRS: i8 = i8::MIN;
const PAIR_BYTES: usize = 8;
/// Largest distance from a pair to an instruction (128 in interpreters that are built as usual).
const DIFFERENCES_MAX: usize = 1 << 12;

/// Returns the line of the instruction with an index; 0 if it is not known.
pub(super) fn line(readable: &mut Readable, layout: &Layout, prototype: usize, number: usize) -> u32 {
    find(readable, layout, prototype, number).unwrap_or(0)
}

fn find(readable: &mut Readable, layout: &Layout, prototype: usize, number: usize) -> Option<u32> {
    let count = readable.half(prototype.wrapping_add(layout.line_count))? as usize;
    let lines = readable.word(prototype.wrapping_add(layout.lines))?;
    if number >= count || lines == 0 {
        return None;
    }
    let Lines::Differences { absolute, absolute_count } = layout.line_form else {
        return readable.half(lines.checked_add(number.checked_mul(4)?)?);
    };
    let pairs = readable.word(prototype.wrapping_add(absolute))?;
    let pair_count = readable.half(prototype.wrapping_add(absolute_count))? as usize;
    let mut pair = |index: usize| -> Option<(usize, u32)> {
        let at = pairs.checked_add(index.checked_mul(PAIR_BYTES)?)?;
        Some((readable.half(at)? as usize, readable.half(at.wrapping_add(4))?))
    };
    // The last pair at or before the instruction.
    let (mut low, mut high) = (0, pair_count);
    while low < high {
        let middle = low.wrapping_add(high.wrapping_sub(low) / 2);
        if pair(middle)?.0 <= number { low = middle.wrapping_add(1) } else { high = middle }
    }
    let (first, mut line) = match low.checked_sub(1) {
        Some(index) => {
            let (at, line) = pair(index)?;
            (at.wrapping_add(1), line)
        }
        None => (0, readable.half(prototype.wrapping_add(layout.first_line))?),
    };
    let steps = number.wrapping_add(1).checked_sub(first)?;
    if steps > DIFFERENCES_MAX {
        return None;
    }
    for &step in readable.bytes(lines.checked_add(first)?, steps)? {
        let step = step.cast_signed();
        if step == IN_PAIRS {
            return None;
        }
        line = line.checked_add_signed(i32::from(step))?;
    }
    Some(line)
}
