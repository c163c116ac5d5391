//! Lists of numbers, and the byte streams that they are encoded to.

use crate::bytes::PutBytes;

/// Capacity of a list; a power of two, so that an index needs no bounds check.
pub(super) const LIST: usize = 256;

/// Writes an item behind `count` others, and counts it if `is_taken`. Otherwise the next item
/// overwrites it. This avoids a branch.
#[inline(always)]
pub(super) fn offer<T>(list: &mut [T; LIST], count: &mut usize, item: T, is_taken: bool) {
    list[*count % LIST] = item;
    *count += usize::from(is_taken);
}

/// Variant of [`offer`] that branches on `is_taken`, unless `IS_VARIED`. With the branch, later
/// instructions need not wait for the condition.
#[inline(always)]
pub(super) fn offer_if<const IS_VARIED: bool, T>(
    list: &mut [T; LIST],
    count: &mut usize,
    item: T,
    is_taken: bool,
) {
    if IS_VARIED || is_taken {
        offer(list, count, item, is_taken);
    }
}

/// Number of numbers that are encoded with one width, that of the largest of them. A list has a
/// large number now and then (the time of an event after a pause), which would slow down all of it.
/// (With 16, 32 or all numbers together the columns take 0.3 ns more per event.)
const TOGETHER: usize = 64;
/// Largest length of a varint in bytes.
const VARINT_BYTES: usize = 10;
/// Space for the bytes of these numbers, rounded up to a power of two, so that an index needs no
/// bounds check. Each number is written as a whole word; the next number overwrites its unused
/// bytes.
const FEW_BYTES: usize = (TOGETHER * VARINT_BYTES).next_power_of_two();
const FEW_ROOM: usize = FEW_BYTES + size_of::<u64>();
/// Space for a list, and for the words that may be written beyond its end.
const ROOM: usize = LIST * VARINT_BYTES + FEW_ROOM;

/// The bytes of a column.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Contents up to `end`, followed by bytes without meaning: space that is ready for use.
    bytes: Vec<u8>,
    end: usize,
}

impl Stream {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Writes into the space behind the end. `write` returns the number of bytes to append.
    #[inline(always)]
    fn put_with(&mut self, write: impl FnOnce(&mut [u8; ROOM]) -> usize) {
        if self.bytes.len() < self.end + ROOM {
            self.bytes.resize(2 * (self.end + ROOM), 0);
        }
        if let Some(room) = self.bytes[self.end..].first_chunk_mut() {
            self.end += write(room).min(ROOM);
        }
    }

    /// Appends at most [`LIST`] bytes.
    #[inline(always)]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.put_with(|room| {
            room[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        });
    }

    /// Appends at most [`LIST`] numbers of two bytes.
    #[inline(always)]
    pub(super) fn put_words(&mut self, words: &[u16]) {
        self.put_with(|room| {
            for (bytes, word) in room.chunks_exact_mut(2).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            2 * words.len()
        });
    }

    /// Appends at most [`LIST`] numbers as varints.
    #[inline(always)]
    pub(super) fn put_varints<T: Copy + Into<u64>>(&mut self, numbers: &[T]) {
        self.put_with(|room| {
            let mut end = 0;
            let (all_of, rest) = numbers.as_chunks::<TOGETHER>();
            for few in all_of {
                end += put_few(few, &mut room[end..]);
            }
            end + put_few(rest, &mut room[end..])
        });
    }
}

/// Writes numbers as varints; returns the number of bytes.
#[inline(always)]
fn put_few<T: Copy + Into<u64>>(numbers: &[T], room: &mut [u8]) -> usize {
    let Some(room) = room.first_chunk_mut::<FEW_ROOM>() else { return 0 };
    let all = numbers.iter().fold(0, |all, &number| all | number.into());
    if all < 1 << 7 {
        room.iter_mut().zip(numbers).for_each(|(byte, &number)| *byte = number.into() as u8);
        numbers.len()
    } else if all < 1 << 14 {
        put_each(room, numbers, varint_of_14_bits)
    } else if all < 1 << 28 {
        put_each(room, numbers, varint_of_28_bits)
    } else if all < 1 << 56 {
        put_each(room, numbers, varint_of_56_bits)
    } else {
        put_long(room, numbers)
    }
}

