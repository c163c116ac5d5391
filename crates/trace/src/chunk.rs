//! The frame of the file: header, chunks, trailer. `docs/format.md` has a worked example.
//!
//! ```text
//! +--------+-------+-------+-- --+-------+-------+---------+
//! | header | chunk | chunk | ... | chunk | index | trailer |
//! +--------+-------+-------+-- --+-------+-------+---------+
//!
//! header   "HEAPRTRC" version:u32 0:u32
//! chunk    "HPCK" kind:u16 flags:u16 stored_bytes:u32 raw_bytes:u32 item_count:u32 payload_crc:u32
//!          first_ns:u64 last_ns:u64 header_crc:u32 0:u32   payload:stored_bytes
//! trailer  "HEAPREND" index_offset:u64 crc of the 16 bytes before:u32 0:u32
//! ```
//! A file without a trailer (the recorder was killed, the disk was full) is read chunk by chunk. A
//! damaged part is skipped up to the next sound chunk header.

use crate::bytes::Take;
use crate::error::Malformed;

/// First bytes of the file.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"HEAPRTRC";
/// Version of files in which every allocation is recorded.
pub const FORMAT_VERSION: u32 = 1;
/// Version of files whose numbers may be estimates ([`crate::Sampling`]); the newest version. A
/// reader that does not know this version must not take the numbers for counts.
pub const SAMPLED_FORMAT_VERSION: u32 = 2;
/// Size of the file's header in bytes.
pub(crate) const FILE_HEADER_BYTES: usize = 16;
/// First bytes of a chunk.
pub(crate) const CHUNK_MAGIC: [u8; 4] = *b"HPCK";
/// Size of a chunk's header in bytes.
pub(crate) const CHUNK_HEADER_BYTES: usize = 48;
/// First bytes of the trailer.
pub(crate) const TRAILER_MAGIC: [u8; 8] = *b"HEAPREND";
/// Size of the trailer in bytes.
pub(crate) const TRAILER_BYTES: usize = 24;
/// Largest size of a chunk in bytes, stored or unpacked. Bounds the memory that a hostile file can
/// make a reader allocate.
pub(crate) const CHUNK_BYTES_MAX: u32 = 64 << 20;
/// Number of items per chunk of the larger tables (stacks, checkpoint, summary). Keeps every chunk
/// far below its largest size.
pub(crate) const ITEMS_PER_CHUNK: usize = 1 << 16;

/// Kind of a chunk's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ChunkKind {
    System = 1,
    Session = 2,
    Processes = 3,
    Threads = 4,
    Modules = 5,
    Mappings = 6,
    Stacks = 7,
    Events = 8,
    Checkpoint = 9,
    Markers = 10,
    RssSamples = 11,
    Losses = 12,
    Statistics = 13,
    Summary = 14,
    Symbols = 15,
    Index = 16,
    StackTotals = 17,
    Snapshots = 18,
    SnapshotBlocks = 19,
    HeapNames = 20,
    Notices = 21,
    ResidentSamples = 22,
    Graphs = 23,
    GraphEdges = 24,
    GraphRoots = 25,
    Functions = 26,
    Course = 27,
    MemoryAccounts = 28,
    Sampling = 29,
    GraphTexts = 30,
    Variances = 31,
    StackVariances = 32,
    CourseRests = 33,
    MemoryReadings = 34,
    GraphSlices = 35,
}

