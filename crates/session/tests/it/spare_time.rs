//! Tests of the recorder in spare processor time: the recording does not show it. Targets do not
//! wait for it if all processors are always busy.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use heapr_trace::Action;
use rustix::thread::{CapabilitySet, CpuSet};

use crate::producer::{Producer, join, live_tid};
use crate::recording::{start, stop};

/// Allocations of each of two threads between two turns: more than one slice.
const PER_TURN: u64 = 12_000;
const TURNS: u64 = 12;

/// Figures of a recording.
struct Recorded {
    /// Number of times that the recorder was lent.
    spare_turns: u64,
    /// Largest difference of `count` during one turn, lent or not.
    most_in_turn: u64,
    /// All addresses in the order of the file.
    addresses: Vec<u64>,
}

/// Records two threads that allocate in turn. `count` is read before and after each turn of the
/// recorder.
fn record(max_buffers: usize, count: impl Fn() -> u64) -> Recorded {
    let mut most_in_turn = 0;
    let (mut session, directory) = start(|properties| {
        properties.buffer_bytes = 64 << 10;
        properties.max_buffers = max_buffers;
    });
    session.use_spare_time();
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let node = process.node(0, 0x4000);
    let mut threads = [process.thread(live_tid(1)), process.thread(live_tid(2))];
    for turn in 0..TURNS {
        for number in turn * PER_TURN..(turn + 1) * PER_TURN {
            for (place, thread) in threads.iter_mut().enumerate() {
                assert!(thread.alloc(0x10_0000 + (number * 2 + place as u64) * 16, 8, node));
            }
        }
        let before = count();
        session.step();
        most_in_turn = most_in_turn.max(count() - before);
    }
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
    let addresses = recorded.events.iter().map(|event| match event.action {
        Action::Alloc { address_avma, .. } => address_avma,
        _ => unreachable!("only allocations were written"),
    });
    let spare_turns = recorded.summary.statistics.spare_turns;
    Recorded { spare_turns, most_in_turn, addresses: addresses.collect() }
}

fn expected() -> Vec<u64> {
    (0..TURNS * PER_TURN * 2).map(|number| 0x10_0000 + number * 16).collect()
}

#[test]
fn while_there_is_room_the_recorder_is_lent_and_nothing_is_lost_or_out_of_order() {
    let Recorded { spare_turns, addresses, .. } = record(1024, || 0);
    assert!(spare_turns > 0);
    assert!(addresses == expected(), "{} allocations, in another order", addresses.len());
}

#[test]
fn when_buffers_run_short_it_is_not_lent() {
    // Events between two turns fill nine buffers of 64 KiB.
    let Recorded { spare_turns, addresses, .. } = record(16, || 0);
    assert_eq!(spare_turns, 0);
    assert!(addresses == expected(), "{} allocations, in another order", addresses.len());
}

/// Runs [`record`] beside two threads that only calculate, on the same single processor. `count` is
/// the processor time in nanoseconds that they use.
fn record_on_a_busy_processor(may_raise_priorities: bool) -> Recorded {
    // Processor and rights are per thread: parallel tests keep theirs.
    let record = move || {
        let mut one = CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        if !may_raise_priorities {
            let mut rights = rustix::thread::capabilities(None).unwrap();
            rights.effective.remove(CapabilitySet::SYS_NICE);
            rights.permitted.remove(CapabilitySet::SYS_NICE);
            rights.inheritable.remove(CapabilitySet::SYS_NICE);
            rustix::thread::set_capabilities(None, rights).unwrap();
        }
        let (is_over, began) = (AtomicBool::new(false), Instant::now());
        // A time limit, in case the tested code panics.
        let used_ns = AtomicU64::new(0);
        let calculate = || {
            let mut before_ns = processor_ns();
            while !is_over.load(Relaxed) && began.elapsed() < heapr_testkit::LIMIT {
                let now_ns = processor_ns();
                used_ns.fetch_add(now_ns - before_ns, Relaxed);
                before_ns = now_ns;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(calculate);
            }
            let recorded = record(1024, || used_ns.load(Relaxed));
            is_over.store(true, Relaxed);
            recorded
        })
    };
    std::thread::spawn(record).join().unwrap()
}

/// Returns the processor time of this thread, which other programs on the machine do not change.
fn processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// During a turn of a thread that stays at the lowest priority, the others use 7 s in a debug
/// build.
#[test]
fn where_no_processor_is_ever_idle_a_turn_does_not_wait_for_all_others() {
    const FAIR_NS: u64 = 2_000_000_000;
    for may_raise_priorities in [true, false] {
        let recorded = record_on_a_busy_processor(may_raise_priorities);
        assert!(recorded.spare_turns > 0);
        assert!(recorded.most_in_turn < FAIR_NS, "{} ns", recorded.most_in_turn);
        assert!(recorded.addresses == expected());
    }
}
