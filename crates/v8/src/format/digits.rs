//! Decoder for decimal numbers in a block of text, many at a time.
//!
//! A snapshot consists mostly of short numbers: 3.7 bytes each with their comma. A loop over bytes
//! spends its time on mispredicted branches (the length of the next number). Here 64 bytes become a
//! mask of the bytes that are not digits. Set bits of "non-digit after a digit" mark the ends of
//! numbers. Each number is computed from the 8 bytes before its end, without a branch on its
//! length.

/// Number of padding bytes before a block's text: decoding reads 17 bytes before the end of the
/// first number.
pub(crate) const FRONT: usize = 24;
/// Number of bytes decoded as a group.
pub(crate) const GROUP: usize = 64;

/// Piece of text that starts and ends between rows.
///
/// ```text
///  |<- 24 spaces ->|<- text ... ->|<- a space or more, to a multiple of 64 ->|
/// ```
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// Offset of the text in the file.
    pub(crate) offset: u64,
}

impl Block {
    pub(crate) fn begin(&mut self, offset: u64) {
        self.bytes.clear();
        self.bytes.resize(FRONT, b' ');
        self.offset = offset;
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.bytes[FRONT..]
    }

    /// Takes the padding away from a text of that length.
    pub(crate) fn unfinish(&mut self, text_bytes: usize) {
        self.bytes.truncate(FRONT + text_bytes);
    }

    /// Pads the text so that it can be decoded; a number at its end must have a byte after it.
    pub(crate) fn finish(&mut self) {
        let text = self.bytes.len() - FRONT;
        self.bytes.resize(FRONT + (text + 1).next_multiple_of(GROUP), b' ');
    }
}

/// Numbers in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    values: Vec<u32>,
    count: usize,
    /// Index and value of numbers from `u32::MAX` on, for which `values` holds `u32::MAX`.
    wide: Vec<(usize, u64)>,
}

/// Reason why decoding stopped; positions count from the start of the block's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadDigits {
    Byte { at: usize, byte: u8 },
    TooLong { at: usize },
}

impl Numbers {
    pub(crate) fn values(&self) -> &[u32] {
        &self.values[..self.count]
    }

    pub(crate) fn wide(&self) -> &[(usize, u64)] {
        &self.wide
    }

    /// Returns the number at `index`, of any size.
    pub(crate) fn get(&self, index: usize) -> u64 {
        match self.values[index] {
            u32::MAX => {
                self.wide.binary_search_by_key(&index, |&(at, _)| at).map_or(0, |found| self.wide[found].1)
            }
            value => u64::from(value),
        }
    }

    /// Replaces the numbers by those of `block`.
    pub(crate) fn decode(&mut self, block: &Block) -> Result<(), BadDigits> {
        self.count = 0;
        self.wide.clear();
        let bytes = &block.bytes[..];
        let groups = bytes.len().saturating_sub(FRONT) / GROUP;
        let mut before = 1u64;
        for group in 0..groups {
            let begin = group * GROUP;
            // Window of the bytes before the group and the group itself.
            let Some(window) = bytes[begin..].first_chunk::<{ FRONT + GROUP }>() else { break };
            let Some(text) = window[FRONT..].first_chunk::<GROUP>() else { break };
            let masks = classify(text);
            if masks.bad != 0 {
                let at = masks.bad.trailing_zeros() as usize;
                return Err(BadDigits::Byte { at: begin + at, byte: text[at & 63] });
            }
            let mut ends = masks.no_digit & !(masks.no_digit << 1 | before);
            before = masks.no_digit >> 63;
            if self.values.len() < self.count + 32 {
                self.values.resize((self.count + 32).max(self.values.len() * 2), 0);
            }
            let Some(out) = self.values[self.count..].first_chunk_mut::<32>() else { break };
            let mut filled = 0;
            while ends != 0 {
                let at = ends.trailing_zeros() as usize & 63;
                ends &= ends - 1;
                let word = word_before(window, at + FRONT);
                let no_digit = no_digits(word);
                let value = if no_digit == 0 && window[at + FRONT - 9].is_ascii_digit() {
                    let high = word_before(window, at + FRONT - 8);
                    let high_no_digit = no_digits(high);
                    // Real numbers have 53 bits, which are 16 digits.
                    if high_no_digit == 0 && window[at + FRONT - 17].is_ascii_digit() {
                        return Err(BadDigits::TooLong { at: begin + at });
                    }
                    let value = digits(high, high_no_digit) * 100_000_000 + digits(word, 0);
                    if value >= u64::from(u32::MAX) {
                        self.wide.push((self.count + filled, value));
                    }
                    value.min(u64::from(u32::MAX))
                } else {
                    digits(word, no_digit)
                };
                out[filled & 31] = value as u32;
                filled += 1;
            }
            self.count += filled;
        }
        Ok(())
    }
}