#[cold]
fn put_long<T: Copy + Into<u64>>(room: &mut [u8; FEW_ROOM], numbers: &[T]) -> usize {
    let mut bytes = Vec::new();
    numbers.iter().for_each(|&number| bytes.put_varint(number.into()));
    room[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

/// Writes each number as a word of which only the first bytes count. Returns the number of counted
/// bytes.
#[inline(always)]
fn put_each<const N: usize, T: Copy + Into<u64>>(
    room: &mut [u8; FEW_ROOM],
    numbers: &[T],
    varint: impl Fn(u64) -> ([u8; N], usize),
) -> usize {
    let mut end = 0;
    for &number in numbers {
        let (word, length) = varint(number.into());
        room[end % FEW_BYTES..][..N].copy_from_slice(&word);
        end += length;
    }
    end
}

/// Continuation bits of a varint, by the number of bytes that have one.
const MORE: [u64; 8] =
    [0, 0x80, 0x8080, 0x80_8080, 0x8080_8080, 0x80_8080_8080, 0x8080_8080_8080, 0x80_8080_8080_8080];

#[inline(always)]
fn varint_of_14_bits(number: u64) -> ([u8; 2], usize) {
    let number = number as u32;
    let is_long = number > 0x7f;
    // Adding the upper seven bits again shifts them left by one.
    let bytes = number + (number & 0x3f80);
    ((bytes as u16 | u16::from(is_long) << 7).to_le_bytes(), 1 + usize::from(is_long))
}

#[inline(always)]
fn varint_of_28_bits(number: u64) -> ([u8; 4], usize) {
    let number = number as u32;
    // Spread to fourteen bits per half, then to seven per byte.
    let halves = number & 0x3fff | (number & 0x0fff_c000) << 2;
    let bytes = halves & 0x007f_007f | (halves & 0x3f80_3f80) << 1;
    let more = [7, 14, 21].map(|bits| usize::from(number >> bits != 0)).iter().sum::<usize>();
    ((bytes | MORE[more % 8] as u32).to_le_bytes(), more + 1)
}

#[inline(always)]
fn varint_of_56_bits(number: u64) -> ([u8; 8], usize) {
    let halves = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let quarters = halves & 0x3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    let bytes = quarters & 0x007f_007f_007f_007f | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    // Index of the highest bit, divided by seven.
    let more = ((number | 1).ilog2() * 37 / 256) as usize;
    ((bytes | MORE[more % 8]).to_le_bytes(), more + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_the_varints_that_are_written_one_by_one() {
        let borders =
            (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1, u64::MAX >> bits]);
        let all: Vec<u64> = borders.collect();
        for largest in [(1 << 7) - 1, (1 << 14) - 1, (1 << 28) - 1, (1 << 56) - 1, u64::MAX] {
            let numbers: Vec<u64> = all.iter().copied().filter(|&number| number <= largest).collect();
            let (mut stream, mut expected) = (Stream::default(), Vec::new());
            stream.put_varints(&numbers);
            numbers.iter().for_each(|&number| expected.put_varint(number));
            assert_eq!(stream.bytes(), expected);
            // Behind other numbers, and again in a stream that was cleared.
            stream.put_varints(&numbers);
            assert_eq!(stream.bytes(), expected.repeat(2));
            stream.clear();
            stream.put_varints(&numbers[..1]);
            assert_eq!(stream.bytes(), [0]);
        }
    }

    #[test]
    fn a_list_of_the_longest_numbers_has_room() {
        let mut stream = Stream::default();
        for _ in 0..3 {
            stream.put_varints(&[u64::MAX; LIST]);
        }
        assert_eq!(stream.bytes().len(), 3 * LIST * VARINT_BYTES);
        stream.clear();
        // Large numbers among small ones, and numbers of 16 bits.
        let numbers =
            std::array::from_fn::<u16, LIST, _>(|at| if at % 37 == 36 { 40_000 } else { at as u16 % 90 });
        stream.put_varints(&numbers);
        let mut expected = Vec::new();
        numbers.iter().for_each(|&number| expected.put_varint(u64::from(number)));
        assert_eq!(stream.bytes(), expected);
    }
}
