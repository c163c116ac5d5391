//! Objects of V8's heap: pointers with a mark in their lowest bit, and small integers in a word's
//! upper half. An object that the collector has just moved has a forwarding address.

use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::v8::layout::{FUNCTION_KINDS, Layout};

/// `Map`: offset of the kind of its objects.
const KIND_AT: usize = 8;
const KIND_SHIFT: u32 = 32;
/// Arrays: offsets of the number of elements or bytes, and of the first one.
const LENGTH_AT: usize = 8;
pub(crate) const ELEMENTS_AT: usize = 16;
/// Strings: position of the number of characters, and offsets of the contents.
const CHARACTERS_SHIFT: u32 = 32;
const FIRST_AT: usize = 16;
const SECOND_AT: usize = 24;
/// Limit of the kinds of strings; their representation is in the lowest bits.
const STRINGS_END: usize = 128;
const REPRESENTATION: usize = 7;
const ONE_BYTE: usize = 8;
const UNCACHED: usize = 16;
/// Largest nesting of strings that consist of strings.
const STRING_DEPTH_MAX: u32 = 8;
/// Largest array of bytes that is read.
const BYTES_MAX: usize = 1 << 24;
/// Longest source that is read, in characters (V8 allows twice as many).
const CHARACTERS_MAX: usize = 1 << 29;

/// Contiguous characters of a string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Characters {
    pub(crate) bytes: &'static [u8],
    pub(crate) is_one_byte: bool,
}

/// Access to V8's heap with checks.
#[derive(Debug)]
pub(crate) struct Heap<'a> {
    pub(crate) layout: &'static Layout,
    pub(crate) readable: &'a mut Readable,
}

/// True if a word is a pointer to an object.
#[inline(always)]
pub(crate) fn is_object(word: usize) -> bool {
    word & 7 == 1
}

/// Returns the value of a small integer.
pub(crate) fn small_integer(word: usize) -> Option<i64> {
    (word as u32 == 0).then_some(word.cast_signed() as i64 >> 32)
}

impl Heap<'_> {
    /// Reads a word of an object.
    pub(crate) fn field(&mut self, object: usize, offset: usize) -> Option<usize> {
        if !is_object(object) {
            return None;
        }
        self.readable.word(object.wrapping_sub(1).wrapping_add(offset))
    }

    /// Reads four bytes of an object.
    pub(crate) fn half(&mut self, object: usize, offset: usize) -> Option<u32> {
        let word = self.field(object, offset & !7)?;
        Some(if offset & 4 == 0 { word as u32 } else { (word >> 32) as u32 })
    }

    /// Returns the present address of an object, and its kind.
    pub(crate) fn object(&mut self, pointer: usize) -> Option<(usize, usize)> {
        // A weak pointer has another bit set.
        let mut object = pointer & !2;
        let mut map = self.field(object, 0)?;
        if map & 3 == 0 {
            // The collector has moved the object.
            object = map | 1;
            map = self.field(object, 0)?;
        }
        Some((object, self.field(map, KIND_AT)? >> KIND_SHIFT & 0xffff))
    }

    /// Returns an object, if it is of a kind.
    pub(crate) fn of_kind(&mut self, pointer: usize, kind: usize) -> Option<usize> {
        self.object(pointer).filter(|&(_, found)| found == kind).map(|(object, _)| object)
    }

    /// Returns an object to which another one refers, if it is of a kind.
    pub(crate) fn member(&mut self, object: usize, offset: usize, kind: usize) -> Option<usize> {
        let pointer = self.field(object, offset)?;
        self.of_kind(pointer, kind)
    }

    /// Returns an object, if it is a function.
    pub(crate) fn function(&mut self, pointer: usize) -> Option<usize> {
        let first = self.layout.kinds.function;
        let (object, kind) = self.object(pointer)?;
        (kind.wrapping_sub(first) < FUNCTION_KINDS).then_some(object)
    }

    /// Returns the bytes of a byte array.
    pub(crate) fn bytes(&mut self, pointer: usize) -> Option<&'static [u8]> {
        let (object, _) = self.object(pointer)?;
        let length = usize::try_from(small_integer(self.field(object, LENGTH_AT)?)?).ok()?;
        if length > BYTES_MAX {
            return None;
        }
        self.readable.bytes(object.wrapping_sub(1).wrapping_add(ELEMENTS_AT), length)
    }

    /// Returns the instructions of an array of bytecodes.
    pub(crate) fn instructions(&mut self, array: usize) -> Option<&'static [u8]> {
        let length = usize::try_from(small_integer(self.field(array, LENGTH_AT)?)?).ok()?;
        if length > BYTES_MAX {
            return None;
        }
        self.readable.bytes(array.wrapping_sub(1).wrapping_add(self.layout.instructions), length)
    }

    /// Returns an element of an array.
    pub(crate) fn element(&mut self, array: usize, index: usize) -> Option<usize> {
        let length = small_integer(self.field(array, LENGTH_AT)?)?;
        if usize::try_from(length).is_ok_and(|length| index < length) {
            self.field(array, index.checked_mul(8)?.checked_add(ELEMENTS_AT)?)
        } else {
            None
        }
    }

    /// Returns a string, and its number of characters.
    pub(crate) fn string(&mut self, pointer: usize) -> Option<(usize, usize)> {
        let (object, kind) = self.object(pointer)?;
        if kind >= STRINGS_END {
            return None;
        }
        let characters = self.field(object, LENGTH_AT)? >> CHARACTERS_SHIFT;
        (characters <= CHARACTERS_MAX).then_some((object, characters))
    }

    /// Returns the characters of a string that is contiguous (or has an empty second part).
    pub(crate) fn characters(&mut self, pointer: usize) -> Option<Characters> {
        let mut string = pointer;
        let mut skipped = 0_usize;
        let mut count = None;
        for _ in 0..STRING_DEPTH_MAX {
            let (object, kind) = self.object(string)?;
            let (_, characters) = self.string(string)?;
            let wanted = *count.get_or_insert(characters);
            let is_one_byte = kind & ONE_BYTE != 0;
            let data = match kind & REPRESENTATION {
                // Contents in the object, or at an address of their own.
                0 => object.wrapping_sub(1).wrapping_add(FIRST_AT),
                2 if kind & UNCACHED == 0 => self.field(object, SECOND_AT)?,
                // Concatenated, sliced, or a reference to another string.
                1 => {
                    let second = self.field(object, SECOND_AT)?;
                    if self.string(second)?.1 != 0 {
                        return None;
                    }
                    string = self.field(object, FIRST_AT)?;
                    continue;
                }
                3 => {
                    skipped =
                        skipped.wrapping_add(
                            small_integer(self.field(object, SECOND_AT)?)?.cast_unsigned() as usize
                        );
                    string = self.field(object, FIRST_AT)?;
                    continue;
                }
                5 => {
                    string = self.field(object, FIRST_AT)?;
                    continue;
                }
                _ => return None,
            };
            if skipped.checked_add(wanted)? > characters {
                return None;
            }
            let width = if is_one_byte { 1 } else { 2 };
            let bytes = self.readable.bytes(data.checked_add(skipped * width)?, wanted * width)?;
            return Some(Characters { bytes, is_one_byte });
        }
        None
    }

    /// Appends a string as UTF-8 to `out`, as much as there is room for. Returns `None` if it is
    /// not a string.
    pub(crate) fn append(&mut self, pointer: usize, out: &mut Text<'_>, depth: u32) -> Option<()> {
        if let Some(characters) = self.characters(pointer) {
            characters.append(out);
            return Some(());
        }
        // Two concatenated strings.
        let (object, kind) = self.object(pointer)?;
        if kind >= STRINGS_END || kind & REPRESENTATION != 1 || depth >= STRING_DEPTH_MAX {
            return None;
        }
        for offset in [FIRST_AT, SECOND_AT] {
            let part = self.field(object, offset)?;
            self.append(part, out, depth.wrapping_add(1))?;
        }
        Some(())
    }
}

