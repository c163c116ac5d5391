//! Translations: the functions that an optimized function's frame stands for, which were inlined
//! into it, each with its instruction. V8 stores them to return to code that is not optimized.
//!
//! ```text
//! begin  further-back frames frames-of-functions ..
//!   frame of a function  instruction function ..      outermost first
//!     where its values are ..
//! ```
//! Operations that a translation has in common with the one before are left out, and counted.

use crate::languages::v8::variable_bytes::Numbers;

/// The operations of a version: number of operands of each, and some operation numbers.
#[derive(Debug)]
pub(crate) struct Opcodes {
    operands: &'static [u8],
    /// First operation that begins a translation, and number of such operations.
    begin: (usize, usize),
    /// First operation for the frame of a function, and number of such operations; two for
    /// builtins' frames follow.
    frame: (usize, usize),
    /// Operation that repeats operations of the translation before, as many as its operand says. 0:
    /// this version has no such operation, and writes operation numbers in the format of operands.
    same_as_before: usize,
}

const OLDEST_FRAMES: (usize, usize) = (18, 1);

/// Operations of each version, from `translation-opcode.h`.
pub(crate) static V10_2: Opcodes = Opcodes {
    operands: b"2103113131111111115334111112",
    begin: (3, 1),
    frame: OLDEST_FRAMES,
    same_as_before: 0,
};
pub(crate) static V11_3: Opcodes = Opcodes {
    operands: b"103311313111112111111115333401111121",
    begin: (2, 2),
    frame: (23, 2),
    same_as_before: 35,
};
pub(crate) static V12_4: Opcodes = Opcodes {
    operands: b"5333213432103311111111111111111101111121",
    begin: (12, 2),
    frame: (0, 2),
    same_as_before: 39,
};
pub(crate) static V13_6: Opcodes = Opcodes {
    operands: b"643321343331003311101111111111111111101111121",
    begin: (14, 2),
    frame: (0, 2),
    same_as_before: 44,
};

/// Largest number of functions that one frame of the stack stands for.
pub(crate) const FRAMES_MAX: usize = 31;
/// Largest number of operations of a translation that are read.
const OPERATIONS_MAX: usize = 1 << 14;

/// A frame of a function: its instruction, and the index of the function among the literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FunctionFrame {
    pub(crate) instruction: i64,
    pub(crate) function: usize,
}

/// Reads operations, some of which are repeated from the translation before.
struct Operations<'a> {
    opcodes: &'a Opcodes,
    here: Numbers<'a>,
    before: Numbers<'a>,
    /// Number of operations, including the present one, that are repeated from the translation
    /// before.
    left: u64,
    /// Number of operations since the last repeated one.
    since: usize,
}

impl Operations<'_> {
    fn operand_count(&self, opcode: usize) -> Option<usize> {
        self.opcodes.operands.get(opcode).map(|&digit| usize::from(digit.wrapping_sub(b'0')))
    }

    fn next(&mut self) -> Option<usize> {
        let same = self.opcodes.same_as_before;
        if same == 0 {
            return usize::try_from(self.here.signed()?).ok();
        }
        self.left = self.left.saturating_sub(1);
        if self.left != 0 {
            return Some(usize::from(self.before.byte()?));
        }
        let mut opcode = usize::from(self.here.byte()?);
        let count = self.opcodes.operands.len();
        if opcode >= count {
            self.left = opcode.wrapping_sub(count) as u64;
            opcode = same;
        } else if opcode == same {
            self.left = self.here.unsigned()?;
        }
        if self.is_begin(opcode) {
            let begin = self.here.at.wrapping_sub(1);
            let mut ahead = self.here;
            let further_back = ahead.unsigned()?;
            if further_back != 0 {
                self.before.at = begin.checked_sub(usize::try_from(further_back).ok()?)?;
            }
            self.since = 1;
        } else if opcode == same {
            for _ in 0..self.since {
                let skipped = usize::from(self.before.byte()?);
                for _ in 0..self.operand_count(skipped)? {
                    self.before.unsigned()?;
                }
            }
            self.since = 0;
            opcode = usize::from(self.before.byte()?);
        } else {
            self.since = self.since.wrapping_add(1);
        }
        Some(opcode)
    }

    fn operand(&mut self) -> Option<i64> {
        if self.left != 0 { self.before.signed() } else { self.here.signed() }
    }

    fn is_begin(&self, opcode: usize) -> bool {
        let (first, count) = self.opcodes.begin;
        opcode.wrapping_sub(first) < count
    }
}

