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

/// Changes of the ledger that wait, and what they took.
struct Changes {
    time_ns: u64,
    /// Events to apply many at a time, like in the recorder.
    waiting: Vec<(Event, ProcessIndex)>,
    spent: Duration,
    event_count: u64,
}

impl Changes {
    fn new() -> Self {
        Self {
            time_ns: 0,
            waiting: Vec::with_capacity(EVENTS_TOGETHER),
            spent: Duration::ZERO,
            event_count: 0,
        }
    }

    fn alloc(&mut self, ledger: &mut Ledger, address_avma: u64, size_bytes: u64) {
        let stack = StackIndex((address_avma / 4096 % 5000) as u32);
        let action = Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false };
        self.push(ledger, address_avma, action);
    }

    fn free(&mut self, ledger: &mut Ledger, address_avma: u64) {
        let action = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
        self.push(ledger, address_avma, action);
    }

    fn push(&mut self, ledger: &mut Ledger, address_avma: u64, action: Action) {
        self.time_ns += 90 + address_avma % 40;
        let event = Event { time_ns: self.time_ns, thread: ThreadIndex(0), heap: HeapId::MALLOC, action };
        self.waiting.push((event, ProcessIndex(0)));
        if self.waiting.len() == EVENTS_TOGETHER {
            self.apply(ledger);
        }
    }

    fn apply(&mut self, ledger: &mut Ledger) {
        let before = std::time::Instant::now();
        ledger.apply_all(&self.waiting, &mut ());
        self.spent += before.elapsed();
        self.event_count += self.waiting.len() as u64;
        self.waiting.clear();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let block_count = numbers.next().transpose()?.unwrap_or(10_000_000);
    let size_bytes = numbers.next().transpose()?.unwrap_or(48);
    let chunk_bytes = (size_bytes + 23).max(32) & !15;
    let mut ledger = Ledger::new();
    let mut changes = Changes::new();
    let address = |number: u64| 0x5555_0000_0010 + number * chunk_bytes;
    let before_bytes = resident_bytes();
    for number in 0..block_count {
        changes.alloc(&mut ledger, address(number), size_bytes);
    }
    changes.apply(&mut ledger);
    for number in (0..block_count / 10).map(|number| number * 7919 % block_count) {
        changes.free(&mut ledger, address(number));
        changes.alloc(&mut ledger, address(number), size_bytes);
    }
    changes.apply(&mut ledger);
    let table_bytes = resident_bytes() - before_bytes;
    let mut writer = TraceWriter::new(io::sink())?;
    let mut random = 7_u64;
    let (export, longest) = export(&mut ledger, &mut writer, block_count, |ledger| {
        for _ in 1..=EVENTS_PER_SLICE / 2 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = address(random % block_count);
            changes.free(ledger, address);
            changes.alloc(ledger, address, size_bytes);
        }
        changes.apply(ledger);
    })?;
    let peak_bytes = resident_bytes() - before_bytes;
    println!(
        "{block_count} blocks of {size_bytes} bytes: {export:.2?} of processor time, longest slice {longest:.2?}; table {:.1} \
         bytes a block, with the snapshot {:.1}; {:.2} bytes a block in the file; {:.0} ns an event",
        table_bytes as f64 / block_count as f64,
        peak_bytes as f64 / block_count as f64,
        writer.written_bytes() as f64 / block_count as f64,
        changes.spent.as_nanos() as f64 / changes.event_count as f64
    );
    Ok(())
}

/// Exports all live blocks, with other events between the slices. Returns the processor time, and
/// that of the longest slice.
fn export(
    ledger: &mut Ledger,
    writer: &mut TraceWriter<io::Sink>,
    block_count: u64,
    mut between: impl FnMut(&mut Ledger),
) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let (mut columns, mut part, mut exported) = (SnapshotColumns::new(), 0, 0_u64);
    let (mut export, mut longest) = (Duration::ZERO, Duration::ZERO);
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
        between(ledger);
    }
    let ending = processor_time();
    writer.snapshot_part(1, part, u64::MAX, &mut columns)?;
    export += processor_time() - ending;
    assert_eq!(exported, block_count, "a cut has all that was live");
    Ok((export, longest))
}
