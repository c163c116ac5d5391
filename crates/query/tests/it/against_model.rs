//! Every filter, type, grouping and sort, alone and together, on random traces.

use std::collections::BTreeMap;

use heapr_query::{
    Action, AllocationType, Answer, CullList, Filter, FramePattern, FrameView, GroupBy, HistogramOf, Metrics,
    Moment, Query, SortKey, Span, ThreadChoice, run,
};
use heapr_trace::{HeapId, Totals, Trace};
use proptest::prelude::*;

use crate::made_trace::{Call, Names, Path, Step, trace_of};
use crate::model::{Model, UNKNOWN, allocations};

/// What a program does next, before addresses are known.
#[derive(Debug, Clone)]
enum Wish {
    Alloc { size_bytes: u64, path: Path },
    Free { which: usize },
    FreeLast,
    FreeUnknown,
    Realloc { which: usize, size_bytes: u64, path: Path, moves: bool },
    Fail { size_bytes: u64 },
}

fn path() -> impl Strategy<Value = Path> {
    prop::collection::vec((1..6_usize, 0..2_usize), 0..4).prop_map(|mut rest| {
        if !rest.is_empty() {
            rest.insert(0, (0, 0));
        }
        rest
    })
}

fn wish() -> impl Strategy<Value = Wish> {
    let size = prop_oneof![0..4_u64, 1..100_u64, 1000..1010_u64];
    prop_oneof![
        5 => (size.clone(), path()).prop_map(|(size_bytes, path)| Wish::Alloc { size_bytes, path }),
        3 => (0..1000_usize).prop_map(|which| Wish::Free { which }),
        2 => Just(Wish::FreeLast),
        1 => Just(Wish::FreeUnknown),
        2 => (0..1000_usize, size, path(), any::<bool>())
            .prop_map(|(which, size_bytes, path, moves)| Wish::Realloc { which, size_bytes, path, moves }),
        1 => (1..9_u64).prop_map(|size_bytes| Wish::Fail { size_bytes }),
    ]
}

/// Steps that a program could do: addresses of live blocks are not handed out again.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Times come close together, so that several events have the same.
    prop::collection::vec((wish(), 0..3_u32, prop::bool::weighted(0.15), 0..3_u64), 1..60).prop_map(
        |wishes| {
            let mut live: Vec<(u32, HeapId, u64)> = Vec::new();
            let mut next_address = 0x1000;
            let mut time_ns = 10;
            let mut steps = Vec::new();
            for (wish, thread, is_mmap, wait_ns) in wishes {
                time_ns += wait_ns;
                let mut heap = if is_mmap { HeapId::MMAP } else { HeapId::MALLOC };
                let mut new_address = || {
                    next_address += 0x10;
                    next_address
                };
                let mine = |live: &[(u32, HeapId, u64)], which: usize| {
                    let of_process: Vec<usize> =
                        (0..live.len()).filter(|&place| live[place].0 / 2 == thread / 2).collect();
                    (!of_process.is_empty()).then(|| of_process[which % of_process.len()])
                };
                let call = match wish {
                    Wish::Alloc { size_bytes, path } => {
                        let address = new_address();
                        live.push((thread, heap, address));
                        Call::Alloc { address, size_bytes, path }
                    }
                    Wish::Free { which } => {
                        let Some(place) = mine(&live, which) else { continue };
                        let (_, of, address) = live.remove(place);
                        heap = of;
                        Call::Free { address }
                    }
                    Wish::FreeLast => {
                        let Some(place) = (0..live.len()).rev().find(|&place| live[place].0 == thread) else {
                            continue;
                        };
                        let (_, of, address) = live.remove(place);
                        heap = of;
                        Call::Free { address }
                    }
                    Wish::FreeUnknown => Call::Free { address: UNKNOWN },
                    Wish::Realloc { which, size_bytes, path, moves } => {
                        let Some(place) = mine(&live, which) else { continue };
                        let (_, of, old_address) = live.remove(place);
                        heap = of;
                        let address = if moves { new_address() } else { old_address };
                        live.push((thread, heap, address));
                        Call::Realloc { old_address, address, size_bytes, path }
                    }
                    Wish::Fail { size_bytes } => Call::Failed { size_bytes },
                };
                steps.push(Step { time_ns, thread, heap, call });
            }
            steps
        },
    )
}

/// Adds an address that is handed out again although no free was seen.
pub(crate) fn hand_out_again(steps: &mut Vec<Step>) {
    let time_ns = steps.last().map_or(10, |step| step.time_ns);
    for size_bytes in [7, 9] {
        let call = Call::Alloc { address: 0x10, size_bytes, path: Path::new() };
        steps.push(Step { time_ns, thread: 1, heap: HeapId::MALLOC, call });
    }
}

fn range() -> impl Strategy<Value = Span> {
    prop_oneof![3 => span(80), 1 => (1..90_u64).prop_map(|to| Span { from: 0, to })]
}

fn span(most: u64) -> impl Strategy<Value = Span> {
    (0..most, 1..most).prop_map(|(from, length)| Span { from, to: from + length })
}

fn sometimes<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop_oneof![3 => Just(None), 1 => value.prop_map(Some)]
}

pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    let thread = prop_oneof![
        prop::sample::select(vec![100_u32, 101, 200]).prop_map(ThreadChoice::Tid),
        prop::sample::select(vec!["worker-0", "worker-1"])
            .prop_map(|name| ThreadChoice::Name(name.to_owned())),
    ];
    let moment = prop_oneof![Just(Moment::Peak), (0..90_u64).prop_map(|time_ns| Moment::At { time_ns })];
    let kind = prop::sample::select(vec![
        AllocationType::Aifi,
        AllocationType::Aifo,
        AllocationType::Aofi,
        AllocationType::Aofo,
    ]);
    let pattern =
        prop::sample::select(vec!["grow", "libgrow!", "app!load", "*hrink*", "libc.so.6!malloc", "calloc"]);
    (
        (
            sometimes(prop::sample::select(vec![100_u32, 200])),
            sometimes(prop::sample::select(vec![HeapId::MALLOC, HeapId::MMAP])),
            sometimes(thread),
        ),
        (sometimes(range()), sometimes(span(40)), sometimes(span(100))),
        (sometimes(moment), prop::bool::weighted(0.15), sometimes(kind)),
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(pattern, 1..3)],
    )
        .prop_map(
            |((pid, heap, thread), (range, lifetime, size), (at, is_temporary_only, kind), patterns)| {
                Filter {
                    pids: pid.into_iter().collect(),
                    heaps: heap.into_iter().collect(),
                    threads: thread.into_iter().collect(),
                    range,
                    lifetime,
                    size,
                    at,
                    is_temporary_only,
                    allocation_type: kind,
                    required_frames: patterns.iter().map(|text| FramePattern::parse(text).unwrap()).collect(),
                }
            },
        )
        .prop_filter("it can be meant", |filter| filter.check().is_ok())
}

/// All groups of a report, by names.
fn answered(trace: &Trace, query: &Query) -> (BTreeMap<Vec<String>, Metrics>, Metrics, Vec<u64>) {
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
        assert!(groups.insert(key, group.metrics).is_none(), "two groups are equal");
        whole.add(&group.metrics);
        order.push(sort.of(&group.metrics));
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
        key in 0..SortKey::ALL.len(),
        is_default_cull in any::<bool>(),
        checkpoint_every in 1..20_usize,
        has_summary in any::<bool>(),
    ) {
        // A file without a summary knows no later end than its last event.
        let last_ns = steps.last().map_or(0, |step| step.time_ns);
        let end_ns = if has_summary { last_ns + 5 } else { last_ns };
        let trace = trace_of(&steps, checkpoint_every, has_summary, end_ns);
        let end_ns = trace.duration_ns();
        prop_assert!(trace.damage().is_empty() || !has_summary, "{:?}", trace.damage());
        let sort = SortKey::ALL[key].1;
        let query = Query {
            filter,
            cull: if is_default_cull { CullList::built_in() } else { CullList::empty() },
            actions: vec![Action::Ranking { by, sort }],
            histograms: Vec::new(),
            top: usize::MAX,
            only_held: false,
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
        let by_thread = Action::Ranking { by: GroupBy::Threads, sort: SortKey::default() };
        let range = Filter { range: Some(Span { from: 0, to: 1_000_000 }), ..Filter::default() };
        let size = Filter { size: Some(Span { from: 0, to: u64::MAX }), ..Filter::default() };
        prop_assert_eq!(&totals(Query { actions: vec![by_thread], ..Query::default() }), &whole);
        prop_assert_eq!(&totals(Query { histograms: vec![HistogramOf::Lifetime], ..Query::default() }), &whole);
        prop_assert_eq!(&totals(Query { filter: range, ..Query::default() }), &whole);
        // Any size: the peaks are the heaps' own; only what has no size is missing.
        let any_size = totals(Query { filter: size, ..Query::default() });
        let peaks = |totals: &Totals| (totals.peak_bytes, totals.peak_count, totals.peak_time_ns);
        prop_assert_eq!(peaks(&any_size.0), peaks(&whole.0));
        prop_assert_eq!(any_size.0.free_count, whole.0.free_count - whole.0.unmatched_frees);
        // Required frames are looked for in the summary, unless it does not tell the frees of single stacks.
        let frames = |by_thread: bool| {
            let filter = Filter { required_frames: vec![FramePattern::parse("*").unwrap()], ..Filter::default() };
            let by = if by_thread { GroupBy::Threads } else { GroupBy::Stacks };
            totals(Query { filter, actions: vec![Action::Ranking { by, sort: SortKey::default() }], ..Query::default() })
        };
        prop_assert_eq!(frames(false).0.free_count, frames(true).0.free_count);
    }
}

/// What groups hold, of those that hold something.
fn held(groups: &BTreeMap<Vec<String>, Metrics>) -> Vec<(&[String], [u64; 4])> {
    let held = |metrics: &Metrics| {
        [metrics.outstanding_count, metrics.outstanding_bytes, metrics.peak_count, metrics.peak_bytes]
    };
    let all = groups.iter().map(|(names, metrics)| (names.as_slice(), held(metrics)));
    all.filter(|(_, [outstanding_count, _, peak_count, _])| outstanding_count + peak_count != 0).collect()
}
