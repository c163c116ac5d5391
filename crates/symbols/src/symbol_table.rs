//! Compact table of a module's names by address.

use std::collections::HashMap;

use crate::varint::{put, put_bytes, take, take_bytes};

/// One frame at an address. Texts are numbers in the table's list; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame {
    symbol: u32,
    file: u32,
    line: u32,
    is_inlined: bool,
}

impl Frame {
    pub(crate) fn set_symbol(&mut self, number: u32) {
        self.symbol = number;
    }

    pub(crate) fn set_line(&mut self, line: u32) {
        self.line = line;
    }

    pub(crate) fn set_not_inlined(&mut self) {
        self.is_inlined = false;
    }

    /// Source line, from 1; 0 if unknown.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// True if the function is inlined into the next frame.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.is_inlined
    }
}

/// A frame with its texts, for sources outside of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedFrame {
    /// Demangled name of the function.
    pub symbol: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Whether the function is inlined into the next frame.
    pub is_inlined: bool,
}

/// Addresses (as in the ELF file) and their frames, innermost inlined one first. An address may be
/// known to have no frames.
#[derive(Debug, Clone, Default)]
pub struct SymbolTable {
    texts: String,
    /// End of each text; the empty text is number 0 and not listed.
    ends: Vec<u32>,
    numbers: HashMap<Box<str>, u32>,
    svmas: Vec<u64>,
    first_frames: Vec<u32>,
    frames: Vec<Frame>,
}

/// Largest total length of decoded texts. The numbers of other entries are bounded by the input:
/// each entry takes at least one byte.
const TEXT_BYTES_MAX: usize = 1 << 30;

