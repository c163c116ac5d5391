//! Groups rows, ranks the groups and sums those that are shown.
//!
//! This takes two passes. The first sums only the sort metric (eight bytes per group), the second
//! all amounts of the top groups. So memory is eight bytes per stack, however many stacks there
//! are.

use heapr_trace::{Amounts, StackIndex};

use crate::error::Result;
use crate::metrics::Metric;
use crate::row_table::RowSource;

/// A group of rows that is shown as one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankedGroup {
    /// Number that the caller gave the group.
    pub(crate) group: u32,
    pub(crate) amounts: Amounts,
    /// Stack of the row that adds most to the sort metric (the first of several). It represents the
    /// group where rows differ, as in source lines.
    pub(crate) representative: StackIndex,
}

/// The ranked groups, and the sum of the others.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    pub(crate) groups: Vec<RankedGroup>,
    /// Number of all groups.
    pub(crate) group_count: usize,
    /// Sum of the groups that are not in `groups`.
    pub(crate) rest: Amounts,
}

/// Group number of a row that is left out.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Ranks groups `0..group_count`; `group_of` is the group of each row. The greatest group comes
/// first. Ties are broken by more outstanding bytes, then more total bytes, then the lower number.
pub(crate) fn rank(
    rows: &RowSource<'_>,
    group_of: &[u32],
    group_count: usize,
    sort: Metric,
    top: usize,
) -> Result<Ranking> {
    let mut amounts: Vec<u64> = vec![0; group_count];
    let mut groups_of_rows = group_of.iter();
    rows.for_each(|row| {
        if let Some(&group) = groups_of_rows.next()
            && let Some(amount) = amounts.get_mut(group as usize)
        {
            *amount = amount.saturating_add(sort.of(&row.amounts));
        }
    })?;
    let mut order: Vec<u32> = (0..group_count as u32).collect();
    let by_amount = |group: &u32| (std::cmp::Reverse(amounts[*group as usize]), *group);
    let kept = top.min(group_count);
    if kept < group_count && kept > 0 {
        // Groups that tie with the last one shown must stay until ties are broken below.
        order.select_nth_unstable_by_key(kept - 1, by_amount);
        let least = amounts[order[kept - 1] as usize];
        order.retain(|&group| amounts[group as usize] >= least);
    } else if kept == 0 {
        order.clear();
    }
    order.sort_unstable();
    drop(amounts);

    let mut place = vec![NO_GROUP; group_count];
    for (at, &group) in order.iter().enumerate() {
        place[group as usize] = at as u32;
    }
    let mut groups: Vec<RankedGroup> = order
        .iter()
        .map(|&group| RankedGroup { group, amounts: Amounts::default(), representative: StackIndex::EMPTY })
        .collect();
    let mut best: Vec<Option<u64>> = vec![None; groups.len()];
    let mut rest = Amounts::default();
    let mut groups_of_rows = group_of.iter();
    rows.for_each(|row| {
        let Some(&group) = groups_of_rows.next().filter(|&&group| group != NO_GROUP) else { return };
        let amounts = row.amounts;
        let at = place[group as usize];
        if at == NO_GROUP {
            rest += &amounts;
            return;
        }
        let at = at as usize;
        groups[at].amounts += &amounts;
        let amount = sort.of(&amounts);
        if best[at].is_none_or(|best| amount > best) {
            best[at] = Some(amount);
            groups[at].representative = row.stack;
        }
    })?;
    // No two keys are equal, because they include the group's number.
    groups.sort_unstable_by_key(|ranked| {
        let amounts = &ranked.amounts;
        std::cmp::Reverse((
            sort.of(amounts),
            amounts.outstanding_bytes,
            amounts.total_bytes,
            std::cmp::Reverse(ranked.group),
        ))
    });
    for left_out in groups.drain(kept..) {
        rest += &left_out.amounts;
    }
    Ok(Ranking { groups, group_count, rest })
}

/// Numbers keys in order of first use, to make `group_of` for [`rank`].
pub(crate) struct Numbering {
    /// Number of each key.
    numbers: Vec<u32>,
    /// Key of each number.
    keys: Vec<u32>,
}

impl Numbering {
    pub(crate) fn new(key_count: usize) -> Self {
        Self { numbers: vec![NO_GROUP; key_count], keys: Vec::new() }
    }

    pub(crate) fn number(&mut self, key: u32) -> u32 {
        let number = &mut self.numbers[key as usize];
        if *number == NO_GROUP {
            *number = self.keys.len() as u32;
            self.keys.push(key);
        }
        *number
    }

    /// The keys, by number.
    pub(crate) fn into_keys(self) -> Vec<u32> {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use heapr_trace::StackTotals;
    use proptest::prelude::*;

    use super::*;
    use crate::row_table::Rows;

    fn row() -> impl Strategy<Value = (StackTotals, u32)> {
        (0..12_u32, 0..4_u64, 0..50_u64, 0..3_u64, 0..40_u64).prop_map(
            |(group, count, bytes, reallocs, outstanding)| {
                let totals = StackTotals {
                    stack: StackIndex(group * 10 + count as u32),
                    amounts: Amounts {
                        total_count: count,
                        total_bytes: bytes,
                        realloc_count: reallocs,
                        outstanding_count: count / 2,
                        outstanding_bytes: outstanding,
                        peak_bytes: bytes / 2,
                        ..Amounts::default()
                    },
                    ..StackTotals::default()
                };
                (totals, if group == 11 { NO_GROUP } else { group })
            },
        )
    }

    proptest! {
        #[test]
        fn equals_the_naive_sums_sorted(
            rows in prop::collection::vec(row(), 0..60),
            sort in prop::sample::select(Metric::all().collect::<Vec<_>>()),
            top in 0..14_usize,
        ) {
            let (totals, groups): (Vec<StackTotals>, Vec<u32>) = rows.iter().copied().unzip();
            let rows_in_memory = RowSource::Memory(Rows { totals, threads: Vec::new() });
            let ranking = rank(&rows_in_memory, &groups, 11, sort, top).unwrap();

            let mut naive: BTreeMap<u32, Amounts> = (0..11).map(|group| (group, Amounts::default())).collect();
            for (totals, group) in &rows {
                if let Some(amounts) = naive.get_mut(group) {
                    *amounts += &totals.amounts;
                }
            }
            let mut naive: Vec<(u32, Amounts)> = naive.into_iter().collect();
            naive.sort_by(|(a, first), (b, second)| {
                let key = |amounts: &Amounts| (sort.of(amounts), amounts.outstanding_bytes, amounts.total_bytes);
                key(second).cmp(&key(first)).then(a.cmp(b))
            });
            let shown: Vec<(u32, Amounts)> = ranking.groups.iter().map(|group| (group.group, group.amounts)).collect();
            // Before ties are broken, the cut compares only the sort metric and retains all ties.
            prop_assert_eq!(&shown[..], &naive[..top.min(11)]);
            let mut rest = Amounts::default();
            naive[top.min(11)..].iter().for_each(|(_, amounts)| rest += amounts);
            prop_assert_eq!(ranking.rest, rest);
            prop_assert_eq!(ranking.group_count, 11);
        }
    }
}
