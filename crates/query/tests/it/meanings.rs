//! Single cases that define the meaning of queries.

use heapr_query::{
    Action, Answer, CullList, Filter, FramePattern, GroupBy, HistogramOf, Metric, Moment, Query, Span, run,
};
use heapr_trace::{HeapId, Trace};

use crate::made_trace::{Call, Names, Path, Step, trace_of};

const MAIN: (usize, usize) = (0, 0);
const GROW: (usize, usize) = (2, 0);
const MALLOC: (usize, usize) = (4, 0);

fn step(time_ns: u64, thread: u32, call: Call) -> Step {
    Step { time_ns, thread, heap: HeapId::MALLOC, call }
}

fn alloc(address: u64, size_bytes: u64, path: &[(usize, usize)]) -> Call {
    Call::Alloc { address, size_bytes, path: Path::from(path) }
}

/// A trace of two processes, with blocks that are freed and blocks that are not.
fn small() -> Trace {
    let steps = [
        step(10, 0, alloc(0x10, 100, &[MAIN, GROW, MALLOC])),
        step(20, 2, alloc(0x10, 30, &[MAIN, (2, 1), MALLOC])),
        step(30, 0, Call::Free { address: 0x10 }),
        step(40, 1, alloc(0x20, 7, &[MAIN, (1, 0)])),
    ];
    trace_of(&steps, 100, true, 50)
}

fn ranking(by: GroupBy) -> Query {
    Query { actions: vec![Action::Ranking { by, sort: Metric::TotalBytes }], ..Query::default() }
}

fn lines(trace: &Trace, query: &Query) -> Vec<(String, u64)> {
    let report = run(trace, query, &mut Names).unwrap();
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("not a ranking") };
    let text = |group: &heapr_query::Group| {
        let frames = report.frames(group);
        frames.iter().map(|frame| frame.symbol.unwrap_or("-")).collect::<Vec<_>>().join(" < ")
    };
    ranking.groups.iter().map(|group| (text(group), group.amounts.total_bytes)).collect()
}

#[test]
fn equal_stacks_of_two_processes_are_one_although_all_addresses_differ() {
    let steps = [
        step(10, 0, alloc(0x10, 1, &[MAIN, GROW, MALLOC])),
        step(20, 2, alloc(0x10, 2, &[MAIN, GROW, MALLOC])),
        step(30, 2, alloc(0x20, 4, &[(0, 3), (2, 5), (4, 7)])),
    ];
    let trace = trace_of(&steps, 100, true, 50);
    assert_eq!(lines(&trace, &ranking(GroupBy::Stacks)), [("grow<int>(int) < main".to_owned(), 7)]);
}

#[test]
fn inlined_frames_are_frames_and_are_culled_like_others() {
    let mut query = ranking(GroupBy::Stacks);
    assert_eq!(
        lines(&small(), &query),
        [("grow<int>(int) < main".to_owned(), 130), ("load(int) < main".to_owned(), 7)]
    );
    query.cull = CullList::empty();
    assert_eq!(lines(&small(), &query)[1].0, "malloc < calloc < grow<int>(int) < main");
}

#[test]
fn culling_never_empties_a_stack() {
    let mut query = ranking(GroupBy::Stacks);
    query.cull.add(FramePattern::parse("*").unwrap());
    assert_eq!(lines(&small(), &query), [("main".to_owned(), 137)]);
}

#[test]
fn required_frames_are_looked_for_before_culling() {
    let mut query = ranking(GroupBy::Frames);
    query.filter.required_frames = vec![FramePattern::parse("libc!malloc").unwrap()];
    assert_eq!(lines(&small(), &query), [("grow<int>(int)".to_owned(), 130)]);
}

#[test]
fn what_is_left_out_by_the_limit_is_added_up() {
    let query = Query { top: 1, ..ranking(GroupBy::Stacks) };
    let trace = small();
    let report = run(&trace, &query, &mut Names).unwrap();
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("not a ranking") };
    assert_eq!((ranking.groups.len(), ranking.group_count, ranking.rest.total_bytes), (1, 2, 7));
}

#[test]
fn a_function_has_no_line_and_each_of_its_lines_has() {
    let trace = small();
    for (by, line) in [(GroupBy::Frames, None), (GroupBy::Lines, Some(33))] {
        let report = run(&trace, &ranking(by), &mut Names).unwrap();
        let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("not a ranking") };
        let frames = report.frames(&ranking.groups[0]);
        assert_eq!((frames.len(), frames[0].symbol, frames[0].line), (1, Some("grow<int>(int)"), line));
    }
}

