//! Measures the recorder's processor time per event: printed, and bounded so loosely that only a
//! blunder fails.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::producer::{Producer, join, live_tid};
use crate::recording::{pass_watermark, start, stop};

/// Number of bursts: the pool is filled, then the recorder empties it.
const ROUNDS: u64 = 40;
/// Events per burst: 30 of 64 buffers of 64 KiB, with pairs of 3 words.
const ROUND_EVENTS: u64 = 162_000;

/// Returns the processor time of this thread, which other work on the machine does not change much.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Records bursts of pairs of `thread_count` threads that take turns in an unpredictable order.
/// Returns the nanoseconds per event in the best burst.
fn burst_ns(thread_count: usize) -> f64 {
    let (mut session, directory) = start(|properties| {
        properties.buffer_bytes = 64 << 10;
        properties.max_buffers = 64;
    });
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let nodes: Vec<u32> = (0..1000).map(|number| process.node(0, 0x4000 + number * 16)).collect();
    let mut threads: Vec<_> =
        (0..thread_count).map(|number| (process.thread(live_tid(number)), 0_u64, 0_u64)).collect();
    let mut random = 7_u64;
    let mut least = Duration::MAX;
    let mut event_count = 0_u64;
    for _ in 0..ROUNDS {
        for _ in 0..ROUND_EVENTS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let number = (random >> 20) as usize % thread_count;
            let (thread, pair, live) = &mut threads[number];
            if *live == 0 {
                let slot = (*pair * 2_654_435_761) % 4096;
                *live = 0x10_0000 + ((number as u64) << 20) + slot * 64;
                assert!(thread.alloc(*live, 24 + (slot % 7) as u32 * 8, nodes[(slot % 1000) as usize]));
                *pair += 1;
            } else {
                assert!(thread.free(*live));
                *live = 0;
            }
            event_count += 1;
        }
        pass_watermark();
        let before = processor_time();
        session.step_now();
        least = least.min(processor_time() - before);
    }
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.summary.event_count, event_count);
    assert_eq!(recorded.summary.summary.totals.unmatched_frees, 0);
    least.as_nanos() as f64 / ROUND_EVENTS as f64
}

#[test]
fn a_burst_is_taken_faster_than_programs_allocate() {
    let bound_ns = if cfg!(debug_assertions) { 5_000.0 } else { 200.0 };
    for thread_count in [1, 2, 3, 8] {
        let event_ns = burst_ns(thread_count);
        println!("recorder, {thread_count} threads: {event_ns:.1} ns per event");
        assert!(event_ns < bound_ns, "{event_ns} ns per event");
    }
}
