//! Model check of all interleavings of agents and a recorder over a small pool, and of the stores
//! that each may see. The sources of both sides are compiled over the atomics of `loom`.

#![allow(unreachable_pub, reason = "the sources are those of a library")]

mod hand_over;
mod pool;
#[allow(dead_code, reason = "the model takes part of it")]
#[path = "../../src/reader.rs"]
mod reader;
mod sys;
#[allow(dead_code, reason = "the model takes part of it")]
#[path = "../../src/writer.rs"]
mod writer;

use heapr_wire::PUBLISHED_CLOSED;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Relaxed, Release};
use loom::thread;

use pool as wire;
use pool::Pool;
use pool::PoolError;
use reader::{Content, claimed_buffers};
use sys::forbidden_calls;
use writer::{BufferUse, SlotClaim};

/// Word that a thread writes: its slot and the number of the event.
const fn value(slot: u32, event: u64) -> u64 {
    0x1000 * (slot as u64 + 1) + event
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    // More switches than any known fault of this kind needs.
    model.preemption_bound = Some(2);
    model.check(run);
}

/// Claims a buffer for events and writes `count` of them; `closing` as in the agent.
fn write_events(pool: &Pool, slot: u32, sequence: u64, count: u64, closing: u32) -> bool {
    let thread = SlotClaim { index: slot, generation: slot + 1 };
    let purpose = BufferUse::Events { thread, sequence };
    let Some(index) = writer::claim_buffer(pool, purpose, sequence) else { return false };
    if closing != 0 {
        writer::let_go(pool);
    }
    let header = pool.buffer_header(index).unwrap();
    for event in 0..count {
        writer::begin_event(header, event as u32);
        pool.buffer_words(index).unwrap()[event as usize].store(value(slot, sequence * 8 + event), Relaxed);
        writer::publish(header, event as u32 + 1, closing);
    }
    if closing == 0 {
        writer::close_buffer(pool, header);
    }
    true
}

/// Words that a recorder has read. `open`: buffer, slot, sequence and number of words of each open
/// buffer.
#[derive(Default)]
struct Recorder {
    open: Vec<(u32, u32, u64, usize)>,
    taken: Vec<u64>,
}

impl Recorder {
    /// One round: reads published words, and frees closed buffers.
    fn round(&mut self, pool: &Pool) {
        let mut freed = 0;
        for buffer in claimed_buffers(pool) {
            let Content::Events { words, is_closed, .. } = buffer.content else { panic!("{buffer:?}") };
            assert_eq!(buffer.generation, buffer.slot + 1, "{buffer:?}");
            let owner = (buffer.index, buffer.slot, buffer.sequence);
            let known =
                self.open.iter().position(|&(index, slot, sequence, _)| (index, slot, sequence) == owner);
            let place = known.unwrap_or_else(|| {
                self.open.push((buffer.index, buffer.slot, buffer.sequence, 0));
                self.open.len() - 1
            });
            let taken = self.open[place].3;
            assert!(words >= taken, "what was published is taken back: {buffer:?}");
            for at in taken..words {
                let word = reader::word(pool, buffer.index, at).unwrap();
                assert_eq!(word, value(buffer.slot, buffer.sequence * 8 + at as u64), "{buffer:?}");
                self.taken.push(word);
            }
            self.open[place].3 = words;
            if is_closed {
                self.open.remove(place);
                reader::free_buffer(pool, buffer.index);
                freed += 1;
            }
        }
        reader::finish_slice(pool, freed);
    }
}

/// Checks that each event is read once, whole, and as its own thread's, in every order. A freed
/// buffer is clean for its next owner. Each agent claims `claims` buffers in turn.
fn each_event_is_taken_once(buffer_count: usize, agents: u32, claims: u64, events: u64, closing: u32) {
    model(move || {
        let pool = Arc::new(Pool::new(buffer_count));
        let write = move |pool: &Pool, slot| -> Vec<u64> {
            let sequences =
                (0..claims).filter(|&sequence| write_events(pool, slot, sequence, events, closing));
            sequences
                .flat_map(|sequence| (0..events).map(move |event| value(slot, sequence * 8 + event)))
                .collect()
        };
        let agents: Vec<_> = (0..agents)
            .map(|slot| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || write(&pool, slot))
            })
            .collect();
        let mut recorder = Recorder::default();
        recorder.round(&pool);
        let mut written: Vec<u64> = agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect();
        recorder.round(&pool);
        recorder.taken.sort_unstable();
        written.sort_unstable();
        assert_eq!(recorder.taken, written);
        assert_eq!(claimed_buffers(&pool).count(), 0);
        assert_eq!(reader::held_count(&pool), 0);
        assert_eq!(pool.control().buffers_claimed.load(Relaxed), 0);
    });
}

