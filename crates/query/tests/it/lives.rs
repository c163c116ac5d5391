//! The blocks that a process has not freed at its end are outstanding and not live: peaks are of
//! one moment.

use heapr_query::{Filter, Moment, Query, run, whole_summary};
use heapr_trace::HeapId;

use crate::made_trace::{Call, Lives, Names, Path, Step, trace_of_lives};

fn alloc(time_ns: u64, thread: u32, address: u64, size_bytes: u64) -> Step {
    let path = Path::from([(0, 0), (2, 0)]);
    Step { time_ns, thread, heap: HeapId::MALLOC, call: Call::Alloc { address, size_bytes, path } }
}

fn free(time_ns: u64, thread: u32, address: u64) -> Step {
    Step { time_ns, thread, heap: HeapId::MALLOC, call: Call::Free { address } }
}

/// The first process has threads 0 and 1, the second one 2.
fn one_after_the_other() -> Vec<Step> {
    vec![alloc(10, 0, 0x10, 100), alloc(20, 1, 0x20, 5), alloc(30, 2, 0x10, 70), alloc(40, 2, 0x20, 1)]
}

#[test]
fn processes_that_came_one_after_the_other_are_not_added_up_at_the_peak() {
    for (has_summary, checkpoint_every) in [(true, 100), (false, 100), (false, 1)] {
        let trace = trace_of_lives(&one_after_the_other(), checkpoint_every, has_summary, 50, Lives::End);
        let report = run(&trace, &Query::default(), &mut Names).unwrap();
        let totals = report.totals;
        assert_eq!((totals.peak_bytes, totals.peak_count, totals.peak_time_ns), (105, 2, 20));
        assert_eq!((totals.outstanding_bytes, totals.outstanding_count), (176, 4));
        let live_at = |time_ns: u64| {
            let filter = Filter { at: Some(Moment::At { time_ns }), ..Filter::default() };
            let report = run(&trace, &Query { filter, ..Query::default() }, &mut Names).unwrap();
            report.totals.outstanding_bytes
        };
        let at_peak = Filter { at: Some(Moment::Peak), ..Filter::default() };
        let report = run(&trace, &Query { filter: at_peak, ..Query::default() }, &mut Names).unwrap();
        assert_eq!(report.totals.outstanding_bytes, 105);
        assert_eq!([15, 20, 30, 45].map(live_at), [100, 0, 70, 71]);
        // The same holds for a range.
        let filter = Filter { range: Some(heapr_query::Span { from: 15, to: 60 }), ..Filter::default() };
        let report = run(&trace, &Query { filter, ..Query::default() }, &mut Names).unwrap();
        assert_eq!((report.totals.peak_bytes, report.totals.outstanding_bytes), (71, 76));
    }
}

#[test]
fn without_ends_all_are_live() {
    let trace = trace_of_lives(&one_after_the_other(), 100, true, 50, Lives::Unknown);
    assert_eq!(run(&trace, &Query::default(), &mut Names).unwrap().totals.peak_bytes, 176);
}

#[test]
fn a_child_goes_on_with_what_its_parent_had_when_it_was_forked() {
    let steps = [
        alloc(10, 0, 0x10, 100),
        alloc(20, 0, 0x20, 10),
        // The fork is here; then the parent continues for a while, and ends.
        alloc(30, 2, 0x90, 1),
        alloc(40, 0, 0x30, 1000),
        // The child's own block, and a copied block that it frees.
        alloc(50, 2, 0xa0, 2000),
        free(60, 2, 0x10),
        alloc(70, 2, 0xb0, 4),
    ];
    for has_summary in [true, false] {
        let trace = trace_of_lives(&steps, 100, has_summary, 80, Lives::Forked);
        let (summary, _) = whole_summary(&trace).unwrap();
        // 111 bytes from before the fork, 1,000 that end with the parent, then 2,000 of the child.
        assert_eq!((summary.totals.peak_bytes, summary.totals.peak_time_ns), (2111, 50));
        let live_at = |time_ns: u64| {
            let filter = Filter { at: Some(Moment::At { time_ns }), ..Filter::default() };
            run(&trace, &Query { filter, ..Query::default() }, &mut Names).unwrap().totals.outstanding_bytes
        };
        assert_eq!([35, 40, 50, 60, 70].map(live_at), [111, 111, 2111, 2011, 2015]);
        assert_eq!(summary.totals.outstanding_bytes, 100 + 10 + 1 + 1000 + 2000 + 4);
        assert_eq!(summary.totals.inherited_frees, 1);
    }
}
