//! Stream of events that a .NET runtime writes (`nettrace`, version 4).
//!
//! ```text
//!  "Nettrace"  i32 20 "!FastSerialization.1"  objects…  1
//!  object:     5 5 1  i32 version  i32 oldest reader  i32 length, name  6  contents  6
//!  block:      i32 size  up to a multiple of 4  u16 header size  u16 flags …  events
//! ```
//! An event's header has only the fields that differ from the event before it.

use std::io::Read;

use rustc_hash::FxHashMap;

use crate::dump_error::{DumpError, Result, fill};

/// Beginning of a stream.
const MAGIC: &[u8; 8] = b"Nettrace";
/// Header of the serialisation.
const SERIALISATION: &[u8; 20] = b"!FastSerialization.1";
/// Largest size of a block. The runtime writes 100 KiB.
const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// Bytes of the object that describes the process.
const TRACE_BYTES: usize = 48;
/// Bytes of an address in the events that are read.
const ADDRESS_BYTES: u32 = 8;
/// Provider of the events of the runtime.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Largest number of descriptions of events.
const KINDS_MAX: usize = 1 << 16;

const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;

/// Event of the runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) id: u32,
    /// Time in nanoseconds, on the runtime's clock.
    pub(super) time_ns: u64,
    pub(super) payload: &'a [u8],
}

/// Fields of an event's header that the next event may share.
#[derive(Debug, Default, Clone, Copy)]
struct Header {
    kind: u32,
    ticks: u64,
    payload_bytes: u32,
}

/// Reader of a stream.
pub(super) struct Stream<R> {
    reader: R,
    offset: u64,
    ticks_per_second: u64,
    /// Number of the runtime's event for each kind of the stream.
    kinds: FxHashMap<u32, u32>,
}

