//! Opening of a trace: finds its chunks, by the index or by a scan, and reads the small tables.

use std::path::Path;
use std::sync::OnceLock;

use super::Trace;
use super::known_processes::{INDEX_GAP_MAX, NO_MAPPING, UNKNOWN};
use crate::bytes::Take;
use crate::chunk::{
    CHUNK_HEADER_BYTES, CHUNK_MAGIC, ChunkHeader, ChunkInfo, ChunkKind, FILE_HEADER_BYTES, FILE_MAGIC,
    SAMPLED_FORMAT_VERSION, TRAILER_BYTES, TRAILER_MAGIC, index_offset,
};
use crate::error::{Damage, Error, Malformed, Result};
use crate::payload::unpack;
use crate::source::{ReadAt, read_up_to};
use crate::tables::{Entry, take_all};
use crate::*;

/// Largest ratio of the unpacked size of all data that stays in memory to the file's size. The
/// writer's own files reach 10.
const EXPANSION_MAX: u64 = 64;
/// Unpacked bytes that are allowed in addition. Small files of deep recursions shrink by more than
/// a thousand.
const EXPANSION_FREE_BYTES: u64 = 32 << 20;

impl Trace {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read, is empty, is no trace, or is from a newer version. Damage inside is
    /// no error: see [`Trace::damage`].
    pub fn open(path: &Path) -> Result<Self> {
        let file =
            heapr_files::regular(path).map_err(|source| Error::Io { action: "opening the file", source })?;
        Self::from_source(Box::new(file))
    }

    /// Opens any source of bytes.
    ///
    /// # Errors
    /// The errors of [`Trace::open`].
    pub fn from_source(source: Box<dyn ReadAt>) -> Result<Self> {
        let size = source.size_bytes().map_err(|source| Error::Io { action: "reading the trace", source })?;
        check_header(&*source)?;
        let mut trace = Self {
            source,
            chunks: Vec::new(),
            damage: Vec::new(),
            system: System::default(),
            session: Session::default(),
            processes: Vec::new(),
            threads: Vec::new(),
            modules: Vec::new(),
            mappings: Vec::new(),
            mapping_order: Vec::new(),
            mapping_reach: Vec::new(),
            markers: Vec::new(),
            rss_samples: Vec::new(),
            resident_samples: Vec::new(),
            memory_accounts: Vec::new(),
            memory_readings: Vec::new(),
            losses: Vec::new(),
            statistics: Vec::new(),
            snapshots: Vec::new(),
            heap_names: Vec::new(),
            notices: Vec::new(),
            sampling: Sampling::default(),
            functions: Vec::new(),
            language_frames: LanguageFrames::Mixed,
            stacks: OnceLock::new(),
            stack_totals: OnceLock::new(),
            all_damage: OnceLock::new(),
            is_complete: true,
        };
        match trace.read_index(size)? {
            Some(chunks) => trace.chunks = chunks,
            None => {
                trace.is_complete = false;
                trace.scan(size)?;
            }
        }
        trace.leave_out_what_swells(size);
        trace.read_tables();
        Ok(trace)
    }

    /// Reads the index that the trailer points to, if both are sound.
    fn read_index(&self, size: u64) -> Result<Option<Vec<ChunkInfo>>> {
        let mut bytes = [0; TRAILER_BYTES];
        let Some(at) = size.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
        if read_up_to(&*self.source, &mut bytes, at)? < TRAILER_BYTES {
            return Ok(None);
        }
        let Some(offset) = index_offset(&bytes) else { return Ok(None) };
        let Some(info) = self.header_at(offset)?.map(|header| header.info(offset)) else { return Ok(None) };
        if info.kind != Some(ChunkKind::Index) {
            return Ok(None);
        }
        let Ok([stream]) = self.streams::<1>(&info) else { return Ok(None) };
        Ok(take_index(&stream, info.item_count as usize, size).ok())
    }

