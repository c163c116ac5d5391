//! A circular trace holds the newest events exactly, and all live blocks, whatever was discarded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use heapr_ledger::Ledger;
use heapr_trace::{
    Action, Block, Event, HeapId, Process, ProcessIndex, ProcessOrigin, StackIndex, StackNode, Summary,
    Thread, ThreadIndex, Trace, TraceWriter,
};

/// A writer whose contents can be read back.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const LIMIT_BYTES: u64 = 1 << 20;

/// Pseudo-random numbers, so that events do not compress to nothing.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn begin(sink: Sink, stack_count: u32) -> TraceWriter<Sink> {
    let mut writer = TraceWriter::new(sink).unwrap();
    writer.keep_window(LIMIT_BYTES);
    for pid in [10, 20] {
        let process = Process {
            pid,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: "/bin/x".to_owned(),
            command_line: Vec::new(),
            exit_status: None,
        };
        let process = writer.add_process(process).unwrap();
        let thread = Thread { process, tid: pid, name: String::new(), start_ns: 0, end_ns: None };
        writer.add_thread(thread).unwrap();
    }
    for number in 0..stack_count {
        let node = StackNode {
            parent: StackIndex(number),
            process: ProcessIndex(0),
            return_address_avma: 4096 + u64::from(number),
            first_seen_ns: 0,
        };
        writer.add_stack(node).unwrap();
    }
    writer
}

fn key(block: &Block) -> (u32, u64) {
    (block.process.0, block.address_avma)
}

fn live(ledger: &Ledger) -> BTreeMap<(u32, u64), Block> {
    ledger.live_blocks().map(|block| (key(&block), block)).collect()
}

/// Writes `event_count` events of two processes that hold about `held` blocks into a window, reads
/// them back and compares.
fn check(event_count: u64, held: u64, seed: u64) -> (u64, usize) {
    let mut random = Random(seed);
    let sink = Sink::default();
    let mut writer = begin(sink.clone(), 50);
    let mut ledger = Ledger::new();
    let mut all = Vec::new();
    let mut addresses: Vec<(u32, u64)> = Vec::new();
    let mut held_max = 0;
    for number in 0..event_count {
        let time_ns = number * 7;
        let is_full = addresses.len() as u64 > held;
        let action = match random.next(10) {
            0..6 if !is_full => {
                let (thread, address) = (random.next(2) as u32, (number + 1) << 4 | random.next(2) << 45);
                addresses.push((thread, address));
                let (size_bytes, stack) = (random.next(1 << 30), StackIndex(random.next(50) as u32 + 1));
                let action =
                    Action::Alloc { address_avma: address, size_bytes, stack, is_moved_realloc: false };
                (thread, action)
            }
            6 if !addresses.is_empty() => {
                let place = random.next(addresses.len() as u64) as usize;
                let (thread, old_address_avma) = addresses[place];
                let address_avma = (number + 1) << 4;
                addresses[place] = (thread, address_avma);
                let (size_bytes, stack) = (random.next(1 << 20), StackIndex(random.next(50) as u32 + 1));
                (thread, Action::Realloc { old_address_avma, address_avma, size_bytes, stack })
            }
            _ if !addresses.is_empty() => {
                let place = random.next(addresses.len() as u64) as usize;
                let (thread, address_avma) = addresses.swap_remove(place);
                (thread, Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false })
            }
            _ => continue,
        };
        let event = Event { time_ns, thread: ThreadIndex(action.0), heap: HeapId::MALLOC, action: action.1 };
        ledger.apply(&event, ProcessIndex(action.0), &mut ());
        writer.event(&event).unwrap();
        all.push(event);
        if writer.window_wants_checkpoint() {
            writer.checkpoint(time_ns, ledger.sorted_blocks()).unwrap();
        }
        held_max = held_max.max(writer.written_bytes());
    }
    let mut shown = Ledger::new();
    let window = writer.end_window(|event, process| shown.apply(event, process, &mut ())).unwrap().unwrap();
    assert_eq!(live(&shown), live(&ledger));
    writer.finish(&Summary::default()).unwrap();
    let bytes = sink.0.lock().unwrap().clone();
    let trace = Trace::from_source(Box::new(bytes)).unwrap();
    assert!(trace.damage().is_empty() && trace.is_complete());
    let mut read = Vec::new();
    let mut events = trace.events(0, u64::MAX);
    while let Some(batch) = events.next_batch().unwrap() {
        read.extend_from_slice(batch);
    }
    assert!(events.damage().is_empty());
    assert_eq!(read.len() as u64, window.event_count);
    assert!(read.is_sorted_by_key(|event| event.time_ns));
    let mut replayed = Ledger::new();
    for event in &read {
        replayed.apply(event, trace.process_of(event.thread), &mut ());
    }
    // Compared with stacks, sizes, threads and times.
    assert_eq!(live(&replayed), live(&ledger));
    let kept = all.len() - window.dropped_event_count as usize;
    assert_eq!(read[read.len() - kept..], all[all.len() - kept..]);
    // A checkpoint inside leads to the same end.
    if let Some(checkpoint) = trace.checkpoint_before(u64::MAX).unwrap() {
        let mut from_checkpoint = Ledger::new();
        let mut events = trace.events_after(&checkpoint, u64::MAX);
        from_checkpoint.load(checkpoint.blocks);
        while let Some(batch) = events.next_batch().unwrap() {
            for event in batch {
                from_checkpoint.apply(event, trace.process_of(event.thread), &mut ());
            }
        }
        assert_eq!(live(&from_checkpoint), live(&ledger));
    }
    (held_max, kept)
}

#[test]
fn what_fits_is_kept_whole() {
    let (_, kept) = check(50_000, 1000, 1);
    assert!(kept > 45_000);
}

#[test]
fn older_events_go_and_what_is_live_stays_with_its_stacks_and_times() {
    for seed in 1..3 {
        let (held_max, kept) = check(500_000, 1000, seed);
        assert!(held_max < LIMIT_BYTES + (300 << 10), "{held_max} bytes");
        assert!((80_000..300_000).contains(&kept), "{kept} events");
    }
}

#[test]
fn live_blocks_that_take_more_than_the_window_are_kept_all_the_same() {
    let (held_max, kept) = check(900_000, 100_000, 9);
    assert!(held_max < 6 << 20, "{held_max} bytes");
    assert!(kept > 60_000, "{kept} events");
}

#[test]
fn a_window_of_nothing_is_an_empty_trace() {
    check(0, 10, 5);
}
