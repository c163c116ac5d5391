//! Texts of a heap: names, and contents where they are wanted.

use rustc_hash::FxHashMap;

/// Texts without duplicates.
#[derive(Debug, Default)]
pub struct Strings {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    /// Returns the index of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// Text of an index; empty if the index is unknown.
    #[must_use]
    pub fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    /// All texts, by index.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.texts
    }
}
