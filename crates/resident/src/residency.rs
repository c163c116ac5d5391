//! Divides a mapping's resident pages among the owners of its parts.

use std::ops::Range;

use heapr_proc::page_bytes;
use heapr_proc::smaps::{MappingPages, PageAmounts};

use crate::subject::PageStates;

/// Counts of page states in a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    /// Pages that are certainly resident.
    exclusive: u64,
    /// Pages that are resident, or the page of zeros.
    others: u64,
    swapped: u64,
}

/// Divides a mapping's pages among `ranges`, which cover it without overlap. The sums over the
/// ranges are the mapping's own amounts, to the byte.
///
/// If the states of pages are unknown, each range gets its share by addresses, and the returned
/// flag is true.
pub(crate) fn split(
    mapping: &MappingPages,
    ranges: &[Range<u64>],
    states: &impl PageStates,
) -> (Vec<PageAmounts>, bool) {
    let all = &mapping.pages;
    if ranges.len() == 1 {
        return (vec![*all], false);
    }
    let counted: Option<Vec<Counted>> = ranges.iter().map(|range| count(range, states)).collect();
    let lengths = || ranges.iter().map(|range| range.end - range.start).collect::<Vec<u64>>();
    let is_estimated = counted.is_none() && all.rss_bytes > 0;
    let (resident, swapped) = match &counted {
        Some(counted) => (resident_weights(counted, all.rss_bytes), weights(counted, |one| one.swapped)),
        None => (lengths(), lengths()),
    };
    (apportion(all, &resident, &swapped), is_estimated)
}

/// Divides amounts in proportion to weights; the sums over the parts are the whole, to the byte.
pub(crate) fn apportion(all: &PageAmounts, resident: &[u64], swapped: &[u64]) -> Vec<PageAmounts> {
    let rss = shares(all.rss_bytes, resident);
    let by_rss = |amount: u64| shares(amount, &rss);
    let pss = by_rss(all.pss_bytes);
    let columns = [
        by_rss(all.shared_clean_bytes),
        by_rss(all.shared_dirty_bytes),
        by_rss(all.private_clean_bytes),
        by_rss(all.private_dirty_bytes),
        by_rss(all.anonymous_bytes),
        by_rss(all.lazily_freed_bytes),
        by_rss(all.anonymous_huge_bytes),
        by_rss(all.mapped_huge_bytes),
        by_rss(all.reserved_huge_bytes),
        by_rss(all.locked_bytes),
    ];
    let swap = shares(all.swapped_bytes, swapped);
    let amounts = (0..rss.len()).map(|at| PageAmounts {
        rss_bytes: rss[at],
        pss_bytes: pss[at],
        shared_clean_bytes: columns[0][at],
        shared_dirty_bytes: columns[1][at],
        private_clean_bytes: columns[2][at],
        private_dirty_bytes: columns[3][at],
        anonymous_bytes: columns[4][at],
        lazily_freed_bytes: columns[5][at],
        anonymous_huge_bytes: columns[6][at],
        mapped_huge_bytes: columns[7][at],
        reserved_huge_bytes: columns[8][at],
        swapped_bytes: swap[at],
        locked_bytes: columns[9][at],
    });
    amounts.collect()
}

fn weights(counted: &[Counted], of: impl Fn(&Counted) -> u64) -> Vec<u64> {
    counted.iter().map(of).collect()
}

/// Number of resident pages per range. Pages that are not exclusive may be the page of zeros, which
/// is not resident. As many of them count as are missing to `rss_bytes`, in proportion.
fn resident_weights(counted: &[Counted], rss_bytes: u64) -> Vec<u64> {
    let exclusive: u64 = counted.iter().map(|one| one.exclusive).sum();
    let missing = (rss_bytes / page_bytes()).saturating_sub(exclusive);
    let others = shares(missing, &weights(counted, |one| one.others));
    let sums: Vec<u64> = counted.iter().zip(&others).map(|(one, others)| one.exclusive + others).collect();
    // The mapping changed in between: it had no pages when the states were read.
    if sums.iter().all(|pages| *pages == 0) { vec![1; counted.len()] } else { sums }
}

