//! glibc's malloc structures as offsets, for 64-bit processors and glibc 2.31 to 2.43.
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
/// Alignment of chunks.
pub(super) const ALIGNMENT_BYTES: u64 = 16;
/// Size of the smallest chunk.
pub(super) const MIN_CHUNK_BYTES: u64 = 32;
/// Size of the marks at the end of a piece of heap; no chunk has this size.
pub(super) const FENCE_BYTES: u64 = 16;
/// Exclusive upper bound of user addresses: 56 of the 57 bits of five-level page tables, which are
/// used on request only.
pub(super) const ADDRESS_LIMIT: u64 = 1 << 56;

/// Flag: the chunk before is in use.
pub(super) const PREV_INUSE: u64 = 1;
/// Flag: the chunk has a mapping of its own.
pub(super) const IS_MMAPPED: u64 = 2;
/// Flag: the chunk belongs to an arena other than the main one.
pub(super) const NON_MAIN_ARENA: u64 = 4;
/// All three flags.
pub(super) const FLAGS: u64 = 7;

/// Facts of malloc_state that are equal in all versions.
pub(super) mod state {
    pub(crate) const FLAGS: usize = 4;
    pub(crate) const FASTBIN_COUNT: usize = 10;
    pub(crate) const BIN_COUNT: usize = 127;
    /// Largest size of malloc_state in any version.
    pub(crate) const MOST_BYTES: usize = 2200;
    /// Flag: the arena does not grow by brk, or cannot any more.
    pub(crate) const NONCONTIGUOUS: u32 = 2;
}

/// Offsets in malloc_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateOffsets {
    /// Offset of the fastbins; `None` in versions without them.
    pub(super) fastbins: Option<usize>,
    pub(super) top: usize,
    pub(super) bins: usize,
    pub(super) next: usize,
    pub(super) system_bytes: usize,
    /// Size of the structure.
    pub(super) bytes: usize,
}

/// Layout of tcache_perthread_struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheLayout {
    pub(super) bin_count: usize,
    /// Whether a bin's number is the chunks that it may still take, instead of the chunks that it
    /// holds.
    pub(super) counts_free_slots: bool,
}

impl CacheLayout {
    /// Number of bins with one size each.
    pub(super) const SMALL_BINS: usize = 64;
    /// Number of bins with several sizes each, since 2.42.
    const LARGE_BINS: usize = 12;
    /// Largest size of the structure in any version.
    pub(super) const MOST_BYTES: usize = (Self::SMALL_BINS + Self::LARGE_BINS) * 10;

    pub(super) fn entries_offset(self) -> usize {
        self.bin_count * 2
    }

    pub(super) fn bytes(self) -> usize {
        self.bin_count * 10
    }

    /// Whether the structure may lie in a chunk of `size_bytes`: the exact size, or with a rest too
    /// small for a chunk.
    #[inline]
    pub(super) fn fits(self, size_bytes: u64) -> bool {
        let exact_bytes = (self.bytes() as u64 + 8).next_multiple_of(ALIGNMENT_BYTES);
        size_bytes == exact_bytes || size_bytes == exact_bytes + ALIGNMENT_BYTES
    }

    /// Least and largest size of the chunks in bin `bin`.
    pub(super) fn chunk_bytes(self, bin: usize) -> (u64, u64) {
        match bin.checked_sub(Self::SMALL_BINS) {
            None => {
                let bytes = MIN_CHUNK_BYTES + bin as u64 * ALIGNMENT_BYTES;
                (bytes, bytes)
            }
            // The bin number is the number of the size's bits.
            Some(large) => (1024 << large, (2048 << large) - 1),
        }
    }
}

/// Size of the chunks in fastbin `bin`.
pub(super) fn fastbin_chunk_bytes(bin: usize) -> u64 {
    MIN_CHUNK_BYTES + bin as u64 * ALIGNMENT_BYTES
}

/// Whether `size_field` is possible for a chunk.
pub(super) fn is_chunk_size(size_field: u64) -> bool {
    let size_bytes = size_field & !FLAGS;
    size_bytes >= MIN_CHUNK_BYTES && size_bytes.is_multiple_of(ALIGNMENT_BYTES) && size_bytes < ADDRESS_LIMIT
}

/// A glibc version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major version: 2.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl Version {
    /// Oldest version with a known heap.
    pub const OLDEST: Self = Self { major: 2, minor: 31 };
    /// Newest version with a known heap.
    pub const NEWEST: Self = Self { major: 2, minor: 43 };
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// Differences between the versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Size of the header of a secondary heap.
    pub(super) heap_info_bytes: u64,
    /// Whether links in lists are stored as `link ^ (place >> 12)`.
    pub(super) has_hidden_links: bool,
    /// Bytes between the end of a mapped chunk, by its size field, and the end of its mapping.
    pub(super) mapped_rest_bytes: u64,
    pub(super) state: StateOffsets,
    pub(super) cache: CacheLayout,
    pub(super) parameters: ParameterOffsets,
}

/// Offsets in malloc_par.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParameterOffsets {
    /// Offset of the page size of huge-page heaps; `None` in versions without it.
    pub(super) huge_page_bytes: Option<usize>,
    pub(super) mapped_count: usize,
    pub(super) mapped_bytes: usize,
    pub(super) brk_start: usize,
    pub(super) cache_bins: usize,
    pub(super) bytes: usize,
}

impl ParameterOffsets {
    fn at(huge_page_bytes: Option<usize>, mapped_count: usize, mapped_bytes: usize) -> Self {
        // The other fields follow: the peak of mapped bytes, the start of brk, three words on
        // thread caches.
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
    /// The layout of `version`; `None` if unknown.
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

    /// Bytes of a mapped chunk that the program cannot use. Since 2.43 such a chunk ends with the
    /// word that others share with the next chunk.
    pub(super) fn mapped_overhead_bytes(&self) -> u64 {
        HEADER_BYTES + self.mapped_rest_bytes / 2
    }

    /// Decodes the link stored as `stored` at `place_avma`.
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

/// The little-endian 4-byte word at `offset`, which must lie in `bytes`.
pub(super) fn half(bytes: &[u8], offset: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(half)
}
