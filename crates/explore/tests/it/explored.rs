//! An explorer gives the answers of a query, with and without a table of events; flame graphs and
//! timelines equal their plain definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use heapr_explore::{
    Explorer, FlameQuery, FlameTree, Found, GrowingTable, Parallelism, TableLimit, Timeline, TimelineBy,
    TimelineOf, TimelineQuery,
};
use heapr_query::{
    Action, AllocationType, Answer, CullList, Filter, FrameView, GroupBy, HistogramOf, Metric, Query,
    Ranking, Span, run,
};
use heapr_trace::Trace;
use proptest::prelude::*;

use crate::made_trace::{Lives, Names, Step, trace_of, trace_of_lives};
use crate::random_steps::{filter, hand_out_again, steps};

const ENOUGH: TableLimit = TableLimit { memory_bytes: 1 << 30 };
const NOTHING: TableLimit = TableLimit { memory_bytes: 0 };

fn explorer(trace: &Arc<Trace>, limit: TableLimit) -> Explorer {
    // Parts of a few events each.
    let explorer =
        Explorer::with_parallelism(Arc::clone(trace), Parallelism { threads: 3, least: 2, block: 3 });
    explorer.name(&mut Names);
    explorer.read_events(limit, &mut |_, _| {}, &|| false).unwrap();
    assert!(explorer.table().is_some() || limit == NOTHING);
    explorer
}

/// Groups in their order: names or thread, amounts, and the source lines of the representative
/// stack.
fn lines<'a>(ranking: &Ranking, frames: impl Fn(&heapr_query::Group) -> Vec<FrameView<'a>>) -> Vec<String> {
    ranking
        .groups
        .iter()
        .map(|group| format!("{:?} {:?} {:?}", group.thread(), frames(group), group.amounts))
        .collect()
}

fn name(frame: &FrameView<'_>) -> String {
    format!("{:?}!{:?}", frame.module, frame.symbol)
}

/// Path of names to each node, with its value and the amount that ends in it.
fn paths(explorer: &Explorer, tree: &FlameTree) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut known: Vec<Vec<String>> = Vec::new();
    for node in &tree.nodes {
        let mut path = node.parent.map(|parent| known[parent].clone()).unwrap_or_default();
        path.extend(node.frame.map(|frame| name(&explorer.frame(frame).unwrap())));
        known.push(path);
    }
    let values = tree.nodes.iter().map(|node| (node.value.value, node.self_value.value));
    let all: BTreeMap<_, _> = known.into_iter().zip(values).collect();
    assert_eq!(all.len(), tree.nodes.len(), "two nodes have the same path");
    all
}

/// The paths computed from stacks, one by one.
fn naive_paths(stacks: &[(Vec<String>, u64)]) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut all: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::from([(Vec::new(), (0, 0))]);
    for (stack, value) in stacks.iter().filter(|(_, value)| *value > 0) {
        for length in 0..=stack.len() {
            let node = all.entry(stack[..length].to_vec()).or_default();
            node.0 += value;
            node.1 += if length == stack.len() { *value } else { 0 };
        }
    }
    all
}

fn flame_query(is_bottom_up: bool) -> FlameQuery {
    FlameQuery {
        value: Metric::TotalBytes,
        is_bottom_up,
        collapses_recursion: false,
        focus: None,
        root: None,
        least_share: 0.0,
        nodes_max: usize::MAX,
    }
}

fn trace(steps: &[Step], checkpoint_every: usize, has_summary: bool) -> Arc<Trace> {
    let last_ns = steps.last().map_or(0, |step| step.time_ns);
    Arc::new(trace_of(steps, checkpoint_every, has_summary, last_ns + 5))
}