#[test]
fn a_function_has_all_that_it_calls_and_recursion_counts_once() {
    let steps = [
        step(10, 0, alloc(0x10, 100, &[MAIN, GROW, MAIN, (2, 1), MALLOC])),
        step(20, 0, alloc(0x20, 7, &[MAIN, (1, 0), MALLOC])),
    ];
    let trace = trace_of(&steps, 100, true, 50);
    let actions = vec![Action::Functions { sort: Metric::TotalBytes, by_line: false }];
    let report = run(&trace, &Query { actions, ..Query::default() }, &mut Names).unwrap();
    let Answer::Functions(found) = &report.sections[0].answer else { panic!("no functions") };
    let lines: Vec<_> = found
        .functions
        .iter()
        .map(|function| {
            let symbol = report.function_frame(function).symbol.unwrap();
            (symbol, function.inclusive.total_bytes, function.own.total_bytes)
        })
        .collect();
    assert_eq!(lines, [("main", 107, 0), ("grow<int>(int)", 100, 100), ("load(int)", 7, 7)]);
    assert_eq!(found.function_count, 3);
}

#[test]
fn the_top_down_tree_and_the_callers_hold_what_passes_through_each_frame() {
    let tree = |action: Action| {
        let trace = small();
        let query = Query { actions: vec![action], ..Query::default() };
        let report = run(&trace, &query, &mut Names).unwrap();
        let Answer::Tree(tree) = &report.sections[0].answer else { panic!("not a tree") };
        tree.nodes
            .iter()
            .map(|node| {
                format!(
                    "{}{} {}",
                    " ".repeat(node.depth),
                    report.tree_frame(node).symbol.unwrap(),
                    node.amounts.total_bytes
                )
            })
            .collect::<Vec<_>>()
    };
    let sort = Metric::TotalBytes;
    assert_eq!(tree(Action::TopDown { sort }), ["main 137", " grow<int>(int) 130", " load(int) 7"]);
    let of = FramePattern::parse("malloc").unwrap();
    assert_eq!(
        tree(Action::Callers { of, sort }),
        [
            "malloc 130",
            " grow<int>(int) 100",
            "  main 100",
            " calloc 30",
            "  grow<int>(int) 30",
            "   main 30"
        ]
    );
}

#[test]
fn the_peak_of_a_size_is_the_largest_sum_of_its_blocks() {
    // The 7 bytes come after the 100 are freed: no block of this size was live at the overall peak.
    let totals =
        |filter: Filter| run(&small(), &Query { filter, ..Query::default() }, &mut Names).unwrap().totals;
    assert_eq!((totals(Filter::default()).peak_bytes, totals(Filter::default()).peak_time_ns), (130, 20));
    let size = |from, to| totals(Filter { size: Some(Span { from, to }), ..Filter::default() });
    assert_eq!((size(1, 8).peak_bytes, size(1, 8).peak_count, size(1, 8).peak_time_ns), (7, 1, 40));
    assert_eq!((size(1, 50).peak_bytes, size(1, 50).peak_time_ns), (37, 40));
    let at_peak =
        Filter { size: Some(Span { from: 1, to: 50 }), at: Some(Moment::Peak), ..Filter::default() };
    assert_eq!((totals(at_peak.clone()).outstanding_bytes, totals(at_peak).outstanding_count), (37, 2));
    // The lifetime is known too late: the result is its share in the overall peak.
    let lifetime = Filter { lifetime: Some(Span { from: 0, to: 11 }), ..Filter::default() };
    let trace = small();
    let report = run(&trace, &Query { filter: lifetime, ..Query::default() }, &mut Names).unwrap();
    assert_eq!((report.is_own_peak, report.totals.peak_bytes, report.totals.alloc_bytes), (false, 0, 7));
}

#[test]
fn histograms_count_what_the_filters_leave() {
    let trace = small();
    let filter = Filter { size: Some(Span { from: 8, to: 1000 }), ..Filter::default() };
    let query =
        Query { filter, histograms: vec![HistogramOf::Size, HistogramOf::Lifetime], ..Query::default() };
    let report = run(&trace, &query, &mut Names).unwrap();
    let counts = |number: usize| {
        let buckets = report.histograms[number].buckets.iter();
        buckets
            .map(|bucket| (bucket.from, bucket.amounts.total_count, bucket.amounts.outstanding_bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(0), [(16, 1, 30), (32, 0, 0), (64, 1, 0)]);
    // Freed after 20 ns, or still live at the end, 30 ns later.
    assert_eq!(counts(1), [(16, 2, 30)]);
}

#[test]
fn names_that_the_trace_does_not_have_are_said() {
    let error = |filter: Filter, action: Action| {
        let trace = small();
        let query = Query { filter, actions: vec![action], ..Query::default() };
        run(&trace, &query, &mut Names).unwrap_err().to_string()
    };
    let stacks = || Action::Ranking { by: GroupBy::Stacks, sort: Metric::default() };
    let filter = Filter { pids: vec![7], ..Filter::default() };
    assert_eq!(error(filter, stacks()), "no process 7 in this trace; it has 100, 200");
    let filter =
        Filter { threads: vec![heapr_query::ThreadChoice::Name("x*".to_owned())], ..Filter::default() };
    assert_eq!(error(filter, stacks()), "no thread \"x*\" in this trace");
    let callers = Action::Callers { of: FramePattern::parse("nobody").unwrap(), sort: Metric::default() };
    assert_eq!(error(Filter::default(), callers), "no frame of the selected stacks matches \"nobody\"");
}
