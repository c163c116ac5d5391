//! Measures the cost of writing events: `write_speed FILE [EVENTS] [ROUNDS]`.
//!
//! Reads the first EVENTS (4 million) of a trace into memory, and writes them like the recorder to
//! a file that is discarded. Prints processor time in nanoseconds per event, least and median of
//! ROUNDS (7), and packed bytes per event. Then writes them once more and reads them: the events
//! must be equal, and a second thread must write the same bytes.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use heapr_trace::{ChunkKind, Event, StackIndex, Trace, TraceWriter};

/// Number of events that the recorder passes on together.
const EVENTS_TOGETHER: usize = 256;

type Failure = Box<dyn std::error::Error>;

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes the threads and stacks of `from`, so that no event's are lost, and `events`.
fn write(sink: &mut impl Write, from: &Trace, events: &[Event], is_second: bool) -> Result<(), Failure> {
    let mut writer = TraceWriter::new(sink)?;
    for process in from.processes() {
        writer.add_process(process.clone())?;
    }
    for thread in from.threads() {
        writer.add_thread(thread.clone())?;
    }
    for number in 1..from.stacks().len() {
        let node = from.stacks().node(StackIndex(number as u32)).ok_or("a stack is not there")?;
        writer.add_stack(node)?;
    }
    writer.use_second_thread(is_second);
    for together in events.chunks(EVENTS_TOGETHER) {
        writer.events(together.iter())?;
    }
    Ok(writer.flush()?)
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("write_speed FILE [EVENTS] [ROUNDS]")?;
    let most = words.next().map(|word| word.parse()).transpose()?.unwrap_or(4_000_000);
    let round_count = words.next().map(|word| word.parse()).transpose()?.unwrap_or(7);
    let trace = Trace::open(Path::new(&path))?;
    let mut events = Vec::with_capacity(most);
    let mut batches = trace.events(0, u64::MAX);
    while let Some(batch) = batches.next_batch()?
        && events.len() < most
    {
        events.extend_from_slice(batch);
    }
    let mut times = Vec::new();
    for _ in 0..round_count {
        let begin = processor_time();
        let mut writer = TraceWriter::new(io::sink())?;
        for together in events.chunks(EVENTS_TOGETHER) {
            writer.events(together.iter())?;
        }
        writer.flush()?;
        times.push(processor_time() - begin);
    }
    times.sort_unstable();
    let (mut file, mut of_second) = (Vec::new(), Vec::new());
    write(&mut file, &trace, &events, false)?;
    write(&mut of_second, &trace, &events, true)?;
    if file != of_second {
        return Err("a second thread writes something else".into());
    }
    let kept = std::env::temp_dir().join(format!("write_speed-{}.heapr", std::process::id()));
    std::fs::write(&kept, &file)?;
    let again = Trace::open(&kept);
    std::fs::remove_file(&kept)?;
    let again = again?;
    let (mut at, mut batches) = (0, again.events(0, u64::MAX));
    while let Some(batch) = batches.next_batch()? {
        if events.get(at..at + batch.len()) != Some(batch) {
            return Err("other events are read than were written".into());
        }
        at += batch.len();
    }
    if at != events.len() {
        return Err("not all events are read".into());
    }
    let chunks = again.chunks().iter().filter(|chunk| chunk.kind == Some(ChunkKind::Events));
    let packed_bytes: u64 = chunks.map(|chunk| u64::from(chunk.stored_bytes)).sum();
    let each = |total: f64| total / events.len().max(1) as f64;
    let ns = |time: Option<&Duration>| each(time.map_or(0.0, |time| time.as_nanos() as f64));
    println!(
        "{:5.2} {:5.2} ns, {:.3} bytes an event",
        ns(times.first()),
        ns(times.get(times.len() / 2)),
        each(packed_bytes as f64)
    );
    Ok(())
}
