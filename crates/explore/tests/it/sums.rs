//! Sums by spans of time, and blocks that live at a moment, equal the filters that ask for the
//! same.

use std::sync::Arc;

use heapr_explore::{Explorer, Found, Parallelism, TableLimit};
use heapr_query::{Filter, Moment, Span};
use heapr_trace::{HeapId, ProcessIndex, Trace};
use proptest::prelude::*;

use crate::made_trace::{Lives, Names, Step, trace_of_lives};
use crate::random_steps::{hand_out_again, steps};

fn explorer(steps: &[Step], lives: Lives) -> Explorer {
    let last_ns = steps.last().map_or(0, |step| step.time_ns);
    let trace: Trace = trace_of_lives(steps, 10, true, last_ns + 5, lives);
    let parallelism = Parallelism { threads: 3, least: 2, block: 3 };
    let explorer = Explorer::with_parallelism(Arc::new(trace), parallelism);
    explorer.name(&mut Names);
    let limit = TableLimit { memory_bytes: 1 << 30 };
    explorer.read_events(limit, &mut |_, _| {}, &|| false).unwrap();
    explorer
}

fn totals(explorer: &Explorer, filter: &Filter) -> heapr_trace::Totals {
    explorer.select(filter, Found::default(), &|| false).unwrap().totals
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_range_of_whole_spans_is_the_sum_of_its_spans(
        steps in steps(),
        lives in prop::sample::select(vec![Lives::Unknown, Lives::End, Lives::Forked]),
        spans_max in 1..9_u16,
        sums_max in prop::sample::select(vec![1, 5, 20, 1000]),
        range in (0..9_usize, 0..9_usize),
    ) {
        let explorer = explorer(&steps, lives);
        let found = explorer.span_sums(spans_max, sums_max, &|| false).unwrap().unwrap();
        let count = found.ends_ns.len();
        prop_assert!(found.sums.len() <= sums_max || count == 1);
        let key = |sum: &heapr_explore::SpanSum| (sum.stack.0, sum.born, sum.freed);
        prop_assert!(found.sums.windows(2).all(|two| key(&two[0]) < key(&two[1])));
        let first = range.0 % count;
        let end = first + 1 + range.1 % (count - first);
        let from = first.checked_sub(1).map_or(0, |before| found.ends_ns[before]);
        // A recording of few nanoseconds has spans without any.
        prop_assume!(from < found.ends_ns[end - 1]);
        let filter = Filter { range: Some(Span { from, to: found.ends_ns[end - 1] }), ..Filter::default() };
        let expected = totals(&explorer, &filter);
        let inside = |sum: &&heapr_explore::SpanSum| (first..end).contains(&usize::from(sum.born));
        let sum = |of: &dyn Fn(&heapr_explore::SpanSum) -> u64| found.sums.iter().filter(inside).map(of).sum::<u64>();
        let live = |sum: &heapr_explore::SpanSum| usize::from(sum.freed) >= end;
        prop_assert_eq!(sum(&|sum| sum.count), expected.alloc_count);
        prop_assert_eq!(sum(&|sum| sum.bytes), expected.alloc_bytes);
        prop_assert_eq!(sum(&|sum| sum.realloc_count), expected.realloc_count);
        prop_assert_eq!(sum(&|sum| if live(sum) { sum.bytes } else { 0 }), expected.outstanding_bytes);
        prop_assert_eq!(sum(&|sum| if live(sum) { sum.count } else { 0 }), expected.outstanding_count);
        if (first, end) == (0, count) {
            prop_assert_eq!(sum(&|sum| sum.temporary_count), expected.temporary_count);
            let temporary = totals(&explorer, &Filter { is_temporary_only: true, ..Filter::default() });
            prop_assert_eq!(sum(&|sum| sum.temporary_bytes), temporary.alloc_bytes);
        }
    }

    #[test]
    fn lasting_blocks_are_those_that_live_at_the_moments(
        steps in steps(),
        again in any::<bool>(),
        mut moments_ns in prop::collection::vec(0..80_u64, 1..6),
    ) {
        let mut steps = steps;
        if again {
            hand_out_again(&mut steps);
        }
        moments_ns.sort_unstable();
        let explorer = explorer(&steps, Lives::Unknown);
        let trace = Arc::clone(explorer.trace());
        let of = |process: u32| {
            let all = |_: HeapId| true;
            explorer.lasting_blocks(Some(ProcessIndex(process)), &moments_ns, all, &|| false).unwrap().unwrap()
        };
        let blocks: Vec<_> = (0..trace.processes().len() as u32).flat_map(of).collect();
        for (place, &time_ns) in moments_ns.iter().enumerate() {
            let at = Filter { at: Some(Moment::At { time_ns }), ..Filter::default() };
            let expected = totals(&explorer, &at);
            let live = blocks.iter().filter(|block| block.first <= place && place < block.end);
            let (bytes, count) = live.fold((0, 0), |(bytes, count), block| (bytes + block.size_bytes, count + 1));
            prop_assert_eq!((bytes, count), (expected.outstanding_bytes, expected.outstanding_count));
        }
        prop_assert!(blocks.iter().all(|block| block.first < block.end && block.end <= moments_ns.len()));
    }
}
