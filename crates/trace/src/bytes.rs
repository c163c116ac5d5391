//! Numbers and strings as bytes: little-endian; LEB128 for numbers that are usually small.

use crate::error::Malformed;

/// Appends to a byte vector.
pub(crate) trait PutBytes {
    fn put_varint(&mut self, value: u64);
    fn put_text(&mut self, text: &str);
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl PutBytes for Vec<u8> {
    #[inline(always)]
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_text(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Maps signed numbers of small magnitude to small unsigned numbers.
#[inline(always)]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Inverse of [`zigzag`].
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Reads from a byte slice; never beyond its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take<'a> {
    left: &'a [u8],
}

const SHORT: Malformed = Malformed("it ends too early");

impl<'a> Take<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(SHORT)?;
        self.left = left;
        Ok(taken)
    }

    #[inline(always)]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (&byte, left) = self.left.split_first().ok_or(SHORT)?;
        self.left = left;
        Ok(byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        let mut word = [0; 4];
        word.copy_from_slice(self.bytes(4)?);
        Ok(u32::from_le_bytes(word))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(u64::from_le_bytes(word))
    }

    #[inline(always)]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let first = self.u8()?;
        if first < 0x80 { Ok(u64::from(first)) } else { self.long_varint(first) }
    }

    fn long_varint(&mut self, first: u8) -> Result<u64, Malformed> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..70).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is longer than 64 bits"))
    }

    /// Reads a varint that must fit 32 bits.
    #[inline(always)]
    pub(crate) fn varint32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number is longer than 32 bits"))
    }

    /// Reads a count of items of at least one byte each. The count is refused if it exceeds the
    /// bytes that are left, which bounds the memory allocated for the items.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        if count > self.left.len() as u64 {
            return Err(Malformed("it claims more items than it has bytes"));
        }
        Ok(count as usize)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let count = self.count()?;
        Ok(String::from_utf8_lossy(self.bytes(count)?).into_owned())
    }

    pub(crate) fn byte_string(&mut self) -> Result<Vec<u8>, Malformed> {
        let count = self.count()?;
        self.bytes(count).map(<[u8]>::to_vec)
    }
}
