//! Tests with random content in the shared pages: the recorder neither panics nor allocates memory
//! for nodes that were never written.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;

use heapr_ring::Pool;
use heapr_session::SampleRate;
use heapr_wire::{DisableReason, NODE_ADDRESS_MASK, OWNER_EVENTS, PROCESS_LIVE, TICKS_MASK, owner_word};
use proptest::prelude::*;

use crate::producer::{Producer, join, live_tid, ticks};
use crate::recording::{pass_watermark, start, stop};

/// Random write to the shared pages, or an honest step.
#[derive(Debug, Clone, Copy)]
enum Act {
    Process { slot: u32, field: u8, value: u64 },
    Thread { slot: u32, field: u8, value: u64 },
    Owner { buffer: u32, kind: u64, slot: u32, sequence: u64, generation: u32 },
    Header { buffer: u32, field: u8, value: u64 },
    Word { buffer: u32, place: usize, value: u64 },
    Record { buffer: u32, kind: u64, place: usize, words: [u64; 8] },
    Honest { block: u64 },
    Round,
}

/// Generates numbers: small ones hit what exists; large ones what does not exist.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..8,
        any::<u64>(),
        Just(u64::MAX),
        Just(1 << 28),
        Just(u64::from(u32::MAX)),
        Just(1 << 55)
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let slot = || prop_oneof![8 => 0_u32..6, 1 => any::<u32>()];
    let buffer = || 0_u32..8;
    prop_oneof![
        1 => (slot(), any::<u8>(), number()).prop_map(|(slot, field, value)| Act::Process { slot, field, value }),
        1 => (slot(), any::<u8>(), number()).prop_map(|(slot, field, value)| Act::Thread { slot, field, value }),
        1 => (buffer(), 0_u64..4, slot(), number(), 0_u32..3).prop_map(|(buffer, kind, slot, sequence, generation)| {
            Act::Owner { buffer, kind, slot, sequence, generation }
        }),
        1 => (buffer(), any::<u8>(), number()).prop_map(|(buffer, field, value)| Act::Header { buffer, field, value }),
        1 => (buffer(), 0_usize..512, number()).prop_map(|(buffer, place, value)| Act::Word { buffer, place, value }),
        4 => (buffer(), 0_u64..64, 0_usize..40, proptest::array::uniform8(number()))
            .prop_map(|(buffer, kind, place, words)| Act::Record { buffer, kind, place, words }),
        4 => (0_u64..64).prop_map(|block| Act::Honest { block }),
        2 => Just(Act::Round),
    ]
}

/// Carries out an act. `victim`: slot of an honest thread.
fn commit(pool: &Pool, victim: u32, act: Act) {
    match act {
        Act::Process { slot, field, value } => {
            let Some(slot) = pool.process_slot(slot) else { return };
            match field % 8 {
                0 => slot.state.store(value as u32 % 5, Relaxed),
                1 => slot.parent_slot.store(value as u32, Relaxed),
                2 => slot.origin.store(value as u32 % 4, Relaxed),
                3 => slot.start_ticks.store(value, Relaxed),
                4 => slot.events_lost.store(value, Relaxed),
                5 => slot.verify_count.store(value, Relaxed),
                6 => slot.pid.store(value as u32 | 1 << 30, Relaxed),
                _ => slot.generation.store(value as u32, Relaxed),
            }
        }
        Act::Thread { slot, field, value } => {
            // Small numbers stand for the producer's own slot, whose index depends on its thread's
            // id.
            let slot = if slot < 4 { victim } else { slot };
            let Some(slot) = pool.thread_slot(slot) else { return };
            match field % 8 {
                0 => slot.state.store(value as u32 % 5, Relaxed),
                1 => slot.process_slot.store(value as u32, Relaxed),
                2 => slot.process_generation.store(value as u32, Relaxed),
                3 => slot.tid.store(value as u32, Relaxed),
                4 => slot.events_lost.store(value, Relaxed),
                5 => slot.wait_ns.store(value, Relaxed),
                6 => slot.stack_count.store(value, Relaxed),
                _ => slot.generation.store(value as u32, Relaxed),
            }
        }
        Act::Owner { buffer, kind, slot, sequence, generation } => {
            let slot = if slot < 4 && kind == OWNER_EVENTS { victim } else { slot };
            let Some(header) = pool.buffer_header(buffer) else { return };
            header.owner_generation.store(generation, Relaxed);
            header.owner.store(owner_word(kind, slot, sequence), Relaxed);
        }
        Act::Header { buffer, field, value } => {
            let Some(header) = pool.buffer_header(buffer) else { return };
            match field % 5 {
                0 => header.published.store(value as u32, Relaxed),
                1 => header.closed.store(value as u32 % 3, Relaxed),
                2 => header.first_node.store(value as u32, Relaxed),
                3 => header.claimed_ticks.store(value, Relaxed),
                _ => header.owner_generation.store(value as u32, Relaxed),
            }
        }
        Act::Word { buffer, place, value } => {
            if let Some(word) = pool.buffer_words(buffer).and_then(|words| words.get(place)) {
                word.store(value, Relaxed);
            }
        }
        Act::Record { buffer, kind, place, words } => {
            let Some(buffer) = pool.buffer_words(buffer) else { return };
            let Some(room) = buffer.get(place..) else { return };
            for (at, (word, value)) in room.iter().zip(words).enumerate() {
                let value = if at == 0 { kind << 58 | value & TICKS_MASK } else { value & NODE_ADDRESS_MASK };
                word.store(value, Relaxed);
            }
        }
        Act::Honest { .. } | Act::Round => {}
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_in_the_shared_pages_harms_nobody(acts in proptest::collection::vec(act(), 1..250)) {
        let (mut session, directory) = start(|properties| properties.max_buffers = 8);
        let pool = join(&session);
        let process = Producer::exec(&pool, None);
        let mut thread = process.thread(live_tid(1));
        for act in acts {
            match act {
                Act::Honest { block } => {
                    // The thread's slot may have been taken from under it: then its event has no
                    // owner.
                    let _ = thread.alloc(0x1000 + block * 16, 8, 0);
                }
                Act::Round => session.step_now(),
                act => commit(&pool, thread.claim.index, act),
            }
        }
        session.step_now();
        // In every case the file is sound: `stop` reads it all.
        let recorded = stop(session, directory);
        prop_assert!(recorded.events.is_sorted_by_key(|event| event.time_ns));
    }
}

#[test]
fn a_node_number_out_of_all_proportion_takes_no_memory() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let node = process.node(0, 0x4000);
    let before = resident_bytes();
    for block in [1 << 20, 3 << 19, u32::MAX / 256] {
        let purpose = heapr_ring::writer::BufferUse::Nodes { process: process.claim, block };
        let buffer = heapr_ring::writer::claim_buffer(&pool, purpose, ticks(&pool)).expect("a free buffer");
        pool.buffer_nodes(buffer).expect("its nodes")[0].return_address.store(0x4000, Relaxed);
        session.step_now();
    }
    assert!(resident_bytes() < before + (64 << 20));
    let mut thread = process.thread(live_tid(1));
    assert!(thread.alloc(0x100, 10, node));
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    assert_eq!(recorded.events.len(), 1);
    assert_eq!(recorded.summary.statistics.loss.records_invalid, 3);
}