fn trace_with(steps: &[Step], checkpoint_every: usize, has_summary: bool, lives: Lives) -> Arc<Trace> {
    let last_ns = steps.last().map_or(0, |step| step.time_ns);
    Arc::new(trace_of_lives(steps, checkpoint_every, has_summary, last_ns + 5, lives))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn an_explorer_answers_as_a_query_does(
        steps in steps(),
        filter in filter(),
        by in prop::sample::select(vec![GroupBy::Stacks, GroupBy::Frames, GroupBy::Images, GroupBy::Threads]),
        sort in prop::sample::select(Metric::sort_keys().collect::<Vec<_>>()),
        checkpoint_every in 1..20_usize,
        has_summary in any::<bool>(),
        has_table in any::<bool>(),
        histograms in any::<bool>(),
        again in any::<bool>(),
        lives in prop::sample::select(vec![Lives::Unknown, Lives::End, Lives::Forked]),
    ) {
        let mut steps = steps;
        if again {
            hand_out_again(&mut steps);
        }
        let trace = trace_with(&steps, checkpoint_every, has_summary, lives);
        let query = Query {
            filter,
            actions: vec![Action::Ranking { by, sort }],
            histograms: if histograms { vec![HistogramOf::Size, HistogramOf::Lifetime] } else { Vec::new() },
            top: usize::MAX,
            ..Query::default()
        };
        let report = run(&trace, &query, &mut Names).unwrap();
        let Answer::Ranking(expected) = &report.sections[0].answer else { panic!("not a ranking") };

        let explorer = explorer(&trace, if has_table { ENOUGH } else { NOTHING });
        let found = Found { threads: by == GroupBy::Threads, histograms };
        let selection = explorer.select(&query.filter, found, &|| false).unwrap();
        prop_assert_eq!(selection.totals, report.totals);
        prop_assert_eq!(&selection.by_heap, &report.by_heap);
        let shown = if histograms { &selection.histograms[..] } else { &[] };
        prop_assert_eq!(shown, &report.histograms);
        let ranking = explorer.rank(&selection, &query.cull, by, sort).unwrap();
        prop_assert_eq!(
            lines(&ranking, |group| explorer.frames(group)),
            lines(expected, |group| report.frames(group))
        );
        for group in &ranking.groups {
            if let Some(key) = explorer.stack_key(group) {
                let (frames, removed) = explorer.stack_frames(key).unwrap();
                if by == GroupBy::Stacks {
                    let shown: Vec<_> = frames[removed..].iter().map(|(_, view)| *view).collect();
                    prop_assert_eq!(shown, explorer.frames(group));
                }
                for (number, view) in frames {
                    prop_assert_eq!(name(&explorer.frame(number).unwrap()), name(&view));
                }
            }
        }
    }

    #[test]
    fn lines_are_those_of_a_query_that_tells_them_apart(
        steps in steps(),
        filter in filter(),
        sort in prop::sample::select(Metric::sort_keys().collect::<Vec<_>>()),
    ) {
        let trace = trace(&steps, 10, true);
        let actions = vec![
            Action::Ranking { by: GroupBy::Lines, sort },
            Action::Functions { sort, by_line: true },
            Action::TopDown { sort: Metric::TotalBytes },
        ];
        let query = Query { filter, actions, top: usize::MAX, ..Query::default() };
        let report = run(&trace, &query, &mut Names).unwrap();
        let [ranked, called, tree] = &report.sections[..] else { panic!("three sections") };
        let (Answer::Ranking(ranked), Answer::Functions(called), Answer::Tree(tree)) =
            (&ranked.answer, &called.answer, &tree.answer) else { panic!("other answers") };

        let explorer = explorer(&trace, ENOUGH);
        let selection = explorer.select(&query.filter, Found::default(), &|| false).unwrap();
        let by_line = explorer.telling_lines(&mut Names);
        let ranking = by_line.rank(&selection, &query.cull, GroupBy::Lines, sort).unwrap();
        prop_assert_eq!(
            lines(&ranking, |group| by_line.frames(group)),
            lines(ranked, |group| report.frames(group))
        );
        let found = by_line.functions(&selection, &query.cull, sort).unwrap();
        let view = |frame: u32| by_line.frame(heapr_explore::FrameNumber(frame)).unwrap();
        let shown: Vec<_> =
            found.functions.iter().map(|line| (view(line.frame.0), line.inclusive, line.own)).collect();
        let expected: Vec<_> =
            called.functions.iter().map(|line| (report.function_frame(line), line.inclusive, line.own)).collect();
        prop_assert_eq!(shown, expected);
        let flame = by_line.flame(&selection, &query.cull, &flame_query(false)).unwrap();
        let mut boxes: Vec<_> = flame.nodes[1..].iter().map(|node| {
            let frame = by_line.frame(node.frame.unwrap()).unwrap();
            (frame.symbol.map(str::to_owned), frame.line, node.value.value)
        }).collect();
        let mut nodes: Vec<_> = tree.nodes.iter().filter(|node| node.amounts.total_bytes > 0).map(|node| {
            let frame = report.tree_frame(node);
            (frame.symbol.map(str::to_owned), frame.line, node.amounts.total_bytes)
        }).collect();
        boxes.sort();
        nodes.sort();
        prop_assert_eq!(boxes, nodes);
    }

    #[test]
    fn a_flame_graph_is_the_sum_of_its_stacks(
        steps in steps(),
        filter in filter(),
        is_bottom_up in any::<bool>(),
        is_cut in any::<bool>(),
        focus in prop::option::of(0..6_u32),
    ) {
        let trace = trace(&steps, 10, true);
        let explorer = explorer(&trace, ENOUGH);
        let selection = explorer.select(&filter, Found::default(), &|| false).unwrap();
        let mut query = flame_query(is_bottom_up);
        query.focus = focus.map(heapr_explore::FrameNumber).filter(|&frame| explorer.frame(frame).is_some());
        let focus = query.focus.map(|frame| name(&explorer.frame(frame).unwrap()));
        let cull = if focus.is_some() { CullList::empty() } else { CullList::built_in() };
        let ranking = explorer.rank(&selection, &cull, GroupBy::Stacks, Metric::TotalBytes).unwrap();
        let stacks: Vec<(Vec<String>, u64)> = ranking.groups.iter().filter_map(|group| {
            let mut names: Vec<String> = explorer.frames(group).iter().map(name).collect();
            if let Some(focus) = &focus {
                // Bottom up from the innermost occurrence, top down from the outermost one.
                if is_bottom_up {
                    names.drain(..names.iter().position(|name| name == focus)?);
                } else {
                    names.truncate(names.iter().rposition(|name| name == focus)? + 1);
                }
            }
            if !is_bottom_up {
                names.reverse();
            }
            Some((names, group.amounts.total_bytes))
        }).collect();
        let mut expected = naive_paths(&stacks);
        if let Some(focus) = &focus {
            // The focus is the first node.
            expected.remove(&Vec::new());
            expected.entry(vec![focus.clone()]).or_default();
        }
        let tree = explorer.flame(&selection, &cull, &query).unwrap();
        prop_assert_eq!(paths(&explorer, &tree), expected.clone());
        for (number, node) in tree.nodes.iter().enumerate() {
            prop_assert_eq!(node.left_out.value, 0);
            let part = explorer.flame(&selection, &cull, &FlameQuery { root: Some(node.key), ..query.clone() }).unwrap();
            if number > 0 {
                prop_assert_eq!((part.nodes[0].value, part.nodes[0].frame), (node.value, node.frame));
                let below = |above: usize| tree.nodes.iter().filter(move |node| node.parent == Some(above)).map(|node| node.value).collect::<Vec<_>>();
                let found: Vec<_> = part.nodes.iter().filter(|node| node.parent == Some(0)).map(|node| node.value).collect();
                prop_assert_eq!(found, below(number));
            }
        }
        if is_cut {
            let cut = explorer.flame(&selection, &cull, &FlameQuery { least_share: 0.2, nodes_max: 4, ..query }).unwrap();
            prop_assert!(cut.nodes.len() <= 4);
            for (number, node) in cut.nodes.iter().enumerate() {
                let below: u64 = cut.nodes.iter().filter(|node| node.parent == Some(number)).map(|node| node.value.value).sum();
                prop_assert_eq!(node.value.value, node.self_value.value + below + node.left_out.value);
            }
        }
    }

    #[test]
    fn a_course_is_what_is_live_at_the_end_of_each_bin(
        steps in steps(),
        filter in filter(),
        span in (0..60_u64, 1..60_u64),
        bins in 1..12_usize,
        by in prop::sample::select(vec![TimelineBy::Nothing, TimelineBy::Processes, TimelineBy::Threads, TimelineBy::Images, TimelineBy::Frames, TimelineBy::Stacks]),
    ) {
        let trace = trace(&steps, 10, true);
        let explorer = explorer(&trace, ENOUGH);
        let filter = Filter { range: None, at: None, allocation_type: None, lifetime: None, is_temporary_only: false, ..filter };
        let time = Span { from: span.0, to: span.0 + span.1 };
        let query = TimelineQuery { filter: filter.clone(), cull: CullList::built_in(), time, bins, by, series_max: 3, of: TimelineOf::LiveBytes };
        let timeline: Timeline = explorer.timeline(&query, &|| false).unwrap().unwrap();
        for bin in 0..bins {
            let end_ns = time.from + span.1 * (bin as u64 + 1) / bins as u64;
            let start_ns = time.from + span.1 * bin as u64 / bins as u64;
            let live = match end_ns.checked_sub(1) {
                None => (0, 0),
                Some(time_ns) => {
                    let at = Filter { at: Some(heapr_query::Moment::At { time_ns }), ..filter.clone() };
                    let totals = explorer.select(&at, Found::default(), &|| false).unwrap().totals;
                    (totals.outstanding_bytes, totals.outstanding_count)
                }
            };
            prop_assert_eq!((timeline.live_bytes[bin], timeline.live_count[bin]), live);
            let born = if start_ns < end_ns {
                let inside = Filter { range: Some(Span { from: start_ns, to: end_ns }), ..filter.clone() };
                let totals = explorer.select(&inside, Found::default(), &|| false).unwrap().totals;
                (totals.alloc_bytes, totals.alloc_count)
            } else {
                (0, 0)
            };
            prop_assert_eq!((timeline.alloc_bytes[bin], timeline.alloc_count[bin]), born);
            prop_assert!(timeline.most_bytes[bin] >= timeline.live_bytes[bin]);
            if let Some(before) = bin.checked_sub(1) {
                prop_assert_eq!(timeline.live_bytes[bin] + timeline.free_bytes[bin], timeline.live_bytes[before] + timeline.alloc_bytes[bin]);
                prop_assert_eq!(timeline.live_count[bin] + timeline.free_count[bin], timeline.live_count[before] + timeline.alloc_count[bin]);
            }
            if by != TimelineBy::Nothing {
                let sum: u64 = timeline.series.iter().map(|series| series.values[bin]).sum();
                prop_assert_eq!(sum + timeline.rest[bin], timeline.live_bytes[bin]);
            }
        }
        let most = timeline.most_bytes.iter().max().copied().unwrap_or(0);
        prop_assert_eq!(timeline.peak.1, most);
        let at_peak = timeline.most_bytes.iter().zip(&timeline.most_count).find(|(bytes, _)| **bytes == most);
        prop_assert_eq!(at_peak.map(|(_, count)| *count), Some(timeline.peak.2));
    }

    #[test]
    fn a_file_that_grew_is_what_it_is_when_it_is_read_at_once(
        steps in steps(),
        filter in filter(),
        checkpoint_every in 1..8_usize,
        parts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        has_summary in any::<bool>(),
    ) {
        // A file that was flushed at a checkpoint is the beginning of the later one.
        let mut ends: Vec<usize> =
            parts.iter().map(|part| part.index(steps.len() + 1) / checkpoint_every * checkpoint_every).collect();
        ends.sort_unstable();
        let mut growing = GrowingTable::default();
        let mut before: Option<Explorer> = None;
        for end in ends.into_iter().chain([steps.len()]) {
            let is_last = end == steps.len();
            let trace = trace(&steps[..end], checkpoint_every, has_summary && is_last);
            let grown = Explorer::with_parallelism(Arc::clone(&trace), Parallelism { threads: 3, least: 2, block: 3 });
            if !before.is_some_and(|before| grown.adopt_names(&before, &mut Names)) {
                grown.name(&mut Names);
            }
            let chunks_before = growing.chunk_count();
            let mut chunks_read = 0;
            let mut progress = |_, all| chunks_read = all;
            grown.read_added_events(&mut growing, ENOUGH, &mut progress, &|| false).unwrap();
            prop_assert_eq!(chunks_before + chunks_read, trace.event_chunks().count(), "only what was added is read");
            let fresh = explorer(&trace, ENOUGH);
            let found = Found { threads: true, histograms: true };
            let answers = [&grown, &fresh].map(|explorer| {
                let selection = explorer.select(&filter, found, &|| false).unwrap();
                let ranking = explorer.rank(&selection, &CullList::built_in(), GroupBy::Threads, Metric::default()).unwrap();
                let rows = lines(&ranking, |group| explorer.frames(group));
                let named = [GroupBy::Stacks, GroupBy::Frames, GroupBy::Images].map(|by| {
                    let ranking = explorer.rank(&selection, &CullList::built_in(), by, Metric::default()).unwrap();
                    let mut rows = lines(&ranking, |group| explorer.frames(group));
                    rows.sort();
                    rows
                });
                (selection.totals, selection.by_heap, selection.histograms, rows, named)
            });
            prop_assert_eq!(&answers[0], &answers[1]);
            before = Some(grown);
        }
    }

    #[test]
    fn what_is_kept_from_one_filter_does_not_change_the_next(
        steps in steps(),
        filters in prop::collection::vec((filter(), any::<bool>()), 2..6),
        is_prepared in any::<bool>(),
    ) {
        let trace = trace(&steps, 10, true);
        let kept = explorer(&trace, ENOUGH);
        if is_prepared {
            kept.prepare(&|| false).unwrap();
        }
        let cull = CullList::built_in();
        for (filter, histograms) in filters {
            let fresh = explorer(&trace, ENOUGH);
            let found = Found { threads: true, histograms };
            let answers = [&kept, &fresh].map(|explorer| {
                let selection = explorer.select(&filter, found, &|| false).unwrap();
                let ranking = explorer.rank(&selection, &cull, GroupBy::Threads, Metric::default()).unwrap();
                let rows = lines(&ranking, |group| explorer.frames(group));
                let time = Span { from: 0, to: trace.duration_ns() + 1 };
                let query = TimelineQuery { filter: filter.clone(), cull: cull.clone(), time, bins: 3, by: TimelineBy::Stacks, series_max: 3, of: TimelineOf::LiveBytes };
                (selection.totals, selection.by_heap, selection.histograms, rows, explorer.timeline(&query, &|| false).unwrap().unwrap())
            });
            prop_assert_eq!(&answers[0], &answers[1]);
            // The timeline of the whole has the amounts of a report of the whole.
            let whole = Filter { range: None, at: None, allocation_type: None, ..filter };
            let totals = kept.select(&whole, found, &|| false).unwrap().totals;
            let timeline = &answers[0].4;
            prop_assert_eq!(timeline.alloc_count.iter().sum::<u64>(), totals.alloc_count);
            prop_assert_eq!(timeline.alloc_bytes.iter().sum::<u64>(), totals.alloc_bytes);
        }
    }
}

