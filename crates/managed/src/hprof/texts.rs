//! Third reading of a dump: characters of strings. Without `--contents strings` only the names of
//! threads and class loaders are read.

use std::io::Read;

use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::parts::{OpenDump, open_at};
use super::records::{ArrayRecord, ClassRecord, Type, Visitor, walk, walk_range};
use crate::dump_error::{DumpError, Result};

/// Largest number of characters of a text.
const CHARACTERS_MAX: u64 = 1024;

/// A string: the number of its array of characters, its own number, and whether it is UTF-16.
pub(super) type Characters = (u32, u32, bool);

/// Texts of strings, by the strings' numbers.
pub(super) struct Texts<'a, F> {
    census: &'a Census,
    wanted: &'a [Characters],
    /// Number of the next object.
    next: u32,
    /// Strings of the array that is being read; those behind them are still wanted.
    strings: std::ops::Range<usize>,
    bytes: Vec<u8>,
    rest: u64,
    receive: F,
}

/// Reads the texts of strings.
pub(super) fn read<F: FnMut(u32, &str) -> Result<()>>(
    reader: impl Read,
    census: &Census,
    wanted: &[Characters],
    receive: F,
) -> Result<()> {
    let mut texts = Texts::new(census, wanted, 0, receive);
    walk(reader, &mut texts).map(drop)
}

/// Reads the texts of a few strings. Only the segments that have them are read, if the dump can be
/// opened there.
pub(super) fn of_some(
    open: &OpenDump<'_>,
    census: &Census,
    wanted: &[Characters],
    only: &FxHashSet<u32>,
) -> Result<FxHashMap<u32, String>> {
    let mut found = FxHashMap::default();
    let wanted: Vec<Characters> =
        wanted.iter().copied().filter(|(_, string, _)| only.contains(string)).collect();
    let mut receive = |string: u32, text: &str| {
        found.insert(string, text.to_owned());
        Ok(())
    };
    let segments = census.segments_of(wanted.iter().map(|&(array, ..)| array)).unwrap_or_default();
    let mut rest = &wanted[..];
    for (segment, end) in segments {
        let opened =
            open(segment.offset).map_err(|source| DumpError::Io { offset: segment.offset, source })?;
        let Some(reader) = opened else { break };
        let mut texts = Texts::new(census, rest, segment.first_object, &mut receive);
        let of_segment = reader.take(end.saturating_sub(segment.offset));
        walk_range(of_segment, census.id_bytes(), segment.offset..end, &mut texts)?;
        rest = &rest[texts.strings.end.min(rest.len())..];
    }
    if !rest.is_empty() {
        read(open_at(open, 0)?, census, rest, &mut receive)?;
    }
    Ok(found)
}

impl<'a, F> Texts<'a, F> {
    fn new(census: &'a Census, wanted: &'a [Characters], next: u32, receive: F) -> Self {
        Self { census, wanted, next, strings: 0..0, bytes: Vec::new(), rest: 0, receive }
    }

    /// Counts an object. Returns its number, unless it is repeated.
    fn object(&mut self, id: u64) -> Option<u32> {
        let is_next = self.census.ids.get(self.next as usize) == Some(&id);
        is_next.then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl<F: FnMut(u32, &str) -> Result<()>> Visitor for Texts<'_, F> {
    fn class(&mut self, class: ClassRecord) -> Result<()> {
        self.object(class.id);
        Ok(())
    }

    fn instance(&mut self, id: u64, _class: u64, _values: &[u8]) -> Result<()> {
        self.object(id);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.strings.end >= self.wanted.len() && self.rest == 0
    }

    fn array(&mut self, array: ArrayRecord) -> Result<u64> {
        let Some(number) = self.object(array.id) else { return Ok(0) };
        if !matches!(array.kind, Type::Byte | Type::Char) {
            return Ok(0);
        }
        // Both are in the order of the dump.
        let mut at = self.strings.end;
        while self.wanted.get(at).is_some_and(|&(known, ..)| known < number) {
            at += 1;
        }
        let mut end = at;
        while self.wanted.get(end).is_some_and(|&(known, ..)| known == number) {
            end += 1;
        }
        self.strings = at..end;
        if at == end {
            return Ok(0);
        }
        self.bytes.clear();
        self.rest = (u64::from(array.count) * array.kind.bytes(8) as u64).min(CHARACTERS_MAX * 2);
        if self.rest == 0 {
            self.pass_on(array)?;
        }
        Ok(self.rest)
    }

    fn contents(&mut self, array: ArrayRecord, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.rest = self.rest.saturating_sub(bytes.len() as u64);
        if self.rest == 0 { self.pass_on(array) } else { Ok(()) }
    }
}

impl<F: FnMut(u32, &str) -> Result<()>> Texts<'_, F> {
    /// Passes the text of the array on to its strings.
    fn pass_on(&mut self, array: ArrayRecord) -> Result<()> {
        for at in self.strings.clone() {
            let (_, string, is_wide) = self.wanted[at];
            let text = match (array.kind, is_wide) {
                (Type::Char, _) => wide(self.bytes.as_chunks().0, u16::from_be_bytes),
                // Strings of JDK 9 and later have their characters in the machine's order.
                (_, true) => wide(self.bytes.as_chunks().0, u16::from_le_bytes),
                (_, false) => latin(&self.bytes),
            };
            (self.receive)(string, &text)?;
        }
        Ok(())
    }
}

fn wide(units: &[[u8; 2]], unit: fn([u8; 2]) -> u16) -> String {
    let units = units.iter().take(CHARACTERS_MAX as usize).map(|&bytes| unit(bytes));
    char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn latin(bytes: &[u8]) -> String {
    bytes.iter().take(CHARACTERS_MAX as usize).map(|&byte| char::from(byte)).collect()
}