/// Writes the frames of the translation that begins at `start`, the outermost first, and returns
/// their number. Returns `None` if it is not valid, or has too many.
pub(crate) fn frames(
    opcodes: &Opcodes,
    translations: &[u8],
    start: usize,
    frames: &mut [FunctionFrame; FRAMES_MAX],
) -> Option<usize> {
    let here = Numbers { bytes: translations, at: start };
    let mut operations = Operations { opcodes, here, before: here, left: 0, since: 0 };
    let opcode = operations.next()?;
    if !operations.is_begin(opcode) {
        return None;
    }
    let head = [operations.operand()?, operations.operand()?, operations.operand()?];
    let [_, second, third] = head;
    let mut wanted = if opcodes.same_as_before == 0 { second } else { third };
    let mut count = 0_usize;
    for _ in 0..OPERATIONS_MAX {
        if wanted <= 0 {
            return Some(count);
        }
        let opcode = operations.next()?;
        let operand_count = operations.operand_count(opcode)?;
        let (first, kinds) = opcodes.frame;
        let kind = opcode.wrapping_sub(first);
        let mut operands = [0_i64; 2];
        for number in 0..operand_count {
            let operand = operations.operand()?;
            if let Some(place) = operands.get_mut(number) {
                *place = operand;
            }
        }
        if kind < kinds {
            let [instruction, function] = operands;
            *frames.get_mut(count)? =
                FunctionFrame { instruction, function: usize::try_from(function).ok()? };
            count = count.wrapping_add(1);
        }
        if kind < kinds.wrapping_add(2) {
            wanted = wanted.wrapping_sub(1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(opcodes: &Opcodes, bytes: &[u8], start: usize) -> Option<Vec<(i64, usize)>> {
        let mut found = [FunctionFrame::default(); FRAMES_MAX];
        let count = frames(opcodes, bytes, start, &mut found)?;
        Some(found.iter().take(count).map(|frame| (frame.instruction, frame.function)).collect())
    }

    /// Translations that V8 has written, of a function with three others inlined.
    #[test]
    fn functions_are_found_in_translations_of_each_version() {
        let oldest = [6, 8, 6, 0, 36, 50, 30, 8, 0, 0, 36, 0x1a, 4, 2, 0, 0, 36, 4, 0, 0, 0, 0];
        assert_eq!(read(&V10_2, &oldest, 0), Some(vec![(25, 15), (13, 2), (2, 0)]));
        let newer = [14, 0, 4, 4, 0, 0x14, 0, 3, 0, 2, 0x35, 0, 14, 2, 2, 1, 0, 2];
        assert_eq!(read(&V13_6, &newer, 0), Some(vec![(10, 0), (7, 1)]));
        // The second translation is the first except its last frame: two operations are repeated.
        let both = [&newer[..], &[14, 18, 4, 4, 45 + 3, 0, 16, 2, 2, 1, 0, 2]].concat();
        assert_eq!(read(&V13_6, &both, 18).map(|found| found.len()), Some(2));
    }

    #[test]
    fn whatever_the_bytes_are_it_ends() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..state % 61)
                .map(|_| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    (state >> 33) as u8 % 48
                })
                .collect();
            for opcodes in [&V10_2, &V11_3, &V12_4, &V13_6] {
                read(opcodes, &bytes, state as usize % 8);
            }
            state = state.wrapping_add(1);
        }
    }
}
