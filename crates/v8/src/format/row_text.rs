//! Fast twin of [`Numbers::decode`](super::digits::Numbers::decode) for rows whose fields are
//! known; the test of it is `rows_are_those_of_the_general_method`.
//!
//! The ends of all numbers are found first. Each column then decodes its own numbers only: a kind
//! is one or two digits, and unused fields are passed. A block with anything uncommon is
//! decoded by the general method, which also tells what is wrong.

use std::cell::Cell;

use crate::format::digits::{Block, FRONT, GROUP, classify, digits, no_digits};

/// Positions behind the numbers of a block.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    positions: Vec<u32>,
    count: usize,
}

impl Ends {
    /// Finds the numbers of a finished block. Returns false if the text has other bytes than
    /// numbers of lists have.
    pub(crate) fn find(&mut self, block: &Block) -> bool {
        self.count = 0;
        let mut before = 1;
        for (group, text) in block.bytes[FRONT..].as_chunks::<GROUP>().0.iter().enumerate() {
            let masks = classify(text);
            if masks.bad != 0 {
                return false;
            }
            let mut ends = masks.no_digit & !(masks.no_digit << 1 | before);
            before = masks.no_digit >> 63;
            if self.positions.len() < self.count + GROUP / 2 {
                self.positions.resize((self.count + GROUP / 2).max(self.positions.len() * 2), 0);
            }
            let Some(out) = self.positions[self.count..].first_chunk_mut::<{ GROUP / 2 }>() else { break };
            let begin = (FRONT + group * GROUP) as u32;
            let mut filled = 0;
            while ends != 0 {
                out[filled & (GROUP / 2 - 1)] = begin + ends.trailing_zeros();
                ends &= ends - 1;
                filled += 1;
            }
            self.count += filled;
        }
        true
    }

    /// Position behind each number, in the block's bytes.
    pub(crate) fn positions(&self) -> &[u32] {
        &self.positions[..self.count]
    }
}

/// Text of a block whose numbers are decoded by their ends.
#[derive(Debug)]
pub(crate) struct RowText<'a> {
    bytes: &'a [u8],
    is_uncommon: Cell<bool>,
}

impl<'a> RowText<'a> {
    pub(crate) fn of(block: &'a Block) -> Self {
        Self { bytes: &block.bytes, is_uncommon: Cell::new(false) }
    }

    /// Whether a number was asked for that this method cannot decode.
    pub(crate) fn is_uncommon(&self) -> bool {
        self.is_uncommon.get()
    }

    /// Number before `end`, below `u32::MAX`.
    #[inline(always)]
    pub(crate) fn number(&self, end: u32) -> u32 {
        let word = self.word(end);
        let no_digit = no_digits(word);
        let value = digits(word, no_digit);
        let is_long = no_digit == 0 && self.last::<9>(end)[0].is_ascii_digit();
        if is_long { self.long_number(end, value) } else { value as u32 }
    }

    /// Number of more than eight digits; `low` is the value of the last eight.
    #[inline]
    fn long_number(&self, end: u32, low: u64) -> u32 {
        let high = self.word(end - 8);
        let no_digit = no_digits(high);
        let value = digits(high, no_digit) * 100_000_000 + low;
        if no_digit == 0 || value >= u64::from(u32::MAX) {
            self.is_uncommon.set(true);
        }
        value as u32
    }

    /// Number of one digit before `end`.
    #[inline(always)]
    pub(crate) fn digit(&self, end: u32) -> u8 {
        let [before, digit] = self.last(end);
        if before.is_ascii_digit() {
            self.is_uncommon.set(true);
        }
        digit.wrapping_sub(b'0')
    }

    /// Number of one or two digits before `end`.
    #[inline(always)]
    pub(crate) fn two_digits(&self, end: u32) -> u8 {
        let [before, tens, digit] = self.last(end);
        let has_tens = tens.is_ascii_digit();
        if has_tens && before.is_ascii_digit() {
            self.is_uncommon.set(true);
        }
        let tens = if has_tens { tens - b'0' } else { 0 };
        tens * 10 + digit.wrapping_sub(b'0')
    }

    /// Eight bytes before `end`, the last of them in the highest byte.
    #[inline(always)]
    fn word(&self, end: u32) -> u64 {
        u64::from_le_bytes(self.last(end))
    }

    /// Bytes before `end`, of which a block has [`FRONT`] at least.
    #[inline(always)]
    fn last<const COUNT: usize>(&self, end: u32) -> [u8; COUNT] {
        self.bytes.get(..end as usize).and_then(|bytes| bytes.last_chunk()).copied().unwrap_or([b' '; COUNT])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::digits::Numbers;

    proptest! {
        #[test]
        fn rows_are_those_of_the_general_method(
            numbers in prop::collection::vec((any::<u64>(), 0u32..17, "[ \n\r\t]{0,3},[ \n]{0,2}"), 0..200),
        ) {
            let mut block = Block::default();
            block.begin(0);
            for (value, digits, gap) in &numbers {
                block.bytes.extend(format!("{}{gap}", value % 10u64.pow(*digits)).bytes());
            }
            block.finish();
            let (mut general, mut ends) = (Numbers::default(), Ends::default());
            prop_assert!(general.decode(&block).is_ok());
            prop_assert!(ends.find(&block));
            prop_assert_eq!(ends.positions().len(), numbers.len());
            for (at, &end) in ends.positions().iter().enumerate() {
                let expected = general.get(at);
                let (number, one, two) = (RowText::of(&block), RowText::of(&block), RowText::of(&block));
                let value = u64::from(number.number(end));
                let (digit, digits) = (u64::from(one.digit(end)), u64::from(two.two_digits(end)));
                let are_common = [&number, &one, &two].map(|text| !text.is_uncommon());
                prop_assert_eq!(are_common, [expected < u64::from(u32::MAX), expected < 10, expected < 100]);
                prop_assert!(!are_common[0] || value == expected);
                prop_assert!(!are_common[1] || digit == expected);
                prop_assert!(!are_common[2] || digits == expected);
            }
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_left_to_the_general_method() {
        let mut block = Block::default();
        block.begin(0);
        block.bytes.extend_from_slice(b"1,12345678901234567,000000000000000012");
        block.finish();
        let mut ends = Ends::default();
        assert!(ends.find(&block));
        let are_uncommon = ends.positions().iter().map(|&end| {
            let text = RowText::of(&block);
            text.number(end);
            text.is_uncommon()
        });
        assert_eq!(are_uncommon.collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn other_bytes_are_left_to_the_general_method() {
        for text in ["1,x", "1,-2", "1,2.5"] {
            let mut block = Block::default();
            block.begin(0);
            block.bytes.extend_from_slice(text.as_bytes());
            block.finish();
            assert!(!Ends::default().find(&block), "{text}");
        }
    }
}
