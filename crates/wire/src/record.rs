//! The event records inside an event buffer.
//!
//! A record is 1 to n little-endian 64-bit words. Word 0 of each:
//!
//! ```text
//!  63        58 57   56 55                                            0
//! +------------+-------+----------------------------------------------+
//! | kind (6)   | flags | ticks since the session's start (56)         |
//! +------------+-------+----------------------------------------------+
//! ```
//!
//! | kind | words | word 1 | word 2 | word 3 |
//! |---|---|---|---|---|
//! | `Alloc` | 3 | heap:8 address:56 | size:32 node:32 | |
//! | `AllocBig` | 4 | heap:8 address:56 | size | node |
//! | `Free` | 2 | heap:8 address:56 | | |
//! | `FreeStack` | 3 | heap:8 address:56 | node | |
//! | `ReallocPrepare` | 2 | heap:8 old address:56 | | |
//! | `ReallocCommit` | 4 | heap:8 new address:56 | size | node:32 (high), 0 |
//! | `ReallocAbort` | 3 | heap:8 old address:56 | size asked | |
//! | `AllocFailed` | 3 | size asked | node | |
//! | `Module` | n | total bytes of the record | see [`ModuleRecord`] | |
//! | `ThreadName` | 4 | 16 bytes, zero padded | | |
//! | `HeapCreate`, `HeapDestroy` | 3 | heap:8 handle:56 | node | |
//! | `HeapName` | 4 | heap:8 part:56 | 16 bytes, zero padded | |
//! | `Unmap` | 3 | heap:8 address:56 | bytes | |
//!
//! The parts of a heap's name, up to four, come before its `HeapCreate`. With `HeapDestroy` all its blocks are free.
//!
//! `Unmap` (the heap of mmap) names a range, which may cover a part of a mapping or several.
//!
//! A `ReallocPrepare` is followed, in the same thread, by its `ReallocCommit` (moved or in place) or `ReallocAbort`
//! (failed: the old block lives on). `realloc(p, 0)` that freed the block is a plain `Free`-like commit with new
//! address 0 and size 0. `realloc(NULL, n)` is an `Alloc`.

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the table above describes each")]
pub enum RecordKind {
    Alloc = 1,
    AllocBig = 2,
    Free = 3,
    FreeStack = 4,
    ReallocPrepare = 5,
    ReallocCommit = 6,
    ReallocAbort = 7,
    AllocFailed = 8,
    Module = 9,
    ThreadName = 10,
    HeapCreate = 11,
    HeapDestroy = 12,
    Unmap = 13,
    HeapName = 14,
}

impl RecordKind {
    /// Where a kind begins in word 0.
    pub const SHIFT: u32 = 58;

    /// The kind in word 0 of a record, if there is such a kind.
    #[must_use]
    pub const fn of_untrusted(word0: u64) -> Option<Self> {
        Some(match word0 >> Self::SHIFT {
            1 => Self::Alloc,
            2 => Self::AllocBig,
            3 => Self::Free,
            4 => Self::FreeStack,
            5 => Self::ReallocPrepare,
            6 => Self::ReallocCommit,
            7 => Self::ReallocAbort,
            8 => Self::AllocFailed,
            9 => Self::Module,
            10 => Self::ThreadName,
            11 => Self::HeapCreate,
            12 => Self::HeapDestroy,
            13 => Self::Unmap,
            14 => Self::HeapName,
            _ => return None,
        })
    }

    /// Words of a record of this kind; 0 for `Module`, whose word 1 holds its bytes.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::Free | Self::ReallocPrepare => 2,
            Self::Alloc | Self::FreeStack | Self::ReallocAbort | Self::AllocFailed => 3,
            Self::HeapCreate | Self::HeapDestroy | Self::Unmap => 3,
            Self::AllocBig | Self::ReallocCommit | Self::ThreadName | Self::HeapName => 4,
            Self::Module => 0,
        }
    }
}

/// Bits of word 0 that hold the time.
pub const TICKS_MASK: u64 = (1 << 56) - 1;
/// Bits of an address word that hold the address; the 8 above hold the heap.
pub const ADDRESS_MASK: u64 = (1 << 56) - 1;

/// Heap numbers of an address word.
pub const HEAP_MALLOC: u8 = 0;
/// `mmap` and its kin, with [`crate::FLAG_HOOK_MMAP`].
pub const HEAP_MMAP: u8 = 1;

/// Word 0 of a record.
#[must_use]
pub const fn word0(kind: RecordKind, ticks: u64) -> u64 {
    (kind as u64) << RecordKind::SHIFT | (ticks & TICKS_MASK)
}

/// An address word.
#[must_use]
pub const fn address_word(heap: u8, address_avma: u64) -> u64 {
    (heap as u64) << 56 | (address_avma & ADDRESS_MASK)
}

/// The fixed part of a `Module` record: 8 words, then the build-id padded to a multiple of 8, then the path likewise.
///
/// Words: 0 kind and time, 1 total bytes, 2 load bias (`l_addr`), 3 range start, 4 range end (both avma),
/// 5 build-id bytes:32 | path bytes:32, 6 flags ([`MODULE_MAIN`], [`MODULE_UNLOADED`]), 7 reserved.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRecord;

impl ModuleRecord {
    /// Words before the build-id.
    pub const FIXED_WORDS: usize = 8;
    /// Largest build-id that is kept, in bytes.
    pub const BUILD_ID_BYTES_MAX: usize = 64;
    /// Largest path that is kept, in bytes; longer ones are cut at the front.
    pub const PATH_BYTES_MAX: usize = 1024;
    /// Largest record in bytes.
    pub const BYTES_MAX: usize = Self::FIXED_WORDS * 8 + Self::BUILD_ID_BYTES_MAX + Self::PATH_BYTES_MAX;
}

/// Module flags: the main program (its path is empty in the link map; the recorder reads /proc/PID/exe).
pub const MODULE_MAIN: u64 = 1;
/// Module flags: the module of this range is gone.
pub const MODULE_UNLOADED: u64 = 2;

const _: () = assert!(ModuleRecord::BYTES_MAX < crate::BUFFER_BYTES_MIN);
