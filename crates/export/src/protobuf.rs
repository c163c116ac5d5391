//! Writer of protocol buffers.

use std::collections::HashMap;

/// Message being written. Numbers that are 0 and empty packed lists are left out, as in proto3.
#[derive(Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Appends the tag and the length of a message of `bytes` bytes.
    pub(crate) fn head(&mut self, field: u64, bytes: usize) {
        self.varint(field << 3 | 2);
        self.varint(bytes as u64);
    }

    pub(crate) fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    pub(crate) fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        if !packed.0.is_empty() {
            self.message(field, &packed);
        }
    }
}

/// String table: texts by number. Number 0 is the empty text.
#[derive(Debug)]
pub(crate) struct Strings {
    numbers: HashMap<String, u64>,
    pub(crate) texts: Vec<String>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { numbers: HashMap::from([(String::new(), 0)]), texts: vec![String::new()] }
    }
}

impl Strings {
    pub(crate) fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}
