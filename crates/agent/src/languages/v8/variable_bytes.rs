//! Variable-length numbers of V8's tables: seven bits a byte, the lowest first.

/// Reads one number after another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at = self.at.wrapping_add(1);
        Some(byte)
    }

    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift = shift.wrapping_add(7);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// Reads a number with the sign in the lowest bit; negative ones are the complement of the
    /// rest.
    pub(crate) fn zigzag(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg())
    }

    /// Reads a number with the sign in the lowest bit; the rest is the absolute value.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        let amount = (value >> 1).cast_signed();
        Some(if value & 1 == 0 { amount } else { amount.wrapping_neg() })
    }
}

/// Returns an instruction's position in its script's source, from a table of source positions.
pub(crate) fn source_position(table: &[u8], has_breakable: bool, instruction: i64) -> Option<u32> {
    let mut numbers = Numbers::new(table);
    let (mut at, mut source, mut found) = (-1_i64, 0_i64, None);
    while !numbers.is_at_end() {
        let further = if has_breakable {
            (numbers.unsigned()? >> 2).cast_signed()
        } else {
            // The sign says whether the position is a statement.
            let further = numbers.zigzag()?;
            if further < 0 { further.wrapping_add(1).wrapping_neg() } else { further }
        };
        at = at.wrapping_add(further);
        if at > instruction {
            break;
        }
        source = source.wrapping_add(numbers.zigzag()?);
        found = Some(source);
    }
    // Lowest bit: the position is in another file. Then the position plus one, in 30 bits.
    let found = found.filter(|source| source & 1 == 0)?;
    ((found >> 1 & 0x3fff_ffff) as u32).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_last_entry_that_is_not_behind() {
        // Instruction 0: position 10 (a statement); 5: 20; 9: 15.
        let encode = |value: i64| (value << 1 ^ value >> 63) as u8;
        let old = [encode(1), encode(22), encode(-6), encode(20), encode(4), encode(-10)];
        let new = [1 << 2 | 3, encode(22), 5 << 2, encode(20), 4 << 2 | 1, encode(-10)];
        for (table, has_breakable) in [(old, false), (new, true)] {
            for (instruction, position) in
                [(-1, None), (0, Some(10)), (4, Some(10)), (5, Some(20)), (70, Some(15))]
            {
                assert_eq!(source_position(&table, has_breakable, instruction), position, "{instruction}");
            }
        }
        assert_eq!(source_position(&[], true, 1), None);
        assert_eq!(source_position(&[0x80; 40], true, 1), None);
        assert_eq!(source_position(&[4, 0x80], true, 1), None);
    }
}
