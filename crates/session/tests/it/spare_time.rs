//! The recorder is lent to a thread that runs when nobody else wants to, and nothing of what is recorded shows it.

use heapr_trace::Action;

use crate::producer::{Producer, join, live_tid};
use crate::recording::{start, stop};

/// Allocations of each of two threads between two turns: more than one slice.
const PER_TURN: u64 = 12_000;
const TURNS: u64 = 12;

/// Two threads allocate in turn; how often the recorder was lent, and all addresses in the order of the file.
fn record(max_buffers: usize) -> (u64, Vec<u64>) {
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
        session.step();
    }
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
    let addresses = recorded.events.iter().map(|event| match event.action {
        Action::Alloc { address_avma, .. } => address_avma,
        _ => unreachable!("only allocations were written"),
    });
    (recorded.summary.statistics.spare_turns, addresses.collect())
}

fn expected() -> Vec<u64> {
    (0..TURNS * PER_TURN * 2).map(|number| 0x10_0000 + number * 16).collect()
}

#[test]
fn while_there_is_room_the_recorder_is_lent_and_nothing_is_lost_or_out_of_order() {
    let (spare_turns, addresses) = record(1024);
    assert!(spare_turns > 0);
    assert!(addresses == expected(), "{} allocations, in another order", addresses.len());
}

#[test]
fn when_buffers_run_short_it_is_not_lent() {
    // What comes between two turns fills nine buffers of 64 KiB.
    let (spare_turns, addresses) = record(16);
    assert_eq!(spare_turns, 0);
    assert!(addresses == expected(), "{} allocations, in another order", addresses.len());
}
