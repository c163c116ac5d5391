//! Variable-length numbers, as HotSpot packs its tables: six bits a byte, the lowest first; a byte
//! below 192 is the last.

use crate::languages::readable::Readable;

/// Largest number of bytes of a number.
const BYTES_MAX: u32 = 5;
/// Limit of the value of a number's last byte.
const LAST_END: u32 = 192;
/// First version in which no byte is 0: each is one more.
const SHIFTED_SINCE: u32 = 20;

/// Reads numbers one after the other.
#[derive(Debug)]
pub(crate) struct SmallNumbers {
    at: usize,
    excess: u32,
}

impl SmallNumbers {
    /// Reads numbers from an address on, in a version's format.
    pub(crate) fn new(at: usize, version: u32) -> Self {
        Self { at, excess: u32::from(version >= SHIFTED_SINCE) }
    }

    /// Reads the next byte.
    pub(crate) fn byte(&mut self, readable: &mut Readable) -> Option<u8> {
        let &byte = readable.bytes(self.at, 1)?.first()?;
        self.at = self.at.wrapping_add(1);
        Some(byte)
    }

    /// Reads the next number.
    pub(crate) fn number(&mut self, readable: &mut Readable) -> Option<u32> {
        let mut sum = 0_u32;
        for place in 0..BYTES_MAX {
            let byte = u32::from(self.byte(readable)?);
            sum = sum.wrapping_add(byte.checked_sub(self.excess)?.wrapping_shl(place.wrapping_mul(6)));
            if byte < LAST_END {
                break;
            }
        }
        Some(sum)
    }

    /// Reads the next number, which may be negative.
    pub(crate) fn signed(&mut self, readable: &mut Readable) -> Option<i32> {
        let number = self.number(readable)?;
        Some((number >> 1).cast_signed() ^ (number & 1).cast_signed().wrapping_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &'static [u8], version: u32, count: usize) -> Vec<Option<u32>> {
        // SAFETY: all zero is a valid value.
        let mut readable: Readable = unsafe { core::mem::zeroed() };
        let mut numbers = SmallNumbers::new(bytes.as_ptr() as usize, version);
        (0..count).map(|_| numbers.number(&mut readable)).collect()
    }

    #[test]
    fn numbers_are_read_as_either_form_writes_them() {
        assert_eq!(
            numbers(&[0, 5, 191, 192, 0, 193, 1, 255, 255, 255, 255, 255, 0], 17, 6),
            [
                Some(0),
                Some(5),
                Some(191),
                Some(192),
                Some(193 + 64),
                Some(0_u32.wrapping_add(255 * (1 + 64 + 4096 + 262_144)).wrapping_add(255 << 24)),
            ]
        );
        // In this form a byte 0 is not valid.
        assert_eq!(
            numbers(&[1, 6, 191, 192, 1, 0, 0], 21, 5),
            [Some(0), Some(5), Some(190), Some(191), None]
        );
    }
}
