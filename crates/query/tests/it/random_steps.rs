//! Random steps of programs, and random filters.

use heapr_query::{
    AllocationType, CullList, Filter, FramePattern, InnermostFrames, Moment, Span, ThreadChoice,
};
use heapr_trace::HeapId;
use proptest::prelude::*;

use crate::made_trace::{Call, Path, Step, UNKNOWN};

/// The next action of a program, before addresses are known.
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

/// Steps of a valid program: addresses of live blocks are not handed out again.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Times are close together, so that several events have the same time.
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

/// Adds an address that is handed out again without an observed free.
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
        prop::sample::select(vec!["grow", "libgrow!", "app!load", "*hrink*", "libc.so.6!malloc", "calloc"])
            .prop_map(|text| FramePattern::parse(text).unwrap());
    let patterns = || prop::collection::vec(pattern.clone(), 1..3);
    let cull = prop::sample::select(vec![CullList::empty(), CullList::built_in()]);
    let innermost = (patterns(), cull).prop_map(|(patterns, cull)| InnermostFrames { patterns, cull });
    (
        (
            sometimes(prop::sample::select(vec![100_u32, 200])),
            sometimes(prop::sample::select(vec![HeapId::MALLOC, HeapId::MMAP])),
            sometimes(thread),
        ),
        (sometimes(range()), sometimes(span(40)), sometimes(span(100))),
        (sometimes(moment), prop::bool::weighted(0.15), sometimes(kind)),
        prop_oneof![3 => Just(vec![]), 1 => patterns()],
        prop_oneof![5 => Just(None), 1 => innermost.prop_map(Some)],
    )
        .prop_map(
            |(
                (pid, heap, thread),
                (range, lifetime, size),
                (at, is_temporary_only, kind),
                required_frames,
                innermost,
            )| {
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
                    required_frames,
                    innermost,
                    left_out: heapr_query::Suppressions::default(),
                }
            },
        )
        .prop_filter("it can be meant", |filter| filter.check().is_ok())
}