/// Returns the 8 bytes before `end`, the last of them in the highest byte.
#[inline(always)]
fn word_before(window: &[u8; FRONT + GROUP], end: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&window[end - 8..end]);
    u64::from_le_bytes(word)
}

/// Returns the high bit of each byte that is not a digit.
#[inline(always)]
pub(crate) fn no_digits(word: u64) -> u64 {
    let distance = word ^ 0x3030_3030_3030_3030;
    // A byte is a digit if its distance is below 10; the sum must not carry into the next byte.
    (((distance & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | distance) & 0x8080_8080_8080_8080
}

/// Returns the value of the digits at the end of `word`, after its last non-digit.
#[inline(always)]
pub(crate) fn digits(word: u64, no_digit: u64) -> u64 {
    // Bytes before the digits become zero: leading zeros of the number. The lowest bit is isolated
    // in the reverse order of bytes, as a search for the highest bit is slow on some processors.
    let reversed = no_digit.swap_bytes();
    let kept = ((reversed & reversed.wrapping_neg()) >> 7).wrapping_sub(1).swap_bytes();
    let word = word & kept & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let even = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let odd = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    even.wrapping_add(odd) >> 32
}

pub(crate) struct Masks {
    pub(crate) no_digit: u64,
    /// Bytes that are neither digits, commas nor white space.
    pub(crate) bad: u64,
}

/// Classifies bytes by simple loops, which the compiler vectorises; intrinsics would need `unsafe`.
#[inline(always)]
pub(crate) fn classify(text: &[u8; GROUP]) -> Masks {
    let (mut is_no_digit, mut is_bad) = ([0u8; GROUP], [0u8; GROUP]);
    for at in 0..GROUP {
        let byte = text[at];
        is_no_digit[at] = u8::from(byte.wrapping_sub(b'0') >= 10);
        is_bad[at] = is_no_digit[at] & u8::from(byte != b',') & u8::from(byte > b' ');
    }
    let any_bad = is_bad.iter().fold(0, |seen, &byte| seen | byte);
    Masks { no_digit: bits(&is_no_digit), bad: if any_bad == 0 { 0 } else { bits(&is_bad) } }
}

/// Packs bytes of 0 or 1 into bits: bit n for byte n.
#[inline(always)]
fn bits(bytes: &[u8; GROUP]) -> u64 {
    let mut bits = 0;
    for (part, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication gathers the eight lowest bits in the highest byte.
        bits |= (u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (part * 8);
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(text: &str) -> Result<Vec<u64>, BadDigits> {
        let mut block = Block::default();
        block.begin(0);
        block.bytes.extend_from_slice(text.as_bytes());
        block.finish();
        let mut numbers = Numbers::default();
        numbers.decode(&block)?;
        Ok((0..numbers.values().len()).map(|index| numbers.get(index)).collect())
    }

    #[test]
    fn numbers_of_every_length_come_out() {
        let numbers: Vec<u64> = (0..16).map(|power| 10u64.pow(power) - u64::from(power % 2 == 1)).collect();
        let text = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        assert_eq!(decoded(&text).unwrap(), numbers);
        assert_eq!(
            decoded("4294967294,4294967295,4294967296").unwrap(),
            [4294967294, 4294967295, 4294967296]
        );
        let longest = (1 << 53) - 1;
        assert_eq!(decoded(&format!("{longest},1,{longest}")).unwrap(), [longest, 1, longest]);
        assert_eq!(decoded("").unwrap(), [] as [u64; 0]);
        assert_eq!(decoded("00000000000012").unwrap(), [12]);
    }

    #[test]
    fn strange_bytes_and_endless_numbers_are_refused() {
        assert_eq!(decoded("1,2,x"), Err(BadDigits::Byte { at: 4, byte: b'x' }));
        assert_eq!(decoded("1,-2"), Err(BadDigits::Byte { at: 2, byte: b'-' }));
        assert_eq!(decoded("1,2.5"), Err(BadDigits::Byte { at: 3, byte: b'.' }));
        assert_eq!(decoded("1,\u{e4}"), Err(BadDigits::Byte { at: 2, byte: 0xc3 }));
        assert_eq!(decoded("12345678901234567"), Err(BadDigits::TooLong { at: 17 }));
    }

    proptest! {
        #[test]
        fn any_numbers_with_any_white_space_come_out(
            numbers in prop::collection::vec((0u64..10_000_000_000_000_000, 0u32..17, "[ \n\r\t]{0,3},[ \n]{0,2}"), 0..200),
        ) {
            let expected: Vec<u64> = numbers.iter().map(|&(value, digits, _)| value % 10u64.pow(digits.min(16))).collect();
            let text: String = numbers.iter().zip(&expected).map(|((_, _, gap), value)| format!("{value}{gap}")).collect();
            prop_assert_eq!(decoded(&text).unwrap(), expected);
        }
    }
}