fn count(range: &Range<u64>, states: &impl PageStates) -> Option<Counted> {
    /// Pages per query: half a megabyte of entries.
    const BATCH_PAGES: u64 = 1 << 16;
    let mut counted = Counted::default();
    let mut start_avma = range.start / page_bytes() * page_bytes();
    while start_avma < range.end {
        let pages = (range.end - start_avma).div_ceil(page_bytes()).min(BATCH_PAGES);
        for state in states.pages(start_avma, pages as usize)? {
            counted.swapped += u64::from(state.is_swapped());
            counted.exclusive += u64::from(state.is_present() && state.is_exclusive());
            counted.others += u64::from(state.is_present() && !state.is_exclusive());
        }
        start_avma += pages * page_bytes();
    }
    Some(counted)
}

/// Divides `amount` in proportion to `weights` into whole numbers whose sum is `amount`. If all
/// weights are 0, the first part gets all.
pub(crate) fn shares(amount: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let (mut seen, mut given) = (0_u128, 0_u64);
    let mut shares: Vec<u64> = weights
        .iter()
        .map(|weight| {
            seen += u128::from(*weight);
            let up_to = (u128::from(amount) * seen).checked_div(total).unwrap_or(0) as u64;
            let share = up_to - given;
            given = up_to;
            share
        })
        .collect();
    if given < amount
        && let Some(first) = shares.first_mut()
    {
        *first += amount - given;
    }
    shares
}

#[cfg(test)]
mod tests {
    use heapr_proc::PageState;
    use heapr_proc::mappings::Mapping;

    use super::*;

    const PRESENT: u64 = 1 << 63;
    const EXCLUSIVE: u64 = PRESENT | 1 << 56;

    struct States(Vec<u64>);

    impl PageStates for States {
        fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
            let first = (start_avma / page_bytes()) as usize;
            let entries = self.0.get(first..first + page_count)?;
            Some(entries.iter().map(|entry| PageState::from_entry(*entry)).collect())
        }
    }

    fn mapping(pages: u64, rss_pages: u64) -> MappingPages {
        MappingPages {
            mapping: Mapping {
                start_avma: 0,
                end_avma: pages * page_bytes(),
                is_readable: true,
                is_writable: true,
                is_executable: false,
                is_shared: false,
                file_off: 0,
                inode: 0,
                name: String::new(),
            },
            pages: PageAmounts { rss_bytes: rss_pages * page_bytes(), ..PageAmounts::default() },
        }
    }

    #[test]
    fn the_page_of_zeros_is_nobodys() {
        let states = States(vec![EXCLUSIVE, PRESENT, EXCLUSIVE, EXCLUSIVE, 0, PRESENT]);
        let ranges = [0..2 * page_bytes(), 2 * page_bytes()..6 * page_bytes()];
        let (found, is_estimated) = split(&mapping(6, 3), &ranges, &states);
        let pages: Vec<u64> = found.iter().map(|one| one.rss_bytes / page_bytes()).collect();
        assert_eq!((pages, is_estimated), (vec![1, 2], false));
    }

    #[test]
    fn without_states_the_sum_is_still_the_mappings() {
        let (found, is_estimated) =
            split(&mapping(6, 5), &[0..page_bytes(), page_bytes()..6 * page_bytes()], &None::<States>);
        assert_eq!(found.iter().map(|one| one.rss_bytes).sum::<u64>(), 5 * page_bytes());
        assert!(is_estimated);
    }

    proptest::proptest! {
        #[test]
        fn shares_add_up(amount: u64, weights in proptest::collection::vec(0_u64..1 << 40, 1..20)) {
            let found = shares(amount, &weights);
            proptest::prop_assert_eq!(found.iter().map(|share| u128::from(*share)).sum::<u128>(), u128::from(amount));
        }
    }
}
