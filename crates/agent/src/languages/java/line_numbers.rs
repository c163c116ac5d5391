//! A method's line table, as HotSpot packs it: pairs of (instruction, line), each as differences
//! from the pair before.
//!
//! ```text
//! | iiiiilll |                     five bits and three, where both are small
//! | ff | instruction | line |      two signed numbers
//! | 00 |                           the end
//! ```

use crate::languages::java::small_numbers::SmallNumbers;
use crate::languages::readable::Readable;

/// Largest number of pairs that are read.
const PAIRS_MAX: usize = 1 << 16;
const END: u8 = 0;
const LONG: u8 = 0xff;

/// Returns the line of an instruction, from the table at `at`, and the table's first line. The
/// table need not be in order.
pub(crate) fn line(readable: &mut Readable, at: usize, version: u32, instruction: i32) -> Option<(u32, u32)> {
    let mut numbers = SmallNumbers::new(at, version);
    let (mut index, mut line) = (0_i32, 0_i32);
    let mut first = None;
    let mut best: Option<(i32, i32)> = None;
    for _ in 0..PAIRS_MAX {
        match numbers.byte(readable)? {
            END => {
                let line_of = |line: i32| u32::try_from(line).ok();
                return Some((best.and_then(|(_, line)| line_of(line)).unwrap_or(0), line_of(first?)?));
            }
            LONG => {
                index = index.wrapping_add(numbers.signed(readable)?);
                line = line.wrapping_add(numbers.signed(readable)?);
            }
            pair => {
                index = index.wrapping_add(i32::from(pair >> 3));
                line = line.wrapping_add(i32::from(pair & 7));
            }
        }
        first.get_or_insert(line);
        if index <= instruction && best.is_none_or(|(nearest, _)| index >= nearest) {
            best = Some((index, line));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_at_or_before_an_instruction_tells_its_line() {
        // 0: line 10 (long), 4: line 11, 9: line 9 (long), 12: line 13.
        static TABLE: [u8; 9] = [0xff, 0, 20, 4 << 3 | 1, 0xff, 10, 3, 3 << 3 | 4, 0];
        // SAFETY: all zero is a valid value.
        let mut readable: Readable = unsafe { core::mem::zeroed() };
        for (instruction, expected) in [(0, 10), (3, 10), (4, 11), (8, 11), (9, 9), (11, 9), (99, 13)] {
            let found = line(&mut readable, TABLE.as_ptr() as usize, 17, instruction);
            assert_eq!(found, Some((expected, 10)), "{instruction}");
        }
        assert_eq!(line(&mut readable, TABLE.as_ptr() as usize, 17, -1), Some((0, 10)));
    }
}
