//! glibc's malloc structures as offsets, for x86-64 and glibc 2.31 to 2.43.
//!
//! ```text
//! malloc_state (2200 bytes; 2.43: 2112)            heap_info              malloc_par from 2.35 (before; 2.43)
//!     0 i32 mutex         4 i32 flags                0 arena                32 arena_max
//!     8 i32 have_fastchunks (2.43: -)                8 previous heap        40 thp_pagesize, 48 hp_pagesize (-; 48, 56)
//!    16 fastbins[10]        (2.43: -)               16 size in bytes        60 i32 n_mmaps        (40; 68)
//!    96 top             104 last_remainder          24 made accessible      80 mmapped_mem        (56; 88)
//!   112 bins[254]: fd and bk of bins 1 to 127       32 page size, 2.35 on   96 sbrk_base          (72; 104)
//!  2144 binmap[4]      2160 next arena              size 48 (before: 32)   104 tcache_bins, tcache_max_bytes, tcache_count
//!  2184 system_mem     2192 max_system_mem                                     (80; 112)
//!  (2.43: top 8, bins 24, binmap 2056, next 2072, system_mem 2096)
//!
//! chunk:   0 size of the previous chunk, if that is free   8 size | flags   16 the block; in lists: next, key
//!          with a mapping of its own: to the end of it; 2.43: 16 bytes less, and flag 1 in the first word for huge pages
//! tcache (640 bytes):             0 u16 counts[64]       128 entries[64]
//!         2.42 on (760 bytes):    0 u16 free slots[76]   152 entries[76]; the last 12 hold sizes from a power of two to the next
//! ```
//!
//! Read from malloc/malloc.c and malloc/arena.c of these versions.

use std::fmt;

/// Offset of the block in its chunk, and size of the two words before it.
pub(super) const HEADER_BYTES: u64 = 16;
/// Chunks are aligned so.
pub(super) const ALIGNMENT_BYTES: u64 = 16;
/// The smallest chunk.
pub(super) const MIN_CHUNK_BYTES: u64 = 32;
/// A chunk of this size is not a chunk but marks the end of a piece of heap.
pub(super) const FENCE_BYTES: u64 = 16;
/// A page of x86-64.
pub const PAGE_BYTES: u64 = 4096;
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

/// Facts of malloc_state that are the same in all versions.
pub(super) mod state {
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const FASTBIN_COUNT: usize = 10;
    pub(crate) const BIN_COUNT: usize = 127;
    /// The largest.
    pub(crate) const MOST_BYTES: usize = 2200;
    /// The arena does not grow by brk, or no longer does.
    pub(crate) const NONCONTIGUOUS: u32 = 2;
}

/// Offsets in malloc_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateOffsets {
    /// Where there are fastbins.
    pub(super) fastbins: Option<usize>,
    pub(super) top: usize,
    pub(super) bins: usize,
    pub(super) next: usize,
    pub(super) system_bytes: usize,
    /// Size of all of it.
    pub(super) bytes: usize,
}

/// What tcache_perthread_struct looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheLayout {
    pub(super) bin_count: usize,
    /// Its numbers say how many more chunks a bin may take, not how many it holds.
    pub(super) counts_free_slots: bool,
}

impl CacheLayout {
    /// Bins of one size each.
    pub(super) const SMALL_BINS: usize = 64;
    /// Bins of several sizes each, since 2.42.
    const LARGE_BINS: usize = 12;
    /// The largest.
    pub(super) const MOST_BYTES: usize = (Self::SMALL_BINS + Self::LARGE_BINS) * 10;

    pub(super) fn entries_offset(self) -> usize {
        self.bin_count * 2
    }

    pub(super) fn bytes(self) -> usize {
        self.bin_count * 10
    }

    /// Whether it may lie in a chunk of `size_bytes`: the exact size, or with a rest too small for
    /// a chunk of its own.
    #[inline]
    pub(super) fn fits(self, size_bytes: u64) -> bool {
        let exact_bytes = (self.bytes() as u64 + 8).next_multiple_of(ALIGNMENT_BYTES);
        size_bytes == exact_bytes || size_bytes == exact_bytes + ALIGNMENT_BYTES
    }

    /// The least and the largest size of the chunks in bin `bin`.
    pub(super) fn chunk_bytes(self, bin: usize) -> (u64, u64) {
        match bin.checked_sub(Self::SMALL_BINS) {
            None => {
                let bytes = MIN_CHUNK_BYTES + bin as u64 * ALIGNMENT_BYTES;
                (bytes, bytes)
            }
            // By the number of their bits.
            Some(large) => (1024 << large, (2048 << large) - 1),
        }
    }
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
    /// The newest.
    pub const NEWEST: Self = Self { major: 2, minor: 43 };
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
    /// Between the end of a chunk with a mapping of its own, as its size says, and that of the
    /// mapping.
    pub(super) mapped_rest_bytes: u64,
    pub(super) state: StateOffsets,
    pub(super) cache: CacheLayout,
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

impl ParameterOffsets {
    fn at(huge_page_bytes: Option<usize>, mapped_count: usize, mapped_bytes: usize) -> Self {
        // The rest follows: most mapped bytes, the beginning of brk, three words on the threads'
        // caches.
        let brk_start = mapped_bytes + 16;
        Self {
            huge_page_bytes,
            mapped_count,
            mapped_bytes,
            brk_start,
            cache_bins: brk_start + 8,
            bytes: brk_start + 32,
        }
    }
}

impl Layout {
    /// The layout of `version`, if it is known.
    pub(super) fn of(version: Version) -> Option<Self> {
        if version < Version::OLDEST || version > Version::NEWEST {
            return None;
        }
        let is_from = |minor: u32| version.minor >= minor;
        Some(Self {
            heap_info_bytes: if is_from(35) { 48 } else { 32 },
            has_hidden_links: is_from(32),
            mapped_rest_bytes: if is_from(43) { HEADER_BYTES } else { 0 },
            state: if is_from(43) {
                StateOffsets { fastbins: None, top: 8, bins: 24, next: 2072, system_bytes: 2096, bytes: 2112 }
            } else {
                StateOffsets {
                    fastbins: Some(16),
                    top: 96,
                    bins: 112,
                    next: 2160,
                    system_bytes: 2184,
                    bytes: state::MOST_BYTES,
                }
            },
            cache: if is_from(42) {
                CacheLayout {
                    bin_count: CacheLayout::SMALL_BINS + CacheLayout::LARGE_BINS,
                    counts_free_slots: true,
                }
            } else {
                CacheLayout { bin_count: CacheLayout::SMALL_BINS, counts_free_slots: false }
            },
            parameters: match version.minor {
                43.. => ParameterOffsets::at(Some(56), 68, 88),
                35.. => ParameterOffsets::at(Some(48), 60, 80),
                _ => ParameterOffsets::at(None, 40, 56),
            },
        })
    }

    /// The header of a block with a mapping of its own, and what is left behind it: since 2.43 such
    /// a chunk ends with the word that others take from the next, too.
    pub(super) fn mapped_overhead_bytes(&self) -> u64 {
        HEADER_BYTES + self.mapped_rest_bytes / 2
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