    /// The chunk header at `offset`, if a sound one is there.
    fn header_at(&self, offset: u64) -> Result<Option<ChunkHeader>> {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        if read_up_to(&*self.source, &mut bytes, offset)? < CHUNK_HEADER_BYTES {
            return Ok(None);
        }
        Ok(ChunkHeader::from_bytes(&bytes).ok())
    }

    /// Finds the chunks one after the other. Bytes between sound chunks are damage.
    fn scan(&mut self, size: u64) -> Result<()> {
        let mut offset = FILE_HEADER_BYTES as u64;
        while offset < size {
            let Some(header) = self.header_at(offset)? else {
                let next = self.next_chunk(offset + 1, size)?;
                if let Some(what) = self.wrong_between(offset, next)? {
                    self.damage.push(Damage { offset, bytes: next - offset, what });
                }
                offset = next;
                continue;
            };
            let end = offset + CHUNK_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
            if end > size {
                self.damage.push(Damage {
                    offset,
                    bytes: size - offset,
                    what: "the file ends within this chunk",
                });
                break;
            }
            let info = header.info(offset);
            if header.kind != ChunkKind::Index as u16 {
                self.chunks.push(info);
            } else if let Err(error) = self.streams::<1>(&info) {
                // May be the reason why there is no believable trailer.
                self.note(&info, &error);
            }
            offset = end;
        }
        Ok(())
    }

