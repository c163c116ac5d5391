//! An agent that requests an inspection does not wait for a killed recorder.

use std::process::Command;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::writer::{self, ProcessClaim};
use heapr_ring::{Pool, PoolProperties};
use heapr_wire::{NO_SLOT, ORIGIN_EXEC, SESSION_RECORDING};

/// Time limit in nanoseconds that no test reaches.
const HOURS_NS: u64 = 10_000_000_000_000;

#[test]
fn a_recorder_that_is_gone_is_not_waited_for_and_one_that_lives_is() {
    let properties = PoolProperties { buffer_bytes: 65536, buffer_count: 4, open_count: 4, is_ample: false };
    let (pool, _descriptor) = Pool::create(properties).unwrap();
    let control = pool.control();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    control.recorder_pid.store(gone.id(), Relaxed);
    control.recorder_namespace.store(writer::process_namespace(), Relaxed);
    control.state.store(SESSION_RECORDING, Relaxed);
    let claim = ProcessClaim {
        process_id: 0,
        parent_id: 0,
        origin: ORIGIN_EXEC,
        parent_slot: NO_SLOT,
        start_ticks: 0,
        has_own_malloc: false,
        executable: b"/usr/bin/it",
    };
    let claimed = writer::claim_process(&pool, claim).unwrap();
    let slot = pool.process_slot(claimed.index).unwrap();
    // Each request ends without an answer.
    writer::ask_for_look(&pool, slot, HOURS_NS, true);
    writer::ask_for_look(&pool, slot, HOURS_NS, false);
    assert_eq!((slot.looks_wanted.load(Relaxed), slot.looks_done.load(Relaxed)), (2, 0));

    control.recorder_pid.store(std::process::id(), Relaxed);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| writer::ask_for_look(&pool, slot, HOURS_NS, true));
        while slot.looks_wanted.load(Acquire) != 3 {
            std::thread::yield_now();
        }
        assert!(!asking.is_finished());
        slot.looks_done.store(3, Release);
        asking.join().unwrap();
    });
}
