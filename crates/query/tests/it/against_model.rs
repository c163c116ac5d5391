//! Every filter, type, grouping and sort, alone and combined, on random traces.

use std::collections::BTreeMap;

use heapr_query::{
    Action, Answer, CullList, Filter, FramePattern, FrameView, GroupBy, HistogramOf, Metric, Query, Span, run,
};
use heapr_trace::{Amounts, Totals, Trace};
use proptest::prelude::*;

use crate::made_trace::{Names, trace_of};
use crate::model::{Model, allocations};
use crate::random_steps::{filter, hand_out_again, steps};

/// All groups of a report by names, with the totals.
fn answered(trace: &Trace, query: &Query) -> (BTreeMap<Vec<String>, Amounts>, Amounts, Vec<u64>) {
    let report = run(trace, query, &mut Names).unwrap();
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("not a ranking") };
    let name = |view: &FrameView<'_>| match view.symbol {
        Some(symbol) => format!("{}!{symbol}", view.module.unwrap()),
        None => view.module.unwrap().to_owned(),
    };
    let mut groups = BTreeMap::new();
    let mut whole = ranking.rest;
    let mut order = Vec::new();
    let Action::Ranking { sort, .. } = query.actions[0] else { panic!("not a ranking") };
    for group in &ranking.groups {
        let key: Vec<String> = match group.thread() {
            Some(thread) => vec![format!("thread {}", thread.0)],
            None => report.frames(group).iter().map(name).collect(),
        };
        assert!(groups.insert(key, group.amounts).is_none(), "two groups are equal");
        whole += &group.amounts;
        order.push(sort.of(&group.amounts));
    }
    assert_eq!(ranking.groups.len(), ranking.group_count.min(query.top));
    let heap_sum: u64 = report.by_heap.iter().map(|row| row.totals.alloc_count).sum();
    assert_eq!(
        (report.totals.alloc_count, report.totals.outstanding_bytes),
        (heap_sum, whole.outstanding_bytes)
    );
    assert_eq!(report.totals.peak_bytes, whole.peak_bytes, "the peak is the sum of the groups at it");
    (groups, whole, order)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    #[test]
    fn every_query_counts_what_the_model_counts(
        steps in steps(),
        filter in filter(),
        by in prop::sample::select(vec![GroupBy::Stacks, GroupBy::Frames, GroupBy::Images, GroupBy::Threads]),
        sort in prop::sample::select(Metric::sort_keys().collect::<Vec<_>>()),
        is_default_cull in any::<bool>(),
        checkpoint_every in 1..20_usize,
        has_summary in any::<bool>(),
    ) {
        // A file without a summary ends at its last event.
        let last_ns = steps.last().map_or(0, |step| step.time_ns);
        let end_ns = if has_summary { last_ns + 5 } else { last_ns };
        let trace = trace_of(&steps, checkpoint_every, has_summary, end_ns);
        let end_ns = trace.duration_ns();
        prop_assert!(trace.damage().is_empty() || !has_summary, "{:?}", trace.damage());
        let query = Query {
            filter,
            cull: if is_default_cull { CullList::built_in() } else { CullList::empty() },
            actions: vec![Action::Ranking { by, sort }],
            histograms: Vec::new(),
            top: usize::MAX,
            only_held: false,
            tells_lines: false,
            language_frames: None,
        };
        let is_culled = |symbol: &str| is_default_cull && ["malloc", "calloc", "operator new(unsigned long)"].contains(&symbol);
        let model = Model { steps: &steps, all: allocations(&steps), end_ns };
        let (expected, whole) = model.groups(&query.filter, by, is_culled);
        let (found, sum, order) = answered(&trace, &query);
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(sum, whole);
        prop_assert!(order.is_sorted_by(|one, other| one >= other));
        let free_count = run(&trace, &query, &mut Names).unwrap().totals.free_count;
        prop_assert_eq!(free_count, model.free_count(&query.filter));
        let (found, ..) = answered(&trace, &Query { only_held: true, ..query });
        prop_assert_eq!(held(&found), held(&expected));
        prop_assert_eq!(held(&found).len(), found.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn the_summary_and_all_replays_tell_the_same_totals(steps in steps(), again in any::<bool>()) {
        let mut steps = steps;
        let end_ns = steps.last().map_or(10, |step| step.time_ns);
        if again {
            hand_out_again(&mut steps);
        }
        let trace = trace_of(&steps, 7, true, end_ns + 5);
        let totals = |query: Query| {
            let report = run(&trace, &query, &mut Names).unwrap();
            (report.totals, report.by_heap)
        };
        let whole = totals(Query::default());
        prop_assert!(whole.0.implied_frees == u64::from(again));
        let by_thread = Action::Ranking { by: GroupBy::Threads, sort: Metric::default() };
        let range = Filter { range: Some(Span { from: 0, to: 1_000_000 }), ..Filter::default() };
        let size = Filter { size: Some(Span { from: 0, to: u64::MAX }), ..Filter::default() };
        prop_assert_eq!(&totals(Query { actions: vec![by_thread], ..Query::default() }), &whole);
        prop_assert_eq!(&totals(Query { histograms: vec![HistogramOf::Lifetime], ..Query::default() }), &whole);
        prop_assert_eq!(&totals(Query { filter: range, ..Query::default() }), &whole);
        // With any size, the peaks are the heaps' own; only frees without a size are missing.
        let any_size = totals(Query { filter: size, ..Query::default() });
        let peaks = |totals: &Totals| (totals.peak_bytes, totals.peak_count, totals.peak_time_ns);
        prop_assert_eq!(peaks(&any_size.0), peaks(&whole.0));
        prop_assert_eq!(any_size.0.free_count, whole.0.free_count - whole.0.unmatched_frees);
        // Required frames are answered from the summary, unless it lacks the frees of single
        // stacks.
        let frames = |by_thread: bool| {
            let filter = Filter { required_frames: vec![FramePattern::parse("*").unwrap()], ..Filter::default() };
            let by = if by_thread { GroupBy::Threads } else { GroupBy::Stacks };
            totals(Query { filter, actions: vec![Action::Ranking { by, sort: Metric::default() }], ..Query::default() })
        };
        prop_assert_eq!(frames(false).0.free_count, frames(true).0.free_count);
    }
}

/// Held amounts of the groups that hold something.
fn held(groups: &BTreeMap<Vec<String>, Amounts>) -> Vec<(&[String], [u64; 4])> {
    let held = |amounts: &Amounts| {
        [amounts.outstanding_count, amounts.outstanding_bytes, amounts.peak_count, amounts.peak_bytes]
    };
    let all = groups.iter().map(|(names, amounts)| (names.as_slice(), held(amounts)));
    all.filter(|(_, [outstanding_count, _, peak_count, _])| outstanding_count + peak_count != 0).collect()
}
