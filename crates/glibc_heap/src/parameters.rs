//! malloc's parameters (`mp_`): the start of brk, the count of mapped blocks.

use super::heap_memory::HeapMemory;
use super::layout::{ALIGNMENT_BYTES, CacheLayout, Layout, MIN_CHUNK_BYTES, half, word};
use super::mappings;
use heapr_proc::Mapping;
use heapr_proc::page_bytes;

/// Fields of `mp_` that the walk uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Present number of blocks with a mapping of their own.
    pub(super) mapped_count: u64,
    /// Bytes of their mappings. Since 2.43 each move or resize of a block adds the 16 bytes of its
    /// header once more.
    pub(super) mapped_bytes: u64,
    /// Whether `mapped_bytes` drifts in this way.
    pub(super) drifts: bool,
    /// First address from sbrk; 0 if brk was never used.
    pub(super) brk_start_avma: u64,
    /// Page size of huge-page heaps; 0 without them.
    pub(super) huge_page_bytes: u64,
}

impl Parameters {
    /// Reads the parameters at `address_avma`.
    pub(super) fn read(memory: &impl HeapMemory, layout: &Layout, address_avma: u64) -> Option<Self> {
        let mut bytes = vec![0; layout.parameters.bytes];
        (memory.read(address_avma, &mut bytes) == bytes.len()).then(|| Self::decode(&bytes, layout))
    }

    fn decode(bytes: &[u8], layout: &Layout) -> Self {
        let offsets = &layout.parameters;
        Self {
            mapped_count: u64::from(half(bytes, offsets.mapped_count)),
            mapped_bytes: word(bytes, offsets.mapped_bytes),
            drifts: layout.mapped_rest_bytes != 0,
            brk_start_avma: word(bytes, offsets.brk_start),
            huge_page_bytes: offsets.huge_page_bytes.map_or(0, |offset| word(bytes, offset)),
        }
    }
}

/// The only position in libc's data that is plausible as `mp_`; `None` without one or with several.
pub(super) fn find(data: &[(u64, Vec<u8>)], layout: &Layout, mappings: &[Mapping]) -> Option<u64> {
    let mut found = None;
    for (start_avma, bytes) in data {
        for offset in (0..bytes.len().saturating_sub(layout.parameters.bytes - 1)).step_by(8) {
            if !is_plausible(&bytes[offset..offset + layout.parameters.bytes], layout, mappings) {
                continue;
            }
            if found.is_some() {
                return None;
            }
            found = Some(start_avma + offset as u64);
        }
    }
    found
}

fn is_plausible(bytes: &[u8], layout: &Layout, mappings: &[Mapping]) -> bool {
    /// Largest threshold that is believed.
    const MOST_THRESHOLD_BYTES: u64 = 1 << 47;
    let offsets = &layout.parameters;
    let cache_bins = word(bytes, offsets.cache_bins);
    let cache_most_bytes = word(bytes, offsets.cache_bins + 8);
    let cache_count = word(bytes, offsets.cache_bins + 16);
    if cache_bins == 0 || cache_bins > CacheLayout::SMALL_BINS as u64 || cache_count > 0xffff {
        return false;
    }
    // The number of bins follows from the largest size: 1032 with all 64. Since 2.42 this may be
    // larger, up to 4 MiB, with all 64. A tunable sets a chunk's size, since 2.43 one byte more.
    let has_implied = if layout.cache.counts_free_slots {
        let implied_bins =
            cache_most_bytes.checked_sub(MIN_CHUNK_BYTES).map(|rest| rest / ALIGNMENT_BYTES + 1);
        let has_all =
            cache_bins == CacheLayout::SMALL_BINS as u64 && (1024..=4 << 20).contains(&cache_most_bytes);
        has_all || implied_bins == Some(cache_bins)
    } else {
        let implied_bins = cache_most_bytes.saturating_add(8).div_ceil(ALIGNMENT_BYTES);
        implied_bins == cache_bins + 1
    };
    if !has_implied {
        return false;
    }
    let parameters = Parameters::decode(bytes, layout);
    let most_mapped_bytes = word(bytes, offsets.mapped_bytes + 8);
    let brk_start_avma = parameters.brk_start_avma;
    let is_in_brk = mappings
        .iter()
        .any(|heap| mappings::is_brk(heap) && (heap.start_avma..=heap.end_avma).contains(&brk_start_avma));
    let (unit_bytes, drifts) =
        if parameters.drifts { (ALIGNMENT_BYTES, true) } else { (page_bytes(), false) };
    parameters.mapped_bytes.is_multiple_of(unit_bytes)
        && (parameters.mapped_count == 0 || parameters.mapped_bytes != 0)
        && (drifts || parameters.mapped_count != 0 || parameters.mapped_bytes == 0)
        && parameters.mapped_bytes <= most_mapped_bytes
        && (brk_start_avma == 0 || is_in_brk)
        && word(bytes, 16) <= MOST_THRESHOLD_BYTES
}
