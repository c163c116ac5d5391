//! Which functions an optimized function's frame stands for: those that were put into it, each with
//! the instruction that it is at. V8 keeps it so that it can go back to code that is not optimized.
//!
//! ```text
//! begin  further-back frames frames-of-functions ..
//!   frame of a function  instruction function ..      outermost first
//!     where its values are ..
//! ```
//! What a translation has in common with the one before is left out, and counted.

use crate::languages::v8::variable_bytes::Numbers;

/// The operations of a version: how many operands each has, and the numbers of some.
#[derive(Debug)]
pub(crate) struct Opcodes {
    operands: &'static [u8],
    /// The first that begins a translation, and how many there are.
    begin: (usize, usize),
    /// The same of those for the frame of a function; behind them come two for builtins'.
    frame: (usize, usize),
    /// As many operations as it says are those of the translation before; 0: there is none, and
    /// operations are written as operands are.
    same_as_before: usize,
}

const OLDEST_FRAMES: (usize, usize) = (18, 1);

/// From `translation-opcode.h`.
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

/// Frames of functions that one frame of the stack stands for.
pub(crate) const FRAMES_MAX: usize = 31;
/// Operations of a translation that are read.
const OPERATIONS_MAX: usize = 1 << 14;

/// A frame of a function: its instruction, and the literal that is the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FunctionFrame {
    pub(crate) instruction: i64,
    pub(crate) function: usize,
}

/// Reads operations, of which some are taken from the translation before.
struct Operations<'a> {
    opcodes: &'a Opcodes,
    here: Numbers<'a>,
    before: Numbers<'a>,
    /// So many, with the present one, are of the one before.
    left: u64,
    /// Operations since the last that was of the one before.
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

/// Writes the frames of the translation that begins at `start`, the outermost first; how many there
/// are. `None`: it is none, or has too many.
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

    /// As V8 wrote them, of a function with three others in it.
    #[test]
    fn functions_are_found_in_translations_of_each_version() {
        let oldest = [6, 8, 6, 0, 36, 50, 30, 8, 0, 0, 36, 0x1a, 4, 2, 0, 0, 36, 4, 0, 0, 0, 0];
        assert_eq!(read(&V10_2, &oldest, 0), Some(vec![(25, 15), (13, 2), (2, 0)]));
        let newer = [14, 0, 4, 4, 0, 0x14, 0, 3, 0, 2, 0x35, 0, 14, 2, 2, 1, 0, 2];
        assert_eq!(read(&V13_6, &newer, 0), Some(vec![(10, 0), (7, 1)]));
        // The second is the first's, but for its last frame: two operations are of that one.
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