#[test]
fn types_need_no_other_table() {
    let steps: Vec<Step> = Vec::new();
    let trace = trace(&steps, 10, true);
    let explorer = explorer(&trace, ENOUGH);
    let filter = Filter {
        range: Some(Span { from: 1, to: 2 }),
        allocation_type: Some(AllocationType::Aofo),
        ..Filter::default()
    };
    let selection = explorer.select(&filter, Found::default(), &|| false).unwrap();
    assert_eq!(selection.totals.alloc_count, 0);
}

/// Path of names to each node of a difference, with its amounts on both sides.
fn difference_paths(
    union: &heapr_explore::FrameUnion,
    tree: &heapr_explore::DifferenceTree,
) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut known: Vec<Vec<String>> = Vec::new();
    for node in &tree.nodes {
        let mut path = node.parent.map(|parent| known[parent].clone()).unwrap_or_default();
        path.extend(node.frame.map(|frame| union.name(frame)));
        known.push(path);
    }
    known.into_iter().zip(tree.nodes.iter().map(|node| (node.before.value, node.after.value))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_difference_to_itself_is_the_flame_graph_on_both_sides_whatever_the_focus(
        steps in steps(),
        is_bottom_up in any::<bool>(),
        collapses_recursion in any::<bool>(),
        focus in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let trace = trace(&steps, 5, true);
        let explorer = explorer(&trace, ENOUGH);
        let selection = explorer.select(&Filter::default(), Found::default(), &|| false).unwrap();
        let cull = CullList::empty();
        let side = heapr_explore::Side { explorer: &explorer, selection: &selection, cull: &cull };
        let union = heapr_explore::FrameUnion::new(&explorer, &explorer);
        let frames: Vec<heapr_explore::FrameNumber> =
            (0..).map(heapr_explore::FrameNumber).take_while(|&frame| explorer.frame(frame).is_some()).collect();
        let focus = focus.filter(|_| !frames.is_empty()).map(|index| frames[index.index(frames.len())]);
        let name_of = |frame: heapr_explore::FrameNumber| {
            let view = explorer.frame(frame).unwrap();
            let module = view.module.map_or("?", heapr_query::file_name);
            format!("{module}!{}", view.symbol.unwrap_or("?"))
        };
        // Frames without symbols are one in a difference, and several in a flame graph.
        let names: std::collections::BTreeSet<String> = frames.iter().map(|&frame| name_of(frame)).collect();
        prop_assume!(names.len() == frames.len());
        let query = FlameQuery { is_bottom_up, collapses_recursion, focus, ..flame_query(is_bottom_up) };
        let flame = explorer.flame(&selection, &cull, &query).unwrap();
        let union_focus = focus.map(|focus| {
            let wanted = name_of(focus);
            heapr_explore::FrameNumber((0..).find(|&frame| union.name(frame) == wanted).unwrap())
        });
        let both = union.flame([side, side], &FlameQuery { focus: union_focus, ..query }).unwrap();
        let mut known: Vec<Vec<String>> = Vec::new();
        for node in &flame.nodes {
            let mut path = node.parent.map(|parent| known[parent].clone()).unwrap_or_default();
            path.extend(node.frame.map(name_of));
            known.push(path);
        }
        let expected: BTreeMap<Vec<String>, (u64, u64)> =
            known.into_iter().zip(flame.nodes.iter().map(|node| (node.value.value, node.value.value))).collect();
        prop_assert_eq!(difference_paths(&union, &both), expected);
    }
}