/// Little-endian values of a block, with a position.
pub(super) struct Values<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.take(2)?.first_chunk()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    /// Number of 7 bits a byte, lowest bits first.
    fn packed(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Text of UTF-16, up to its 0.
    pub(super) fn text(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let units = rest.as_chunks::<2>().0;
        let end = units.iter().position(|unit| *unit == [0, 0])?;
        self.at += (end + 1) * 2;
        let units = units[..end].iter().map(|&unit| u16::from_le_bytes(unit));
        Some(char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }
}

impl<R: Read> Stream<R> {
    /// Begins to read a stream.
    pub(super) fn begin(reader: R) -> Result<Self> {
        let mut stream = Self { reader, offset: 0, ticks_per_second: 1, kinds: FxHashMap::default() };
        let mut beginning = [0; MAGIC.len() + 4 + SERIALISATION.len()];
        stream.fill(&mut beginning)?;
        if !beginning.starts_with(MAGIC) || !beginning.ends_with(SERIALISATION) {
            return Err(DumpError::NotNettrace);
        }
        Ok(stream)
    }

    /// Reads up to the end. `receive` says whether it wants more events.
    pub(super) fn read(&mut self, mut receive: impl FnMut(Event<'_>) -> Result<bool>) -> Result<()> {
        let mut block = Vec::new();
        loop {
            let mut tags = [0];
            self.fill(&mut tags)?;
            match tags {
                [NULL] => return Ok(()),
                [BEGIN] => {}
                [tag] => return Err(DumpError::UnknownPart { tag, offset: self.offset - 1 }),
            }
            let name = self.type_name()?;
            if name == "Trace" {
                self.trace()?;
            } else {
                self.block(&mut block)?;
                let is_known = match &*name {
                    "MetadataBlock" => self.events(&block, true, &mut receive)?,
                    "EventBlock" => self.events(&block, false, &mut receive)?,
                    _ => true,
                };
                if !is_known {
                    return Ok(());
                }
            }
            self.expect(&[END])?;
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        fill(&mut self.reader, &mut self.offset, bytes)
    }

    fn expect(&mut self, tags: &[u8]) -> Result<()> {
        for &wanted in tags {
            let mut tag = [0];
            self.fill(&mut tag)?;
            if tag[0] != wanted {
                return Err(DumpError::UnknownPart { tag: tag[0], offset: self.offset - 1 });
            }
        }
        Ok(())
    }

    fn word(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads the type of an object behind its first tag.
    fn type_name(&mut self) -> Result<String> {
        self.expect(&[BEGIN, NULL])?;
        let (_version, _oldest) = (self.word()?, self.word()?);
        let length = self.word()?;
        if length > 256 {
            return Err(DumpError::Overrun { offset: self.offset });
        }
        let mut name = vec![0; length as usize];
        self.fill(&mut name)?;
        self.expect(&[END])?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Reads the facts on the process: a date, the clock, and numbers.
    fn trace(&mut self) -> Result<()> {
        let mut bytes = [0; TRACE_BYTES];
        self.fill(&mut bytes)?;
        let mut values = Values::new(&bytes[24..]);
        self.ticks_per_second = values.u64().unwrap_or(1).max(1);
        match values.u32().unwrap_or(0) {
            ADDRESS_BYTES => Ok(()),
            address_bytes => Err(DumpError::AddressBytes { address_bytes }),
        }
    }

    /// Reads the contents of a block.
    fn block(&mut self, block: &mut Vec<u8>) -> Result<()> {
        let size = self.word()?;
        if size > BLOCK_BYTES_MAX {
            return Err(DumpError::Overrun { offset: self.offset });
        }
        let padding = self.offset.next_multiple_of(4) - self.offset;
        self.fill(&mut [0; 4][..padding as usize])?;
        block.clear();
        // A size that is false does not allocate more than there is.
        let begin = self.offset;
        let read = self.reader.by_ref().take(u64::from(size)).read_to_end(block);
        let read = read.map_err(|source| DumpError::Io { offset: begin, source })?;
        self.offset += read as u64;
        if read == size as usize { Ok(()) } else { Err(DumpError::Ends { offset: self.offset }) }
    }

    /// Reads the events of a block. Returns whether more events are wanted.
    fn events(
        &mut self,
        block: &[u8],
        are_descriptions: bool,
        receive: &mut impl FnMut(Event<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let overrun = DumpError::Overrun { offset: self.offset };
        let mut values = Values::new(block);
        let Some((header_bytes, flags)) = values.u16().zip(values.u16()) else { return Err(overrun) };
        values = Values::new(block);
        if values.take(header_bytes.into()).is_none() {
            return Err(overrun);
        }
        let mut header = Header::default();
        while !values.is_empty() {
            let read = if flags & 1 != 0 { header.packed(&mut values) } else { header.plain(&mut values) };
            let Some(payload) = read.and_then(|()| values.take(header.payload_bytes as usize)) else {
                return Err(overrun);
            };
            if flags & 1 == 0 {
                values.at = values.at.next_multiple_of(4);
            }
            if are_descriptions {
                self.describe(payload)?;
            } else if let Some(&id) = self.kinds.get(&header.kind) {
                let ns = u128::from(header.ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
                if !receive(Event { id, time_ns: ns as u64, payload })? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Keeps the number of an event of the runtime.
    fn describe(&mut self, payload: &[u8]) -> Result<()> {
        let mut values = Values::new(payload);
        let found = values.u32().zip(values.text()).zip(values.u32());
        if let Some(((kind, _), id)) = found.filter(|((_, provider), _)| provider == RUNTIME) {
            if self.kinds.len() >= KINDS_MAX {
                return Err(DumpError::TooMany { what: "kinds of events" });
            }
            self.kinds.insert(kind, id);
        }
        Ok(())
    }
}

impl Header {
    /// Reads a header whose first byte says what it has.
    fn packed(&mut self, values: &mut Values<'_>) -> Option<()> {
        let has = values.u8()?;
        if has & 1 != 0 {
            self.kind = values.packed()? as u32;
        }
        if has & 2 != 0 {
            let (_sequence, _thread, _processor) = (values.packed()?, values.packed()?, values.packed()?);
        }
        if has & 4 != 0 {
            let _thread = values.packed()?;
        }
        if has & 8 != 0 {
            let _stack = values.packed()?;
        }
        self.ticks = self.ticks.wrapping_add(values.packed()?);
        for activity in [16, 32] {
            if has & activity != 0 {
                values.take(16)?;
            }
        }
        if has & 128 != 0 {
            self.payload_bytes = u32::try_from(values.packed()?).ok()?;
        }
        Some(())
    }

    /// Reads a header that has all fields.
    fn plain(&mut self, values: &mut Values<'_>) -> Option<()> {
        let _size = values.u32()?;
        self.kind = values.u32()? & 0x7fff_ffff;
        // Sequence, thread, capturing thread, processor, stack.
        values.take(4 + 8 + 8 + 4 + 4)?;
        self.ticks = values.u64()?;
        values.take(32)?;
        self.payload_bytes = values.u32()?;
        Some(())
    }
}
