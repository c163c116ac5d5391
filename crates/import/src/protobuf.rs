//! Parser of protocol buffers' wire format.

use crate::error::{Error, Result};

/// Value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(Fields<'a>),
    /// A value of a kind that these messages do not use.
    Other,
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { 0 }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(fields) = self { fields.rest } else { &[] }
    }

    pub(crate) fn message(self) -> Fields<'a> {
        if let Self::Bytes(fields) = self { fields } else { Fields { rest: &[], end: 0 } }
    }

    /// Appends a repeated number, packed or single, up to `most` numbers.
    pub(crate) fn numbers(self, into: &mut Vec<u64>, most: usize) -> Result<()> {
        match self {
            Self::Number(number) => into.push(number),
            Self::Bytes(mut packed) => {
                while !packed.rest.is_empty() {
                    if into.len() >= most {
                        return Err(packed.malformed("a stack has more frames than a program can have"));
                    }
                    into.push(packed.varint()?);
                }
            }
            Self::Other => {}
        }
        Ok(())
    }
}

/// Fields of a message, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    /// Offset of the message's end in the file.
    end: u64,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() as u64 }
    }

    pub(crate) fn malformed(&self, what: &str) -> Error {
        let offset = self.end - self.rest.len() as u64;
        Error::Malformed { tool: "pprof", offset, what: what.to_owned() }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else { break };
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.malformed("a number has no end"))
    }

    fn take(&mut self, count: u64) -> Result<Fields<'a>> {
        let count = usize::try_from(count).ok().filter(|&count| count <= self.rest.len());
        let Some(count) = count else { return Err(self.malformed("a field is longer than its message")) };
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(Fields { rest: taken, end: self.end - rest.len() as u64 })
    }

    /// Next field: its number and its value.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let count = self.varint()?;
                Value::Bytes(self.take(count)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return Err(self.malformed("a field is of a kind that does not exist")),
        };
        Ok(Some((tag >> 3, value)))
    }
}