impl ChunkKind {
    /// The kind with this number; `None` for a number of a later version.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        const KINDS: [ChunkKind; 35] = [
            ChunkKind::System,
            ChunkKind::Session,
            ChunkKind::Processes,
            ChunkKind::Threads,
            ChunkKind::Modules,
            ChunkKind::Mappings,
            ChunkKind::Stacks,
            ChunkKind::Events,
            ChunkKind::Checkpoint,
            ChunkKind::Markers,
            ChunkKind::RssSamples,
            ChunkKind::Losses,
            ChunkKind::Statistics,
            ChunkKind::Summary,
            ChunkKind::Symbols,
            ChunkKind::Index,
            ChunkKind::StackTotals,
            ChunkKind::Snapshots,
            ChunkKind::SnapshotBlocks,
            ChunkKind::HeapNames,
            ChunkKind::Notices,
            ChunkKind::ResidentSamples,
            ChunkKind::Graphs,
            ChunkKind::GraphEdges,
            ChunkKind::GraphRoots,
            ChunkKind::Functions,
            ChunkKind::Course,
            ChunkKind::MemoryAccounts,
            ChunkKind::Sampling,
            ChunkKind::GraphTexts,
            ChunkKind::Variances,
            ChunkKind::StackVariances,
            ChunkKind::CourseRests,
            ChunkKind::MemoryReadings,
            ChunkKind::GraphSlices,
        ];
        KINDS.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A chunk as the index and `heapr info` show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Offset of the chunk's header in the file.
    pub offset: u64,
    /// Kind of the contents; `None` for a kind that this version does not know.
    pub kind: Option<ChunkKind>,
    /// Number of the kind in the file, known or not.
    pub kind_number: u16,
    /// Bytes of the payload in the file.
    pub stored_bytes: u32,
    /// Bytes of the payload unpacked.
    pub raw_bytes: u32,
    /// Number of items in the chunk.
    pub item_count: u32,
    /// Time of the first item.
    pub first_ns: u64,
    /// Time of the last item.
    pub last_ns: u64,
}

/// A chunk's header as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) stored_bytes: u32,
    pub(crate) raw_bytes: u32,
    pub(crate) item_count: u32,
    pub(crate) payload_crc: u32,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl ChunkHeader {
    pub(crate) fn to_bytes(self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(CHUNK_HEADER_BYTES);
        bytes.extend_from_slice(&CHUNK_MAGIC);
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        bytes.extend_from_slice(&self.flags.to_le_bytes());
        for word in [self.stored_bytes, self.raw_bytes, self.item_count, self.payload_crc] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.first_ns.to_le_bytes());
        bytes.extend_from_slice(&self.last_ns.to_le_bytes());
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        let mut header = [0; CHUNK_HEADER_BYTES];
        header[..bytes.len()].copy_from_slice(&bytes);
        header
    }

    /// Decodes a header from untrusted bytes.
    pub(crate) fn from_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<Self, Malformed> {
        let mut take = Take::new(bytes);
        if take.bytes(4)? != CHUNK_MAGIC {
            return Err(Malformed("no chunk begins here"));
        }
        let kind = u16::from_le_bytes([take.u8()?, take.u8()?]);
        let flags = u16::from_le_bytes([take.u8()?, take.u8()?]);
        let [stored_bytes, raw_bytes, item_count, payload_crc] =
            [take.u32()?, take.u32()?, take.u32()?, take.u32()?];
        let (first_ns, last_ns) = (take.u64()?, take.u64()?);
        // A fuzzer would never get past a checksum; likewise in `index_offset`.
        if crc32fast::hash(&bytes[..40]) != take.u32()? && !cfg!(fuzzing) {
            return Err(Malformed("the chunk header's checksum is wrong"));
        }
        if stored_bytes > CHUNK_BYTES_MAX || raw_bytes > CHUNK_BYTES_MAX {
            return Err(Malformed("the chunk claims to be larger than any is"));
        }
        Ok(Self { kind, flags, stored_bytes, raw_bytes, item_count, payload_crc, first_ns, last_ns })
    }

    pub(crate) fn info(self, offset: u64) -> ChunkInfo {
        ChunkInfo {
            offset,
            kind: ChunkKind::from_number(self.kind),
            kind_number: self.kind,
            stored_bytes: self.stored_bytes,
            raw_bytes: self.raw_bytes,
            item_count: self.item_count,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
        }
    }
}

/// The trailer's bytes for an index at `index_offset`.
pub(crate) fn trailer(index_offset: u64) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..8].copy_from_slice(&TRAILER_MAGIC);
    bytes[8..16].copy_from_slice(&index_offset.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Offset of the index, if the bytes are a sound trailer.
pub(crate) fn index_offset(bytes: &[u8; TRAILER_BYTES]) -> Option<u64> {
    let mut take = Take::new(bytes);
    if take.bytes(8).ok()? != TRAILER_MAGIC {
        return None;
    }
    let offset = take.u64().ok()?;
    (crc32fast::hash(&bytes[..16]) == take.u32().ok()? || cfg!(fuzzing)).then_some(offset)
}