impl SymbolTable {
    /// Number of addresses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.svmas.len()
    }

    /// True if the table has no addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.svmas.is_empty()
    }

    /// Frames at an address; `None` if the address was never resolved.
    #[must_use]
    pub fn frames(&self, svma: u64) -> Option<&[Frame]> {
        let place = self.svmas.binary_search(&svma).ok()?;
        let start = *self.first_frames.get(place)? as usize;
        let end = self.first_frames.get(place + 1).map_or(self.frames.len(), |&end| end as usize);
        self.frames.get(start..end)
    }

    /// Demangled name of a frame's function.
    #[must_use]
    pub fn symbol(&self, frame: &Frame) -> Option<&str> {
        self.text(frame.symbol)
    }

    /// Source file of a frame.
    #[must_use]
    pub fn file(&self, frame: &Frame) -> Option<&str> {
        self.text(frame.file)
    }

    /// Degree of detail at an address: 0 no frames, 1 a source location, 2 a name, 3 a name and a
    /// line.
    fn detail(&self, svma: u64) -> u8 {
        let Some(outermost) = self.frames(svma).and_then(<[Frame]>::last) else { return 0 };
        match (self.symbol(outermost), outermost.line()) {
            (None, _) => 1,
            (Some(_), 0) => 2,
            (Some(_), _) => 3,
        }
    }

    /// True if there is a name for an address.
    #[must_use]
    pub fn has_name(&self, svma: u64) -> bool {
        self.detail(svma) >= 2
    }

    /// Number of addresses with a name.
    #[must_use]
    pub fn named_count(&self) -> usize {
        self.svmas.iter().filter(|&&svma| self.has_name(svma)).count()
    }

    /// Adopts the frames of those `svmas` for which `other` knows more: a missing name, and with
    /// `lines_count` a missing line.
    pub fn improve(&mut self, other: &Self, svmas: &[u64], lines_count: bool) {
        let most = if lines_count { 3 } else { 2 };
        let is_better = |svma: u64| match self.frames(svma) {
            None => other.frames(svma).is_some(),
            Some(_) => other.detail(svma).min(most) > self.detail(svma),
        };
        let mut better: Vec<u64> = svmas.iter().copied().filter(|&svma| is_better(svma)).collect();
        better.sort_unstable();
        better.dedup();
        if better.is_empty() {
            return;
        }
        // The table is rebuilt, so that no unused text stays.
        let mut kept: Vec<u64> = self.svmas.clone();
        kept.retain(|svma| better.binary_search(svma).is_err());
        let mut built = Self::default();
        let mut entries = Vec::with_capacity(kept.len() + better.len());
        for (from, svmas) in [(&*self, kept), (other, better)] {
            for svma in svmas {
                let frames = from.frames(svma).unwrap_or_default().iter();
                let copy = |frame: &Frame| {
                    let line = Some(frame.line()).filter(|&line| line != 0);
                    built.frame(from.symbol(frame), from.file(frame), line, frame.is_inlined())
                };
                entries.push((svma, frames.map(copy).collect()));
            }
        }
        built.extend(entries);
        *self = built;
    }

    /// Creates a table of names only.
    #[must_use]
    pub fn of_names<'a>(names: impl IntoIterator<Item = (u64, &'a str)>) -> Self {
        let mut table = Self::default();
        let entries = names.into_iter().map(|(svma, name)| {
            let frame = table.frame(Some(name), None, None, false);
            (svma, vec![frame])
        });
        let entries = entries.collect();
        table.extend(entries);
        table
    }

    /// Creates a table of frames from another source, the innermost inlined one of an address
    /// first.
    #[must_use]
    pub fn of_frames(entries: impl IntoIterator<Item = (u64, Vec<NamedFrame>)>) -> Self {
        let mut table = Self::default();
        let entries = entries.into_iter().map(|(svma, frames)| {
            let frame = |NamedFrame { symbol, file, line, is_inlined }: &NamedFrame| {
                table.frame(symbol.as_deref(), file.as_deref(), *line, *is_inlined)
            };
            (svma, frames.iter().map(frame).collect())
        });
        let entries = entries.collect();
        table.extend(entries);
        table
    }

    fn text(&self, number: u32) -> Option<&str> {
        let place = (number as usize).checked_sub(1)?;
        let end = *self.ends.get(place)? as usize;
        let start =
            place.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize);
        self.texts.get(start..end)
    }

    pub(crate) fn intern(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return 0 };
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push_str(text);
        self.ends.push(self.texts.len() as u32);
        let number = self.ends.len() as u32;
        self.numbers.insert(text.into(), number);
        number
    }

    pub(crate) fn frame(
        &mut self,
        symbol: Option<&str>,
        file: Option<&str>,
        line: Option<u32>,
        is_inlined: bool,
    ) -> Frame {
        Frame { symbol: self.intern(symbol), file: self.intern(file), line: line.unwrap_or(0), is_inlined }
    }

    /// Adds addresses, in any order; known ones keep their frames.
    pub(crate) fn extend(&mut self, mut entries: Vec<(u64, Vec<Frame>)>) {
        entries.retain(|(svma, _)| self.svmas.binary_search(svma).is_err());
        for (place, &svma) in self.svmas.iter().enumerate() {
            let start = self.first_frames[place] as usize;
            let end = self.first_frames.get(place + 1).map_or(self.frames.len(), |&end| end as usize);
            entries.push((svma, self.frames[start..end].to_vec()));
        }
        entries.sort_by_key(|&(svma, _)| svma);
        entries.dedup_by_key(|&mut (svma, _)| svma);
        self.svmas.clear();
        self.first_frames.clear();
        self.frames.clear();
        for (svma, frames) in entries {
            self.svmas.push(svma);
            self.first_frames.push(self.frames.len() as u32);
            self.frames.extend(frames);
        }
    }

    /// Encodes the table: texts, then addresses as differences, each with its frames.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.ends.len() as u64);
        let mut start = 0;
        for &end in &self.ends {
            put(out, u64::from(end - start));
            start = end;
        }
        put_bytes(out, self.texts.as_bytes());
        put(out, self.svmas.len() as u64);
        let mut before = 0;
        for &svma in &self.svmas {
            put(out, svma - before);
            before = svma;
            let frames = self.frames(svma).unwrap_or_default();
            put(out, frames.len() as u64);
            for frame in frames {
                put(out, u64::from(frame.symbol));
                put(out, u64::from(frame.file));
                put(out, u64::from(frame.line) << 1 | u64::from(frame.is_inlined));
            }
        }
    }

    /// Decodes untrusted bytes.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut table = Self::default();
        let count = usize::try_from(take(bytes)?).ok().filter(|&count| count <= bytes.len())?;
        table.ends.reserve(count);
        let mut end = 0_u64;
        for _ in 0..count {
            end = end.checked_add(take(bytes)?)?;
            table.ends.push(u32::try_from(end).ok()?);
        }
        let texts = take_bytes(bytes).filter(|texts| texts.len() <= TEXT_BYTES_MAX)?;
        table.texts = std::str::from_utf8(texts).ok()?.to_owned();
        if end != table.texts.len() as u64 {
            return None;
        }
        let count = usize::try_from(take(bytes)?).ok().filter(|&count| count <= bytes.len())?;
        table.svmas.reserve(count);
        let mut svma = 0_u64;
        for number in 0..count {
            let step = take(bytes)?;
            svma = svma.checked_add(step)?;
            if number > 0 && step == 0 {
                return None;
            }
            table.svmas.push(svma);
            table.first_frames.push(u32::try_from(table.frames.len()).ok()?);
            for _ in 0..take(bytes).filter(|&frames| frames <= bytes.len() as u64)? {
                let symbol = u32::try_from(take(bytes)?).ok()?;
                let file = u32::try_from(take(bytes)?).ok()?;
                let line = take(bytes)?;
                let is_inlined = line & 1 != 0;
                table.frames.push(Frame { symbol, file, line: u32::try_from(line >> 1).ok()?, is_inlined });
            }
        }
        Some(table)
    }

    /// Prepares a decoded table for more entries.
    pub(crate) fn reopen(&mut self) {
        for number in 1..=self.ends.len() as u32 {
            if let Some(text) = self.text(number) {
                let text: Box<str> = text.into();
                self.numbers.insert(text, number);
            }
        }
    }
}
