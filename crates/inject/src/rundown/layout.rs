//! glibc's malloc structures as offsets, for x86-64 and glibc 2.31 to 2.41.
//!
//! ```text
//! malloc_state (2200 bytes, all versions)          heap_info              malloc_par from 2.35 (before)
//!     0 i32 mutex         4 i32 flags                0 arena                32 arena_max
//!     8 i32 have_fastchunks                          8 previous heap        40 thp_pagesize, 48 hp_pagesize (-)
//!    16 fastbins[10]                                16 size in bytes        60 i32 n_mmaps        (40)
//!    96 top             104 last_remainder          24 made accessible      80 mmapped_mem        (56)
//!   112 bins[254]: fd and bk of bins 1 to 127       32 page size, 2.35 on   96 sbrk_base          (72)
//!  2144 binmap[4]      2160 next arena              size 48 (before: 32)
//!  2184 system_mem     2192 max_system_mem
//!
//! chunk:   0 size of the previous chunk, if that is free   8 size | flags   16 the block; in lists: next, key
//! tcache (640 bytes):  0 u16 counts[64]   128 entries[64]
//! ```

use std::fmt;

/// Offset of the block in its chunk, and size of the two words before it.
pub(super) const HEADER_BYTES: u64 = 16;
/// Chunks are aligned so.
pub(super) const ALIGNMENT_BYTES: u64 = 16;
/// The smallest chunk.
pub(super) const MIN_CHUNK_BYTES: u64 = 32;
/// A chunk of this size is not a chunk but marks the end of a piece of heap.
pub(super) const FENCE_BYTES: u64 = 16;
/// Pages of x86-64.
pub(super) const PAGE_BYTES: u64 = 4096;
/// No user address lies above (five-level tables are used only on request; 57 bits then).
pub(super) const ADDRESS_LIMIT: u64 = 1 << 56;

/// Flag: the chunk before is in use.
pub(super) const PREV_INUSE: u64 = 1;
/// Flag: the chunk has a mapping of its own.
pub(super) const IS_MMAPPED: u64 = 2;
/// Flag: the chunk belongs to an arena other than the main one.
pub(super) const NON_MAIN_ARENA: u64 = 4;
/// All three.
pub(super) const FLAGS: u64 = 7;

/// Offsets in malloc_state.
pub(super) mod state {
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const FASTBINS: usize = 16;
    pub(crate) const FASTBIN_COUNT: usize = 10;
    pub(crate) const TOP: usize = 96;
    pub(crate) const BINS: usize = 112;
    pub(crate) const BIN_COUNT: usize = 127;
    pub(crate) const NEXT: usize = 2160;
    pub(crate) const SYSTEM_MEM: usize = 2184;
    pub(crate) const BYTES: usize = 2200;
    /// The arena does not grow by brk, or no longer does.
    pub(crate) const NONCONTIGUOUS: u32 = 2;
}

/// Offsets in tcache_perthread_struct.
pub(super) mod cache {
    pub(crate) const BINS: usize = 64;
    pub(crate) const ENTRIES: usize = 128;
    pub(crate) const BYTES: usize = 640;
    /// The sizes of the chunk that it lies in: exact, or with a rest too small for a chunk of its own.
    pub(crate) const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 0x290..=0x2a0;
}

/// The size of the chunks in bin `bin` of a thread's cache.
pub(super) fn cache_bin_chunk_bytes(bin: usize) -> u64 {
    super::layout::MIN_CHUNK_BYTES + bin as u64 * ALIGNMENT_BYTES
}

/// The size of the chunks in fastbin `bin`.
pub(super) fn fastbin_chunk_bytes(bin: usize) -> u64 {
    MIN_CHUNK_BYTES + bin as u64 * ALIGNMENT_BYTES
}

/// Whether `size_field` can be that of a chunk.
pub(super) fn is_chunk_size(size_field: u64) -> bool {
    let size_bytes = size_field & !FLAGS;
    size_bytes >= MIN_CHUNK_BYTES && size_bytes.is_multiple_of(ALIGNMENT_BYTES) && size_bytes < ADDRESS_LIMIT
}

/// A glibc version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 2.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl Version {
    /// The oldest whose heap is known here.
    pub const OLDEST: Self = Self { major: 2, minor: 31 };
    /// The newest; 2.42 has other thread caches.
    pub const NEWEST: Self = Self { major: 2, minor: 41 };
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// What differs between the versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Size of the header of a secondary heap.
    pub(super) heap_info_bytes: u64,
    /// Links in lists are stored as `link ^ (place >> 12)`.
    pub(super) has_hidden_links: bool,
    pub(super) parameters: ParameterOffsets,
}

/// Offsets in malloc_par.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParameterOffsets {
    /// Where the page size of huge-page heaps is, if there are any.
    pub(super) huge_page_bytes: Option<usize>,
    pub(super) mapped_count: usize,
    pub(super) mapped_bytes: usize,
    pub(super) brk_start: usize,
    pub(super) cache_bins: usize,
    pub(super) bytes: usize,
}

impl Layout {
    /// The layout of `version`, if it is known.
    pub(super) fn of(version: Version) -> Option<Self> {
        if version < Version::OLDEST || version > Version::NEWEST {
            return None;
        }
        let is_2_35 = version.minor >= 35;
        Some(Self {
            heap_info_bytes: if is_2_35 { 48 } else { 32 },
            has_hidden_links: version.minor >= 32,
            parameters: if is_2_35 {
                ParameterOffsets {
                    huge_page_bytes: Some(48),
                    mapped_count: 60,
                    mapped_bytes: 80,
                    brk_start: 96,
                    cache_bins: 104,
                    bytes: 128,
                }
            } else {
                ParameterOffsets {
                    huge_page_bytes: None,
                    mapped_count: 40,
                    mapped_bytes: 56,
                    brk_start: 72,
                    cache_bins: 80,
                    bytes: 104,
                }
            },
        })
    }

    /// The link stored as `stored` at `place_avma`.
    pub(super) fn link(&self, place_avma: u64, stored: u64) -> u64 {
        if self.has_hidden_links { stored ^ (place_avma >> 12) } else { stored }
    }
}

/// The little-endian word at `offset`, which must lie in `bytes`.
pub(super) fn word(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

/// The little-endian half word at `offset`, which must lie in `bytes`.
pub(super) fn half(bytes: &[u8], offset: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(half)
}
