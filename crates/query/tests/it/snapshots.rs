//! Snapshots as the source of queries, compared with a replay of the events before them.

use std::collections::BTreeMap;

use heapr_query::{
    Action, Answer, CullList, Error, Filter, GroupBy, Metric, Moment, Query, Span, StackGroups, live_rows,
    run,
};
use heapr_trace::{Amounts, Trace};
use proptest::prelude::*;

use crate::made_trace::{Names, trace_of};
use crate::random_steps::steps;

/// Groups by the names of their frames.
fn groups(trace: &Trace, by: GroupBy, filter: &Filter) -> BTreeMap<Vec<String>, (u64, u64)> {
    let actions = vec![Action::Ranking { by, sort: Metric::default() }];
    let query = Query { filter: filter.clone(), actions, ..Query::default() };
    let report = run(trace, &query, &mut Names).unwrap();
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("a ranking") };
    let mut found = BTreeMap::new();
    for group in &ranking.groups {
        let Amounts { outstanding_count, outstanding_bytes, .. } = group.amounts;
        let sums: &mut (u64, u64) = found.entry(names(&report.frames(group))).or_default();
        sums.0 += outstanding_count;
        sums.1 += outstanding_bytes;
    }
    found
}

fn names(frames: &[heapr_query::FrameView<'_>]) -> Vec<String> {
    frames.iter().map(|frame| format!("{:?}!{:?}", frame.module, frame.symbol)).collect()
}

fn filter() -> impl Strategy<Value = Filter> {
    let size = proptest::option::of((0..50_u64, 51..1100_u64).prop_map(|(from, to)| Span { from, to }));
    let age = proptest::option::of((0..40_u64, 41..200_u64).prop_map(|(from, to)| Span { from, to }));
    let pids = proptest::option::weighted(0.3, prop_oneof![Just(100_u32), Just(200)]);
    (size, age, pids).prop_map(|(size, lifetime, pid)| Filter {
        size,
        lifetime,
        pids: pid.into_iter().collect(),
        ..Filter::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_snapshot_counts_what_a_replay_to_its_moment_leaves(steps in steps(), filter in filter()) {
        let end_ns = steps.last().map_or(10, |step| step.time_ns) + 5;
        let trace = trace_of(&steps, 7, true, end_ns);
        let by_snapshot = Filter { at: Some(Moment::Snapshot { number: 1 }), ..filter.clone() };
        let by_replay = Filter { at: Some(Moment::At { time_ns: end_ns }), ..filter.clone() };
        for by in [GroupBy::Stacks, GroupBy::Frames, GroupBy::Images] {
            let expected = groups(&trace, by, &by_replay);
            prop_assert_eq!(&groups(&trace, by, &by_snapshot), &expected);

            // The same sums by rows and groups of stacks.
            let rows = live_rows(&trace, &trace.snapshots()[0], &filter, &[]).unwrap();
            let stacks = rows.rows.iter().map(|(stack, _)| *stack);
            let grouped = StackGroups::new(&trace, stacks, by, &CullList::built_in(), &Filter::default(), &mut Names);
            let mut found: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
            for (stack, row) in &rows.rows {
                let group = grouped.group_of(*stack).unwrap();
                let sums = found.entry(names(&grouped.frames(group))).or_default();
                sums.0 += row.amount.count.value;
                sums.1 += row.amount.bytes.value;
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn intervals_and_ages_add_up(steps in steps(), boundaries in prop::collection::vec(0..150_u64, 0..4)) {
        let mut boundaries = boundaries;
        boundaries.sort_unstable();
        let end_ns = steps.last().map_or(10, |step| step.time_ns) + 5;
        let trace = trace_of(&steps, 7, false, end_ns);
        let rows = live_rows(&trace, &trace.snapshots()[0], &Filter::default(), &boundaries).unwrap();
        for (_, row) in &rows.rows {
            let sum: u64 = row.by_interval.iter().map(|amount| amount.bytes.value).sum();
            prop_assert_eq!((row.by_interval.len(), sum), (boundaries.len() + 1, row.amount.bytes.value));
            prop_assert!(row.youngest_age_ns <= row.mean_age_ns() && row.mean_age_ns() <= row.oldest_age_ns);
        }
        let mut blocks = 0;
        trace.for_each_snapshot_block(&trace.snapshots()[0], |_| blocks += 1).unwrap();
        prop_assert_eq!(rows.whole.amount.count.value, blocks);
    }
}

#[test]
fn a_snapshot_that_is_not_there_is_said_to_be_missing() {
    let trace = trace_of(&[], 7, true, 10);
    let filter = Filter { at: Some(Moment::Snapshot { number: 2 }), ..Filter::default() };
    let query = Query { filter, ..Query::default() };
    let error = run(&trace, &query, &mut Names).unwrap_err();
    assert!(matches!(error, Error::NoSuchSnapshot { number: 2, present: 1 }), "{error}");
}