impl Characters {
    pub(crate) fn count(&self) -> usize {
        if self.is_one_byte { self.bytes.len() } else { self.bytes.len() / 2 }
    }

    /// Returns at most the characters from `first` on.
    fn from(&self, first: usize) -> &'static [u8] {
        self.bytes.get(if self.is_one_byte { first } else { first.wrapping_mul(2) }..).unwrap_or_default()
    }

    fn append(&self, out: &mut Text<'_>) {
        if self.is_one_byte {
            for &byte in self.bytes {
                out.push(char::from(byte));
            }
            return;
        }
        let units =
            self.bytes.chunks_exact(2).filter_map(|bytes| Some(u16::from_le_bytes(bytes.try_into().ok()?)));
        for character in char::decode_utf16(units) {
            out.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    /// Returns the number of lines that end between two characters.
    pub(crate) fn line_ends(&self, first: usize, end: usize) -> usize {
        let count = end.saturating_sub(first);
        if self.is_one_byte {
            let bytes = self.from(first);
            let bytes = bytes.get(..count).unwrap_or(bytes);
            let next = self.from(end).first();
            let new_lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            // A carriage return alone ends a line, too; before a line feed it does not.
            let returns =
                bytes.windows(2).filter(|pair| matches!(pair, [b'\r', other] if *other != b'\n')).count();
            let last = bytes.last() == Some(&b'\r') && next != Some(&b'\n');
            return new_lines.wrapping_add(returns).wrapping_add(usize::from(last));
        }
        let unit = |bytes: &[u8]| bytes.first_chunk::<2>().map_or(0, |bytes| u16::from_le_bytes(*bytes));
        let bytes = self.from(first);
        let pairs = bytes.chunks_exact(2).zip(bytes.chunks_exact(2).skip(1).map(Some).chain([None]));
        let ends = pairs.take(count).filter(|&(bytes, next)| match unit(bytes) {
            0x0a | 0x2028 | 0x2029 => true,
            0x0d => next.map_or(0, unit) != 0x0a,
            _ => false,
        });
        ends.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_the_language_says() {
        let narrow = Characters { bytes: b"a\nb\r\nc\rd\r", is_one_byte: true };
        let wide: Vec<u8> = "a\nb\r\nc\rd\r".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = Characters { bytes: wide.leak(), is_one_byte: false };
        for text in [narrow, wide] {
            assert_eq!(text.count(), 9);
            for (first, end, ends) in
                [(0, 0, 0), (0, 1, 0), (0, 2, 1), (0, 4, 1), (0, 5, 2), (0, 9, 4), (5, 7, 1), (4, 99, 3)]
            {
                assert_eq!(text.line_ends(first, end), ends, "{first} {end}");
            }
        }
        let separators: Vec<u8> = "x\u{2028}\u{2029}y".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(Characters { bytes: separators.leak(), is_one_byte: false }.line_ends(0, 4), 2);
    }
}
