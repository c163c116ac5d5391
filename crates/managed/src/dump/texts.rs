//! Texts of a dump.

use heapr_v8::Strings;
use rustc_hash::FxHashMap;

use crate::dump_error::Result;

/// Texts, each of which is stored once. Number 0 is the empty text.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) strings: Strings,
    numbers: FxHashMap<Box<str>, u32>,
}

impl Texts {
    pub(crate) fn new() -> Result<Self> {
        let mut strings = Strings::default();
        strings.push(b"")?;
        Ok(Self { strings, numbers: FxHashMap::default() })
    }

    /// Number of a text.
    pub(crate) fn number(&mut self, text: &str) -> Result<u32> {
        if text.is_empty() {
            return Ok(0);
        }
        if let Some(&known) = self.numbers.get(text) {
            return Ok(known);
        }
        let number = self.strings.push(text.as_bytes())?;
        self.numbers.insert(text.into(), number);
        Ok(number)
    }
}
