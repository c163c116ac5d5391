//! Intervals of a sampled recording hold the truth nineteen times of twenty. They are those of its
//! totals and its course, which reports and findings tell, and those of the timeline. Small blocks
//! lie among large ones.

use std::collections::HashMap;
use std::sync::Arc;

use heapr_explore::{Explorer, TableLimit, TimelineBy, TimelineOf, TimelineQuery};
use heapr_ledger::{CourseTaker, Ledger, SummaryBuilder};
use heapr_query::{CullList, Filter, Span};
use heapr_trace::{
    Action, Amounts, BlockEstimate, Course, Event, HeapId, Process, ProcessIndex, ProcessOrigin,
    SamplingPeriod, StackIndex, StackNode, Summary, Thread, ThreadIndex, Trace, TraceWriter, half_interval,
};

const SEEDS: u64 = 1000;
/// Mean distance of samples in bytes. (Variances are in KiB squared, rounded up block by block.)
const MEAN_BYTES: u64 = 64 << 10;
/// Sizes of the blocks of each stack in KiB, in turn: mixed ones, small ones, large ones.
const SIZES: [&[u64]; 3] = [&[20, 25, 30, 550], &[12], &[128, 1280]];
const BLOCKS: u64 = 1200;
const STEP_NS: u64 = 1 << 18;
const BINS: usize = 4;

/// Pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn next_distance(&mut self) -> i64 {
        let uniform = ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (-uniform.ln() * MEAN_BYTES as f64) as i64
    }
}

/// All events of the program: each third block is freed a while later.
fn program() -> Vec<Event> {
    let event = |number: u64, action| Event {
        time_ns: number * STEP_NS,
        thread: ThreadIndex(0),
        heap: HeapId::MALLOC,
        action,
    };
    let address = |number: u64| 0x1000_0000 + number * 0x100_0000;
    let mut events = Vec::new();
    for number in 0..BLOCKS {
        let stack = (number % 3) as usize;
        let sizes = SIZES[stack];
        let size_bytes = sizes[(number / 3) as usize % sizes.len()] << 10;
        let stack = StackIndex(stack as u32 + 1);
        let alloc =
            Action::Alloc { address_avma: address(number), size_bytes, stack, is_moved_realloc: false };
        events.push(event(number, alloc));
        if let Some(old) = number.checked_sub(60).filter(|old| old % 7 < 3) {
            let free = Action::Free {
                address_avma: address(old),
                stack: StackIndex::EMPTY,
                is_moved_realloc: false,
            };
            events.push(event(number, free));
        }
    }
    events
}

/// The events that a sampler with this seed records.
fn sampled(events: &[Event], seed: u64) -> Vec<Event> {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut left = random.next_distance();
    let mut taken: HashMap<u64, ()> = HashMap::new();
    let is_recorded = |event: &&Event| match event.action {
        Action::Alloc { address_avma, size_bytes, .. } => {
            left -= size_bytes as i64 + 1;
            let is_taken = left < 0;
            if is_taken {
                left = random.next_distance();
                taken.insert(address_avma, ());
            }
            is_taken
        }
        Action::Free { address_avma, .. } => taken.remove(&address_avma).is_some(),
        _ => false,
    };
    events.iter().filter(is_recorded).copied().collect()
}

fn period() -> SamplingPeriod {
    SamplingPeriod { process: SamplingPeriod::EVERY_PROCESS, from_ns: 0, mean_bytes: MEAN_BYTES }
}

/// Sums of events, as the recorder makes them.
fn summary_of(events: &[Event], is_sampled: bool) -> Summary {
    let (mut ledger, mut summary) = (Ledger::new(), SummaryBuilder::new());
    if is_sampled {
        summary.add_sampling(period());
    }
    let mut course = CourseTaker::default();
    for event in events {
        if event.time_ns >= course.next_ns() {
            course.take(event.time_ns, &summary, |_| StackIndex::EMPTY);
        }
        ledger.apply(event, ProcessIndex(0), &mut summary);
    }
    let duration_ns = BLOCKS * STEP_NS;
    course.take(duration_ns, &summary, |_| StackIndex::EMPTY);
    let mut summary = summary.finish();
    summary.course = course.finish();
    summary.event_count = events.len() as u64;
    summary.duration_ns = duration_ns;
    summary
}

fn trace_of(events: &[Event], is_sampled: bool) -> Trace {
    let mut bytes = Vec::new();
    let mut writer =
        if is_sampled { TraceWriter::new_sampled(&mut bytes) } else { TraceWriter::new(&mut bytes) }.unwrap();
    let process = writer
        .add_process(Process {
            pid: 7,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: "/opt/app".to_owned(),
            command_line: vec!["app".to_owned()],
            exit_status: None,
        })
        .unwrap();
    let thread = Thread { process, tid: 7, name: "main".to_owned(), start_ns: 0, end_ns: None };
    writer.add_thread(thread).unwrap();
    for function in 1..=SIZES.len() as u64 {
        let node = StackNode {
            parent: StackIndex::EMPTY,
            process,
            return_address_avma: function * 16,
            first_seen_ns: 0,
        };
        writer.add_stack(node).unwrap();
    }
    if is_sampled {
        writer.sampling(period()).unwrap();
    }
    events.iter().for_each(|event| writer.event(event).unwrap());
    writer.finish(&summary_of(events, is_sampled)).unwrap();
    drop(writer);
    Trace::from_source(Box::new(bytes)).unwrap()
}

