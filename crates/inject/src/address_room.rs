//! Free address ranges of a process near a module.

use heapr_known::machine::{HERE, SMALLEST_PAGE_BYTES};
use heapr_proc::Mapping;

/// Lowest address that is used (`vm.mmap_min_addr` is at most this on every distribution).
const LOWEST_AVMA: u64 = 0x1_0000;

/// Highest address that is used.
const HIGHEST_AVMA: u64 = HERE.address_limit - SMALLEST_PAGE_BYTES;

/// Distance in bytes that is left for a heap or a stack to grow.
const GROWTH_BYTES: u64 = 1 << 30;

/// Finds the free range of `bytes` bytes nearest to `near_avma` that lies within `distance` of it.
#[must_use]
pub(crate) fn room_near(mappings: &[Mapping], near_avma: u64, bytes: u64, distance: u64) -> Option<u64> {
    let mut best: Option<(u64, u64)> = None;
    let ends = std::iter::once((0, LOWEST_AVMA, ""))
        .chain(mappings.iter().map(|mapping| (mapping.start_avma, mapping.end_avma, mapping.name.as_str())));
    let starts = mappings
        .iter()
        .map(|mapping| (mapping.start_avma, mapping.name.as_str()))
        .chain(std::iter::once((HIGHEST_AVMA, "")));
    for ((_, gap_start, below), (gap_end, above)) in ends.zip(starts) {
        // The heap grows into the gap above it, a stack into the gap below it.
        let gap_start = if below == "[heap]" { gap_start.saturating_add(GROWTH_BYTES) } else { gap_start };
        let gap_end = gap_end.min(HIGHEST_AVMA);
        let gap_end =
            if above.starts_with("[stack") { gap_end.saturating_sub(GROWTH_BYTES) } else { gap_end };
        if gap_end < gap_start.saturating_add(bytes) {
            continue;
        }
        for start in [gap_end - bytes, gap_start] {
            let farthest = near_avma.abs_diff(start).max(near_avma.abs_diff(start + bytes));
            if farthest <= distance && best.is_none_or(|(least, _)| farthest < least) {
                best = Some((farthest, start));
            }
        }
    }
    best.map(|(_, start)| start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start_avma: u64, end_avma: u64, name: &str) -> Mapping {
        Mapping {
            start_avma,
            end_avma,
            is_readable: true,
            is_writable: false,
            is_executable: true,
            is_shared: false,
            file_off: 0x1000,
            inode: 77,
            name: name.to_owned(),
        }
    }

    #[test]
    fn room_is_found_below_the_module_and_not_above_the_heap() {
        let mappings =
            [mapping(0x5000_0000, 0x5001_0000, "/bin/x"), mapping(0x5002_0000, 0x5003_0000, "[heap]")];
        let found = room_near(&mappings, 0x5000_8000, 0x1000, 1 << 30).unwrap();
        assert!(found == 0x4fff_f000 || found == 0x5001_0000, "{found:#x}");
        let mappings =
            [mapping(0x1_0000, 0x5001_0000, "/bin/x"), mapping(0x5001_0000, 0x5003_0000, "[heap]")];
        assert_eq!(room_near(&mappings, 0x5000_8000, 0x1000, 1 << 30), None);
    }
}