    /// Description of the damage between two chunks; `None` if the bytes are a trailer.
    fn wrong_between(&self, offset: u64, next: u64) -> Result<Option<&'static str>> {
        let mut bytes = [0; TRAILER_BYTES];
        let count = read_up_to(&*self.source, &mut bytes, offset)?;
        let is_trailer =
            count == TRAILER_BYTES && bytes[..8] == TRAILER_MAGIC && next == offset + TRAILER_BYTES as u64;
        Ok(match is_trailer {
            true if index_offset(&bytes).is_some() => None,
            true => Some("the trailer's checksum is wrong"),
            false => Some("no chunk begins here"),
        })
    }

    /// Offset of the next sound chunk header at or behind `from`, or the file's end. Each byte is
    /// read once, so that a file full of bare magics is scanned as fast as any other.
    fn next_chunk(&self, from: u64, size: u64) -> Result<u64> {
        let mut at = from;
        let mut window = vec![0; 1 << 16];
        while at < size {
            let count = read_up_to(&*self.source, &mut window, at)?;
            if count < CHUNK_HEADER_BYTES {
                break;
            }
            let is_header = |bytes: &[u8]| {
                bytes.starts_with(&CHUNK_MAGIC)
                    && bytes.try_into().is_ok_and(|bytes| ChunkHeader::from_bytes(bytes).is_ok())
            };
            if let Some(place) = window[..count].windows(CHUNK_HEADER_BYTES).position(is_header) {
                return Ok(at + place as u64);
            }
            // The last bytes may be the beginning of a header.
            at += (count - (CHUNK_HEADER_BYTES - 1)) as u64;
        }
        Ok(size)
    }

    /// Leaves out chunks that together claim to unpack to more than a file of this size can hold.
    /// Only chunks whose contents stay in memory count. A few kilobytes of zstd must not allocate
    /// gigabytes.
    fn leave_out_what_swells(&mut self, size: u64) {
        let mut budget = size.saturating_mul(EXPANSION_MAX).saturating_add(EXPANSION_FREE_BYTES);
        let damage = &mut self.damage;
        self.chunks.retain(|chunk| {
            // Chunks that are read one by one, on demand.
            let is_streamed = |kind| {
                matches!(
                    kind,
                    ChunkKind::Events
                        | ChunkKind::SnapshotBlocks
                        | ChunkKind::Graphs
                        | ChunkKind::GraphEdges
                        | ChunkKind::GraphRoots
                        | ChunkKind::GraphTexts
                        | ChunkKind::GraphSlices
                )
            };
            if chunk.kind.is_none_or(is_streamed) {
                return true;
            }
            let left = budget.checked_sub(u64::from(chunk.raw_bytes));
            budget = left.unwrap_or(budget);
            if left.is_none() {
                let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(chunk.stored_bytes);
                let what = "it unpacks to more than a file of this size holds";
                damage.push(Damage { offset: chunk.offset, bytes, what });
            }
            left.is_some()
        });
    }

    /// The header of a chunk, verified against the index.
    pub(super) fn header_of(&self, info: &ChunkInfo) -> Result<ChunkHeader> {
        let damaged = |what| Error::Damaged { offset: info.offset, what };
        let header = self.header_at(info.offset)?.ok_or(damaged("no chunk begins here"))?;
        if header.info(info.offset) != *info {
            return Err(damaged("the chunk is not as the index says"));
        }
        Ok(header)
    }

    /// The unpacked streams of a chunk.
    pub(crate) fn streams<const N: usize>(&self, info: &ChunkInfo) -> Result<[Vec<u8>; N]> {
        let damaged = |what| Error::Damaged { offset: info.offset, what };
        let header = self.header_of(info)?;
        let mut payload = vec![0; header.stored_bytes as usize];
        if read_up_to(&*self.source, &mut payload, info.offset + CHUNK_HEADER_BYTES as u64)? < payload.len() {
            return Err(damaged("the file ends within this chunk"));
        }
        // A fuzzer would never get past a checksum.
        if !cfg!(fuzzing) && crc32fast::hash(&payload) != header.payload_crc {
            return Err(damaged("the chunk's checksum is wrong"));
        }
        unpack(&payload, header.raw_bytes).map_err(|Malformed(what)| damaged(what))
    }

    /// The entries of all chunks of a kind; damaged chunks are noted and left out.
    fn entries<T: Entry>(&mut self, kind: ChunkKind) -> Vec<T> {
        let mut all = Vec::new();
        let chunks: Vec<ChunkInfo> = self.of_kind(kind).copied().collect();
        for info in chunks {
            let entries = self.streams::<1>(&info).and_then(|[stream]| {
                take_all(&stream, info.item_count as usize)
                    .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })
            });
            match entries {
                Ok(entries) => all.extend::<Vec<T>>(entries),
                Err(error) => self.note(&info, &error),
            }
        }
        all
    }

    fn note(&mut self, info: &ChunkInfo, error: &Error) {
        self.damage.push(damage_of(info, error));
    }

    pub(crate) fn of_kind(&self, kind: ChunkKind) -> impl DoubleEndedIterator<Item = &ChunkInfo> {
        self.chunks.iter().filter(move |chunk| chunk.kind == Some(kind))
    }

    fn read_tables(&mut self) {
        self.system = self.entries(ChunkKind::System).pop().unwrap_or_default();
        self.session = self.entries(ChunkKind::Session).pop().unwrap_or_default();
        let entries = self.entries::<(ProcessIndex, Process)>(ChunkKind::Processes);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (index, process) in entries {
            place(&mut self.processes, index.0, process, &UNKNOWN, limit);
        }
        let unknown_thread =
            Thread { process: ProcessIndex(0), tid: 0, name: String::new(), start_ns: 0, end_ns: None };
        let entries = self.entries::<(ThreadIndex, Thread)>(ChunkKind::Threads);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (index, thread) in entries {
            place(&mut self.threads, index.0, thread, &unknown_thread, limit);
        }
        self.modules = self.entries(ChunkKind::Modules);
        let entries = self.entries::<(u32, Mapping)>(ChunkKind::Mappings);
        let limit = entries.len() * 2 + INDEX_GAP_MAX;
        for (number, mapping) in entries {
            place(&mut self.mappings, number, mapping, &NO_MAPPING, limit);
        }
        self.markers = self.entries(ChunkKind::Markers);
        self.rss_samples = self.entries(ChunkKind::RssSamples);
        self.resident_samples = self.entries(ChunkKind::ResidentSamples);
        self.memory_accounts = self.entries(ChunkKind::MemoryAccounts);
        self.memory_readings = self.entries(ChunkKind::MemoryReadings);
        self.losses = self.entries(ChunkKind::Losses);
        self.statistics = self.entries(ChunkKind::Statistics);
        self.snapshots = self.entries(ChunkKind::Snapshots);
        self.heap_names = self.entries(ChunkKind::HeapNames);
        self.notices = self.entries(ChunkKind::Notices);
        self.sampling = Sampling::new(self.entries(ChunkKind::Sampling));
        self.functions = self.entries(ChunkKind::Functions);
        // Of two with the same key the later one counts.
        self.functions.reverse();
        self.functions.sort_by_key(LanguageFunction::key);
        self.functions.dedup_by_key(|function| function.key());
        self.complete_processes();
        self.mapping_order = (0..self.mappings.len() as u32).collect();
        let mappings = &self.mappings;
        self.mapping_order.sort_by_key(|&number| {
            let mapping = &mappings[number as usize];
            (mapping.process, mapping.start_avma, mapping.loaded_ns)
        });
        let mut reach: Option<(ProcessIndex, u64)> = None;
        let ordered = self.mapping_order.iter().map(|&number| &mappings[number as usize]);
        self.mapping_reach = ordered
            .map(|mapping| {
                let before = reach.filter(|(process, _)| *process == mapping.process);
                let end = before.map_or(mapping.end_avma, |(_, end)| end.max(mapping.end_avma));
                reach = Some((mapping.process, end));
                end
            })
            .collect();
    }
}

