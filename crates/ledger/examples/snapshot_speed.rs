//! Measures processor time and memory of a snapshot: `snapshot_speed [BLOCKS] [BYTES]`, live blocks
//! of one size (10 million of 48).
//!
//! Fills the table of live blocks like a program that allocates them one after the other, and
//! replaces every tenth. Then exports all blocks through the columns and the compression of the
//! file, while other events arrive.

use std::io;
use std::time::Duration;

use heapr_ledger::Ledger;
use heapr_trace::{
    Action, Event, HeapId, ProcessIndex, SnapshotColumns, StackIndex, ThreadIndex, TraceWriter,
};

/// Number of events between two slices, as in a round of the recorder.
const EVENTS_PER_SLICE: u64 = 20_000;
const EVENTS_TOGETHER: usize = 4096;
const GROUPS_PER_SLICE: usize = 8192;

/// Processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let block_count = numbers.next().transpose()?.unwrap_or(10_000_000);
    let size_bytes = numbers.next().transpose()?.unwrap_or(48);
    let chunk_bytes = (size_bytes + 23).max(32) & !15;
    let mut ledger = Ledger::new();
    let mut time_ns = 0;
    // Applied many at a time, like in the recorder.
    let mut waiting = Vec::with_capacity(EVENTS_TOGETHER);
    let mut spent_on_events = Duration::ZERO;
    let mut event_count = 0_u64;
    let mut change = |ledger: &mut Ledger, address_avma: u64, is_alloc: bool, is_last: bool| {
        time_ns += 90 + address_avma % 40;
        let stack = StackIndex((address_avma / 4096 % 5000) as u32);
        let action = if is_alloc {
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }
        } else {
            Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false }
        };
        waiting
            .push((Event { time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action }, ProcessIndex(0)));
        if waiting.len() == EVENTS_TOGETHER || is_last {
            let before = std::time::Instant::now();
            ledger.apply_all(&waiting, &mut ());
            spent_on_events += before.elapsed();
            event_count += waiting.len() as u64;
            waiting.clear();
        }
    };
    let address = |number: u64| 0x5555_0000_0010 + number * chunk_bytes;
    let before_bytes = resident_bytes();
    for number in 0..block_count {
        change(&mut ledger, address(number), true, number + 1 == block_count);
    }
    for number in (0..block_count / 10).map(|number| number * 7919 % block_count) {
        change(&mut ledger, address(number), false, false);
        change(&mut ledger, address(number), true, false);
    }
    change(&mut ledger, address(0), false, false);
    change(&mut ledger, address(0), true, true);
    let table_bytes = resident_bytes() - before_bytes;
    let mut writer = TraceWriter::new(io::sink())?;
    let (mut columns, mut part, mut exported) = (SnapshotColumns::new(), 0, 0_u64);
    let (mut random, mut export, mut longest) = (7_u64, Duration::ZERO, Duration::ZERO);
    ledger.begin_cut();
    loop {
        let before = processor_time();
        let mut outcome = Ok(());
        let is_done = ledger.cut_slice(GROUPS_PER_SLICE, |block| {
            columns.push(block);
            exported += 1;
            if columns.is_full() && outcome.is_ok() {
                outcome = writer.snapshot_part(1, part, u64::MAX, &mut columns);
                part += 1;
            }
        });
        outcome?;
        let spent = processor_time() - before;
        export += spent;
        longest = longest.max(spent);
        if is_done {
            break;
        }
        for number in 1..=EVENTS_PER_SLICE / 2 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = address(random % block_count);
            change(&mut ledger, address, false, false);
            change(&mut ledger, address, true, number == EVENTS_PER_SLICE / 2);
        }
    }
    let ending = processor_time();
    writer.snapshot_part(1, part, u64::MAX, &mut columns)?;
    export += processor_time() - ending;
    assert_eq!(exported, block_count, "a cut has all that was live");
    let peak_bytes = resident_bytes() - before_bytes;
    println!(
        "{block_count} blocks of {size_bytes} bytes: {export:.2?} of processor time, longest slice {longest:.2?}; table {:.1} \
         bytes a block, with the snapshot {:.1}; {:.2} bytes a block in the file; {:.0} ns an event",
        table_bytes as f64 / block_count as f64,
        peak_bytes as f64 / block_count as f64,
        writer.written_bytes() as f64 / block_count as f64,
        spent_on_events.as_nanos() as f64 / event_count as f64
    );
    Ok(())
}
