//! Measures the processor time of the parts of recording, on the events of a trace: `replay_speed
//! FILE [EVENTS] [ROUNDS]`.
//!
//! Reads the first EVENTS (8 million) into memory. Passes them, like the recorder, to the ledger
//! with its summary, and to the columns and the compressor of a file that is discarded. Prints
//! nanoseconds per event for each, and for the table of live blocks without the summary: least and
//! median of ROUNDS (5) rounds.

use std::io;
use std::path::Path;
use std::time::Duration;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_trace::{Event, ProcessIndex, Trace, TraceWriter};

/// Number of events that the recorder passes on together.
const EVENTS_TOGETHER: usize = 256;

/// Processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("replay_speed FILE [EVENTS] [ROUNDS]")?;
    let most = words.next().map(|word| word.parse()).transpose()?.unwrap_or(8_000_000);
    let round_count = words.next().map(|word| word.parse()).transpose()?.unwrap_or(5);
    let reader = Trace::open(Path::new(&path))?;
    let mut events: Vec<(Event, ProcessIndex)> = Vec::with_capacity(most);
    let mut batches = reader.events(0, u64::MAX);
    while let Some(batch) = batches.next_batch()?
        && events.len() < most
    {
        events.extend(batch.iter().map(|event| (*event, reader.process_of(event.thread))));
    }
    let mut tables = Vec::new();
    let mut alone = Vec::new();
    let mut files = Vec::new();
    for _ in 0..round_count {
        let begin = processor_time();
        let mut ledger = Ledger::new();
        let mut summary = SummaryBuilder::new();
        for (index, process) in reader.processes().iter().enumerate() {
            ledger.add_process(ProcessIndex(index as u32), process.origin, process.start_ns);
        }
        for together in events.chunks(EVENTS_TOGETHER) {
            ledger.apply_all(together, &mut summary);
        }
        let totals = summary.totals();
        tables.push(processor_time() - begin);
        std::hint::black_box(totals);
        let begin = processor_time();
        let mut ledger = Ledger::new();
        for together in events.chunks(EVENTS_TOGETHER) {
            ledger.apply_all(together, &mut ());
        }
        alone.push(processor_time() - begin);
        std::hint::black_box(ledger.live_count());
        let begin = processor_time();
        let mut writer = TraceWriter::new(io::sink())?;
        for together in events.chunks(EVENTS_TOGETHER) {
            writer.events(together.iter().map(|(event, _)| event))?;
        }
        writer.flush()?;
        files.push(processor_time() - begin);
    }
    for (name, mut times) in [("ledger", tables), ("table", alone), ("file", files)] {
        times.sort_unstable();
        let each = |time: Duration| time.as_nanos() as f64 / events.len() as f64;
        println!("{name:>6}: {:6.1} {:6.1} ns an event", each(times[0]), each(times[times.len() / 2]));
    }
    Ok(())
}