#[test]
fn a_buffer_that_is_claimed_for_nothing_that_there_is_is_given_back() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    for (buffer, kind) in [(0, 0), (1, 3), (2, 15)] {
        let header = pool.buffer_header(buffer).expect("a buffer");
        header.owner_generation.store(1, Relaxed);
        header.owner.store(owner_word(kind, 0, 7), Relaxed);
    }
    session.step_now();
    assert!((0..3).all(|buffer| pool.buffer_header(buffer).unwrap().owner.load(Relaxed) == 0));
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss.records_invalid, 3);
}

/// Source of a program that allocates all the time until its input ends.
const ALLOCATING: &str = r"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int is_over;
static void *volatile block;
static void *allocate(void *unused) {
    while (!is_over) { block = malloc(500); free(block); }
    return unused;
}
int main(void) {
    pthread_t thread;
    char byte;
    pthread_create(&thread, NULL, allocate, NULL);
    while (read(0, &byte, 1) > 0) ;
    is_over = 1;
    return pthread_join(thread, NULL);
}
";

/// Test that a wild pointer in one process of a session does not keep another one in its allocator.
#[test]
fn numbers_of_marks_that_cannot_be_end_a_recording_and_not_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("allocating.c"), folder.path().join("allocating"));
    std::fs::write(&source, ALLOCATING).unwrap();
    let built = Command::new("gcc")
        .args(["-O1", "-pthread", "-fno-builtin", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(built.success());
    for is_told in [true, false] {
        let (mut session, directory) =
            start(|properties| properties.sample = Some(SampleRate::Every { bytes: 4096 }));
        let pool = join(&session);
        let mut child = Command::new(&program)
            .envs(session.environment_for_target())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let slot = heapr_testkit::wait_until("the program is recorded", || {
            session.step_now();
            let slot = pool.process_slot(0)?;
            (slot.state.load(Relaxed) == PROCESS_LIVE && pool.control().buffers_held.load(Relaxed) > 0)
                .then_some(slot)
        });
        let number = if is_told { &slot.unmarked_told } else { &slot.unmarked_taken };
        number.fetch_xor(1 << 31, Relaxed);
        heapr_testkit::wait_until("the recording ends", || {
            session.step_now();
            (slot.disable_reason.load(Relaxed) == DisableReason::PoolOverwritten as u32).then_some(())
        });
        drop(child.stdin.take());
        let status = heapr_testkit::wait_until("the program ends", || {
            session.step_now();
            child.try_wait().unwrap()
        });
        assert!(status.success(), "{status}");
        let recorded = stop(session, directory);
        let notices: Vec<_> = recorded.trace.notices().iter().map(|notice| notice.text.as_str()).collect();
        assert!(
            notices.iter().any(|text| text.contains("writes over heapr's shared buffers")),
            "{notices:?}"
        );
    }
}
