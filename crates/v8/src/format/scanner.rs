//! Scanner for a snapshot's text: single tokens, and blocks of whole rows of numbers.

use heapr_table::json_escapes::{Escapes, push_unescaped};
use memchr::{memchr, memchr_iter, memchr2, memrchr};

use crate::format::digits::{Block, FRONT};
use crate::format::input::Input;
use crate::format::whole_number::whole_number_in;
use crate::{Error, Result};

/// Number of bytes read at once: small enough to stay in the cache between reading and decoding.
const BLOCK_BYTES: usize = 256 << 10;
/// Largest length of a row of numbers; only white space makes a row this long.
const ROW_LIMIT_BYTES: usize = 16 << 20;

/// Window that moves over the text.
pub(crate) struct Scanner {
    input: Input,
    buffer: Vec<u8>,
    position: usize,
    /// Offset of `buffer` in the text.
    buffer_offset: u64,
    is_ended: bool,
}

/// Description of a block of rows.
pub(crate) struct TakenRows {
    pub(crate) number_count: usize,
    /// Whether the list's `]` follows, or the text has ended.
    pub(crate) is_last: bool,
    /// Whether the text ended before the list.
    pub(crate) is_truncated: bool,
}

impl Scanner {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, buffer: Vec::new(), position: 0, buffer_offset: 0, is_ended: false }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.buffer_offset + self.position as u64
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Makes the whole text readable from any offset, and restarts at its beginning.
    pub(crate) fn make_seekable(&mut self) -> Result<()> {
        if !self.input.can_seek() {
            let offset = self.offset();
            self.input.spool(&self.buffer).map_err(|source| Error::Io { offset, source })?;
        }
        self.seek(0)
    }

    pub(crate) fn can_seek(&self) -> bool {
        self.input.can_seek()
    }

    /// Whether all text that was read is still in the buffer.
    pub(crate) fn has_all(&self) -> bool {
        self.buffer_offset == 0
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        self.input.seek(offset).map_err(|source| Error::Io { offset, source })?;
        self.buffer.clear();
        self.position = 0;
        self.buffer_offset = offset;
        self.is_ended = false;
        Ok(())
    }

    /// Appends more text to the buffer. Returns false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        self.buffer_offset += self.position as u64;
        self.buffer.drain(..self.position);
        self.position = 0;
        let kept = self.buffer.len();
        self.buffer.resize(kept + BLOCK_BYTES, 0);
        let offset = self.buffer_offset + kept as u64;
        let count =
            self.input.read(&mut self.buffer[kept..]).map_err(|source| Error::Io { offset, source })?;
        self.buffer.truncate(kept + count);
        self.is_ended = count < BLOCK_BYTES;
        Ok(count > 0)
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            while let Some(&byte) = self.buffer.get(self.position) {
                if byte > b' ' {
                    return Ok(Some(byte));
                }
                self.position += 1;
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Consumes the byte that [`Self::peek`] returned.
    pub(crate) fn skip_byte(&mut self) {
        self.position = (self.position + 1).min(self.buffer.len());
    }

    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.skip_byte();
                Ok(())
            }
            found => Err(Error::Unexpected { offset: self.offset(), expected, found }),
        }
    }

    /// Consumes `byte` if it is next.
    pub(crate) fn take_if(&mut self, byte: u8) -> Result<bool> {
        let is_next = self.peek()? == Some(byte);
        if is_next {
            self.skip_byte();
        }
        Ok(is_next)
    }

    /// Reads a string and appends its unescaped text. Returns false if the text ends inside it.
    pub(crate) fn string(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        self.expect(b'"', "a string")?;
        let mut escapes = Escapes::default();
        loop {
            let rest = &self.buffer[self.position..];
            match memchr2(b'"', b'\\', rest) {
                None => {
                    if !rest.is_empty() {
                        escapes = Escapes::default();
                    }
                    text.extend_from_slice(rest);
                    self.position = self.buffer.len();
                    if !self.fill()? {
                        return Ok(false);
                    }
                }
                Some(at) => {
                    if at > 0 {
                        escapes = Escapes::default();
                    }
                    text.extend_from_slice(&rest[..at]);
                    let byte = rest[at];
                    self.position += at;
                    if byte == b'"' {
                        self.position += 1;
                        return Ok(true);
                    }
                    // The longest escape is `\u1234`.
                    while self.buffer.len() - self.position < 6 && self.fill()? {}
                    let taken = push_unescaped(&self.buffer[self.position..], &mut escapes, text)
                        .ok_or_else(|| {
                            let found = self.buffer.get(self.position + 1).copied();
                            Error::Unexpected { offset: self.offset() + 1, expected: "an escape", found }
                        })?;
                    self.position += taken;
                }
            }
        }
    }

    /// Reads a count in any JSON notation: `1500`, `1.5e3`. Numbers below 0 or with a fraction are
    /// refused.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let found = self.peek()?;
        let offset = self.offset();
        let unexpected = |expected| Error::Unexpected { offset, expected, found };
        if !matches!(found, Some(b'-' | b'0'..=b'9')) {
            return Err(unexpected("a number"));
        }
        // Largest number of digits; longer numbers are not counts.
        const DIGITS_MAX: usize = 400;
        let mut text = String::new();
        loop {
            match self.buffer.get(self.position) {
                Some(&byte @ (b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) => {
                    if text.len() > DIGITS_MAX {
                        return Err(unexpected("a number of fewer digits"));
                    }
                    text.push(char::from(byte));
                }
                Some(_) => break,
                None => {
                    if !self.fill()? {
                        break;
                    }
                    continue;
                }
            }
            self.position += 1;
        }
        whole_number_in(&text).ok_or_else(|| unexpected("a whole number from 0 on, of 64 bits"))
    }

    /// Reads one value of any kind and appends its text to `keep`. Returns false if the text ends
    /// inside it.
    pub(crate) fn value(&mut self, mut keep: Option<&mut Vec<u8>>, limit_bytes: usize) -> Result<bool> {
        let begin = self.offset();
        let mut depth = 0u64;
        let mut text = Vec::new();
        loop {
            let Some(byte) = self.peek()? else { return Ok(false) };
            match byte {
                b'"' => {
                    text.clear();
                    if !self.string(&mut text)? {
                        return Ok(false);
                    }
                    if let Some(keep) = keep.as_deref_mut() {
                        // Such strings are names of fields; quoting them again is enough.
                        keep.extend_from_slice(
                            serde_json::Value::from(String::from_utf8_lossy(&text)).to_string().as_bytes(),
                        );
                    }
                }
                b'[' | b'{' | b']' | b'}' | b',' | b':' => {
                    match byte {
                        b'[' | b'{' => depth += 1,
                        b']' | b'}' if depth > 0 => depth -= 1,
                        _ if depth > 0 => {}
                        _ => {
                            return Err(Error::Unexpected {
                                offset: self.offset(),
                                expected: "a value",
                                found: Some(byte),
                            });
                        }
                    }
                    self.skip_byte();
                    if let Some(keep) = keep.as_deref_mut() {
                        keep.push(byte);
                    }
                }
                _ => loop {
                    // Number or word.
                    match self.buffer.get(self.position) {
                        Some(&byte)
                            if byte > b' '
                                && !matches!(byte, b'[' | b'{' | b']' | b'}' | b',' | b':' | b'"') =>
                        {
                            if let Some(keep) = keep.as_deref_mut() {
                                keep.push(byte);
                            }
                            self.position += 1;
                        }
                        Some(_) => break,
                        None => {
                            if !self.fill()? {
                                return Ok(depth == 0);
                            }
                        }
                    }
                },
            }
            if keep.as_ref().is_some_and(|keep| keep.len() > limit_bytes) {
                return Err(Error::HeaderTooLong { offset: begin, limit_bytes });
            }
            if depth == 0 {
                return Ok(true);
            }
        }
    }

    /// Skips a list of numbers and its `]` without decoding. Returns false if the text ends before.
    pub(crate) fn skip_numbers(&mut self) -> Result<bool> {
        loop {
            match memchr(b']', &self.buffer[self.position..]) {
                Some(at) => {
                    self.position += at + 1;
                    return Ok(true);
                }
                None => {
                    self.position = self.buffer.len();
                    if !self.fill()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Moves the next whole rows of a list of numbers into `block`. After the last row, the `]` is
    /// consumed as well.
    pub(crate) fn rows(&mut self, stride: usize, block: &mut Block) -> Result<TakenRows> {
        block.begin(self.offset());
        block.bytes.extend_from_slice(&self.buffer[self.position..]);
        self.buffer_offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.position = 0;
        let mut searched = FRONT;
        loop {
            if let Some(at) = memchr(b']', &block.bytes[searched..]) {
                let end = searched + at;
                self.give_back(block, end + 1);
                block.bytes.truncate(end);
                let text = block.text();
                let number_count = match memchr_iter(b',', text).count() {
                    0 if text.iter().all(|&byte| byte <= b' ') => 0,
                    commas => commas + 1,
                };
                return Ok(TakenRows { number_count, is_last: true, is_truncated: false });
            }
            searched = block.bytes.len();
            if self.is_ended || block.text().len() >= BLOCK_BYTES {
                let commas = memchr_iter(b',', block.text()).count();
                if commas >= stride || self.is_ended {
                    let surplus = commas % stride;
                    let end = match commas - surplus {
                        0 => FRONT,
                        _ => behind_last_row(&block.bytes, surplus),
                    };
                    if self.is_ended {
                        self.buffer_offset = block.offset + (block.bytes.len() - FRONT) as u64;
                        block.bytes.truncate(end);
                    } else {
                        self.give_back(block, end);
                    }
                    let number_count = commas - surplus;
                    return Ok(TakenRows {
                        number_count,
                        is_last: self.is_ended,
                        is_truncated: self.is_ended,
                    });
                }
                if block.text().len() > ROW_LIMIT_BYTES {
                    return Err(Error::Unexpected {
                        offset: block.offset,
                        expected: "a row of numbers",
                        found: block.text().first().copied(),
                    });
                }
            }
            let kept = block.bytes.len();
            let wanted = (BLOCK_BYTES + FRONT).saturating_sub(kept).max(BLOCK_BYTES / 4);
            block.bytes.resize(kept + wanted, 0);
            let offset = block.offset + (kept - FRONT) as u64;
            let count =
                self.input.read(&mut block.bytes[kept..]).map_err(|source| Error::Io { offset, source })?;
            block.bytes.truncate(kept + count);
            self.is_ended = count < wanted;
        }
    }

    /// Returns the contents of `block` from `end` on to the buffer.
    fn give_back(&mut self, block: &mut Block, end: usize) {
        self.buffer_offset = block.offset + (end - FRONT) as u64;
        self.buffer.clear();
        self.buffer.extend_from_slice(&block.bytes[end..]);
        self.position = 0;
        block.bytes.truncate(end);
    }
}

/// Returns the position after the comma that ends the last whole row, `surplus` numbers before the
/// last comma.
fn behind_last_row(bytes: &[u8], surplus: usize) -> usize {
    let mut end = bytes.len();
    for _ in 0..surplus {
        end = memrchr(b',', &bytes[..end]).unwrap_or(FRONT);
    }
    memrchr(b',', &bytes[..end]).map_or(FRONT, |at| at + 1)
}