pub(super) fn damage_of(info: &ChunkInfo, error: &Error) -> Damage {
    let what = match error {
        Error::Damaged { what, .. } => what,
        _ => "the chunk cannot be read",
    };
    Damage { offset: info.offset, bytes: CHUNK_HEADER_BYTES as u64 + u64::from(info.stored_bytes), what }
}

fn check_header(source: &dyn ReadAt) -> Result<()> {
    let mut header = [0; FILE_HEADER_BYTES];
    let count = read_up_to(source, &mut header, 0)?;
    if count == 0 {
        return Err(Error::Empty);
    }
    if count < FILE_HEADER_BYTES || header[..8] != FILE_MAGIC {
        return Err(Error::NotATrace { found: header[..count.min(8)].to_vec() });
    }
    let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if found == 0 {
        return Err(Error::NotATrace { found: header[..12].to_vec() });
    }
    if found > SAMPLED_FORMAT_VERSION {
        return Err(Error::NewerVersion { found, known: SAMPLED_FORMAT_VERSION });
    }
    Ok(())
}

/// Puts an entry at its index.
fn place<T: Clone>(table: &mut Vec<T>, index: u32, entry: T, unknown: &T, limit: usize) {
    let index = index as usize;
    if index >= limit {
        return;
    }
    if index >= table.len() {
        table.resize(index + 1, unknown.clone());
    }
    table[index] = entry;
}

/// Decodes the chunks of an untrusted index.
fn take_index(stream: &[u8], count: usize, size: u64) -> std::result::Result<Vec<ChunkInfo>, Malformed> {
    let mut take = Take::new(stream);
    let mut chunks = Vec::new();
    let mut expected = FILE_HEADER_BYTES as u64;
    for _ in 0..count {
        let offset = expected.checked_add(take.varint()?).ok_or(Malformed("an offset is beyond 64 bits"))?;
        let kind_number =
            u16::try_from(take.varint()?).map_err(|_| Malformed("a chunk's kind is beyond 16 bits"))?;
        let kind = ChunkKind::from_number(kind_number);
        let [stored_bytes, raw_bytes, item_count] = [take.varint32()?, take.varint32()?, take.varint32()?];
        let first_ns = take.varint()?;
        let last_ns = first_ns.wrapping_add(take.varint()?);
        expected = offset
            .checked_add(CHUNK_HEADER_BYTES as u64 + u64::from(stored_bytes))
            .filter(|&end| end <= size)
            .ok_or(Malformed("a chunk lies beyond the file"))?;
        chunks.push(ChunkInfo {
            offset,
            kind,
            kind_number,
            stored_bytes,
            raw_bytes,
            item_count,
            first_ns,
            last_ns,
        });
    }
    Ok(chunks)
}
