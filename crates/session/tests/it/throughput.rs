//! How much processor time the recorder takes for an event: printed, and bounded so loosely that only a blunder fails.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::producer::{Producer, join, live_tid};
use crate::recording::{pass_watermark, start, stop};

/// Rounds of a burst: the pool is filled, then the recorder empties it.
const ROUNDS: u64 = 40;

/// Processor time of this thread, which other work on the machine does not change much.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_burst_is_taken_faster_than_programs_allocate() {
    let (mut session, directory) = start(|properties| {
        properties.buffer_bytes = 64 << 10;
        properties.max_buffers = 64;
    });
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let nodes: Vec<u32> = (0..1000).map(|number| process.node(0, 0x4000 + number * 16)).collect();
    let mut thread = process.thread(live_tid(1));
    let mut spent = Duration::ZERO;
    let mut event_count = 0_u64;
    for _ in 0..ROUNDS {
        // 50 buffers of 64 KiB with pairs of 5 words.
        for number in 0..81_000_u64 {
            let slot = (number * 2_654_435_761) % 4096;
            let address = 0x10_0000 + slot * 64;
            assert!(thread.alloc(address, 24 + (slot % 7) as u32 * 8, nodes[(slot % 1000) as usize]));
            assert!(thread.free(address));
            event_count += 2;
        }
        pass_watermark();
        let before = processor_time();
        session.step_now();
        spent += processor_time() - before;
    }
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.summary.event_count, event_count);
    let event_ns = spent.as_nanos() as f64 / event_count as f64;
    println!("recorder: {event_ns:.1} ns per event");
    let bound_ns = if cfg!(debug_assertions) { 5_000.0 } else { 200.0 };
    assert!(event_ns < bound_ns, "{event_ns} ns per event");
}