/// Number of intervals that hold the truth, and of all.
#[derive(Default)]
struct Held(u64, u64);

impl Held {
    fn count(&mut self, estimate: u64, truth: u64, half: u64) {
        self.0 += u64::from(estimate.abs_diff(truth) <= half);
        self.1 += 1;
    }

    fn count_bytes(&mut self, estimate: BlockEstimate, truth: BlockEstimate) {
        self.count(estimate.bytes.value, truth.bytes.value, estimate.bytes_plus_minus());
    }

    fn assert_nineteen_of_twenty(&self, what: &str) {
        let share = self.0 as f64 / self.1 as f64;
        println!("{what}: {:.2} % of {} intervals hold the truth", share * 100.0, self.1);
        assert!((0.92..=0.98).contains(&share), "{what}: {} of {} intervals hold the truth", self.0, self.1);
    }
}

fn amounts(trace: &Trace) -> Vec<Amounts> {
    trace.summary().unwrap().unwrap().by_stack.iter().map(|row| row.amounts).collect()
}

fn timeline(trace: &Arc<Trace>) -> heapr_explore::Timeline {
    let explorer = Explorer::new(Arc::clone(trace));
    let limit = TableLimit { memory_bytes: 1 << 30 };
    explorer.read_events(limit, &mut |_, _| {}, &|| false).unwrap();
    let query = TimelineQuery {
        filter: Filter::default(),
        cull: CullList::empty(),
        time: Span { from: 0, to: BLOCKS * STEP_NS },
        bins: BINS,
        by: TimelineBy::Nothing,
        series_max: 0,
        of: TimelineOf::LiveBytes,
    };
    explorer.timeline(&query, &|| false).unwrap().unwrap()
}

#[test]
fn intervals_of_totals_course_and_timeline_hold_the_truth_nineteen_times_of_twenty() {
    let events = program();
    let exact = Arc::new(trace_of(&events, false));
    let (true_amounts, true_course) = (amounts(&exact), exact.course().unwrap().unwrap());
    let true_timeline = timeline(&exact);
    assert!(true_timeline.variances.is_none());
    let [mut totals, mut moments, mut sites]: [Held; 3] = Default::default();
    let [mut live, mut allocated, mut peak]: [Held; 3] = Default::default();
    let wanted = |course: &Course| [course.moments.len() / 3, course.moments.len() - 1];
    for seed in 1..=SEEDS {
        let trace = Arc::new(trace_of(&sampled(&events, seed), true));
        for (estimate, truth) in amounts(&trace).iter().zip(&true_amounts) {
            totals.count_bytes(estimate.outstanding(), truth.outstanding());
        }
        let course = trace.course().unwrap().unwrap();
        for place in wanted(&true_course) {
            let (moment, truth) = (&course.moments[place], &true_course.moments[place]);
            moments.count_bytes(moment.live(), truth.live());
            for row in &truth.rows {
                // A stack without a sample has no row.
                if let Ok(found) = moment.rows.binary_search_by_key(&row.stack, |row| row.stack) {
                    sites.count_bytes(moment.rows[found].live(), row.live());
                }
            }
        }
        let drawn = timeline(&trace);
        let variances = drawn.variances.as_deref().unwrap();
        for bin in 0..BINS {
            let half = half_interval(true, variances.live_bytes[bin]);
            live.count(drawn.live_bytes[bin], true_timeline.live_bytes[bin], half);
            let half = half_interval(true, variances.alloc_bytes[bin]);
            allocated.count(drawn.alloc_bytes[bin], true_timeline.alloc_bytes[bin], half);
        }
        // Whoever adds up the totals of the stacks gets the numbers of the whole.
        let summary = trace.summary().unwrap().unwrap();
        let sum: Amounts = summary.by_stack.iter().map(|row| &row.amounts).sum();
        assert_eq!(sum.outstanding(), summary.totals.amounts().outstanding());
        assert_eq!(sum.allocated(), summary.totals.amounts().allocated());
        assert_eq!(variances.peak.0, summary.totals.variances.peak_bytes);
        peak.count(summary.totals.peak_bytes, drawn.peak.1, 0);
    }
    totals.assert_nineteen_of_twenty("bytes left, by stack");
    moments.assert_nineteen_of_twenty("findings: live bytes at moments");
    sites.assert_nineteen_of_twenty("findings: live bytes of stacks at moments");
    live.assert_nineteen_of_twenty("timeline: live bytes");
    allocated.assert_nineteen_of_twenty("timeline: bytes allocated in a bin");
    assert_eq!(peak.0, peak.1);
}
