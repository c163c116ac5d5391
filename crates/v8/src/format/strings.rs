//! String table.

use std::borrow::Cow;

use crate::{Error, Result};

/// Placeholder for a name that is not in the file.
pub(crate) const NOT_IN_FILE: &[u8] = b"(name not in the file)";

/// All strings in one piece of memory, as WTF-8 (see [`crate::utf16_units`]).
#[derive(Debug, Default, Clone)]
pub struct Strings {
    text: Vec<u8>,
    /// Lower 32 bits of each string's end.
    ends: Vec<u32>,
    /// First string whose end lies beyond each multiple of 4 GiB.
    wraps: Vec<u32>,
}

impl Strings {
    /// Number of strings.
    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns the string of that number; empty if the number is too large.
    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let Some(&low) = self.ends.get(number as usize) else { return &[] };
        let begin = match number {
            0 => 0,
            _ => self.high(number - 1) | self.ends[number as usize - 1] as usize,
        };
        &self.text[begin..self.high(number) | low as usize]
    }

    /// Returns the string as a `str`; invalid parts become U+FFFD.
    pub fn text(&self, number: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.get(number))
    }

    /// Returns the number of the first string with this text.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        (0..self.count()).find(|&number| self.get(number) == text)
    }

    /// Adds a string.
    pub fn push(&mut self, text: &[u8]) -> Result<u32> {
        self.text.extend_from_slice(text);
        self.end_string()
    }

    /// Buffer to which the next string's text is appended, before [`Self::end_string`].
    pub(crate) fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Ends the string that was appended.
    pub(crate) fn end_string(&mut self) -> Result<u32> {
        let number = u32::try_from(self.ends.len())
            .ok()
            .filter(|&number| number < u32::MAX)
            .ok_or(Error::TooMany { what: "strings", count: self.ends.len() as u64 })?;
        let end = self.text.len() as u64;
        while (end >> 32) as usize > self.wraps.len() {
            self.wraps.push(number);
        }
        self.ends.push(end as u32);
        Ok(number)
    }

    /// Text, lower half of each end, and first string beyond each multiple of 4 GiB.
    pub(crate) fn parts(&self) -> (&[u8], &[u32], &[u32]) {
        (&self.text, &self.ends, &self.wraps)
    }

    /// Builds the table from [`Self::parts`]. Returns `None` unless the ends ascend within the
    /// text.
    pub(crate) fn from_parts(text: Vec<u8>, ends: Vec<u32>, wraps: Vec<u32>) -> Option<Self> {
        let strings = Self { text, ends, wraps };
        let mut last = 0;
        for number in 0..strings.count() {
            let end = strings.high(number) | strings.ends[number as usize] as usize;
            if end < last || end > strings.text.len() {
                return None;
            }
            last = end;
        }
        Some(strings)
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    #[inline]
    fn high(&self, number: u32) -> usize {
        if self.wraps.is_empty() {
            return 0;
        }
        self.wraps.partition_point(|&wrap| wrap <= number) << 32
    }
}