#[test]
fn a_buffer_is_filled_closed_freed_and_filled_again() {
    each_event_is_taken_once(1, 1, 2, 2, 0);
}

#[test]
fn one_buffer_for_two_threads_is_never_both_s() {
    each_event_is_taken_once(1, 2, 1, 1, 0);
}

#[test]
fn a_buffer_that_is_closed_with_its_first_record_is_let_go_of_at_once() {
    each_event_is_taken_once(1, 2, 1, 1, PUBLISHED_CLOSED);
}

#[test]
fn who_waits_for_a_buffer_gets_the_one_that_is_freed() {
    model(|| {
        let pool = Arc::new(Pool::new(1));
        assert!(write_events(&pool, 0, 0, 1, PUBLISHED_CLOSED));
        let agent = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let write = |_| write_events(&pool, 1, 0, 1, PUBLISHED_CLOSED).then_some(());
                assert_eq!(writer::wait_for(&pool, write), Ok(()));
            })
        };
        let mut recorder = Recorder::default();
        recorder.round(&pool);
        agent.join().unwrap();
        recorder.round(&pool);
        assert_eq!(recorder.taken, [value(0, 0), value(1, 0)]);
        assert_eq!(pool.control().waiter_count.load(Relaxed), 0);
    });
}

#[test]
fn a_node_is_seen_whole_or_not_at_all_and_never_one_of_the_buffer_s_last_use() {
    model(|| {
        let pool = Arc::new(Pool::new(2));
        // Nodes that another process left behind.
        for index in 0..2 {
            let node = &pool.buffer_nodes(index).unwrap()[0];
            node.parent.store(99, Relaxed);
            node.return_address.store(0x9999, Relaxed);
        }
        let agent = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let process = SlotClaim { index: 5, generation: 6 };
                let claimed = writer::claim_buffer(&pool, BufferUse::Nodes { process, block: 0 }, 1);
                // (The last sixteenth, at least one, is for events.)
                let node = &pool.buffer_nodes(claimed.unwrap()).unwrap()[0];
                node.parent.store(7, Relaxed);
                node.return_address.store(0x4000, Release);
            })
        };
        for _ in 0..2 {
            for buffer in claimed_buffers(&pool) {
                assert_eq!(
                    (buffer.slot, buffer.generation, buffer.content),
                    (5, 6, Content::Nodes { first_node: 0 })
                );
                if let Some(node) = reader::node(&pool, buffer.index, 0) {
                    assert_eq!((node.parent, node.return_address), (7, 0x4000));
                }
            }
        }
        agent.join().unwrap();
    });
}

#[test]
fn a_buffer_that_is_given_back_is_never_taken_for_its_next_owner_s() {
    model(|| {
        // One buffer: it is for events alone, so that one for nodes is given back at once.
        let pool = Arc::new(Pool::new(1));
        let nodes = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let process = SlotClaim { index: 5, generation: 6 };
                assert_eq!(writer::claim_buffer(&pool, BufferUse::Nodes { process, block: 3 }, 1), None);
            })
        };
        let events = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || write_events(&pool, 0, 0, 1, 0))
        };
        for buffer in claimed_buffers(&pool) {
            match buffer.content {
                Content::Nodes { .. } => assert_eq!((buffer.slot, buffer.generation), (5, 6), "{buffer:?}"),
                Content::Events { words, .. } => {
                    assert_eq!((buffer.slot, buffer.generation), (0, 1), "{buffer:?}");
                    assert!(words <= 1);
                }
            }
        }
        nodes.join().unwrap();
        let has_written = events.join().unwrap();
        let mut recorder = Recorder::default();
        recorder.round(&pool);
        assert_eq!(recorder.taken.len(), usize::from(has_written));
        assert_eq!(reader::held_count(&pool), 0);
    });
}
