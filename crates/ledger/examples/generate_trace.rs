//! Writes a trace with a given number of events, through the real ledger and writer:
//! `generate_trace FILE EVENTS`.
//!
//! The imaginary program has two threads, 2,000 stacks of up to 24 frames and 200,000 live blocks.
//! Most blocks die young, and addresses are reused as by an allocator.

use std::path::Path;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_trace::{
    Action, Event, HeapId, Process, ProcessIndex, ProcessOrigin, Result, Session, StackIndex, StackNode,
    Summary, System, Thread, ThreadIndex, TraceWriter,
};

/// Number of live blocks once the heap has its full size.
const LIVE_COUNT: usize = 200_000;
/// Number of events between two checkpoints, as in the recorder.
const CHECKPOINT_EVENTS: u64 = 16 * LIVE_COUNT as u64;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, count] = &words[..] else { return Err("usage: generate_trace FILE EVENTS".into()) };
    generate(Path::new(file), count.parse()?)?;
    Ok(())
}

/// xorshift64: the same trace each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

fn generate(file: &Path, event_count: u64) -> Result<()> {
    let mut writer = TraceWriter::create(file, true)?;
    writer.set_system(&System::default())?;
    writer.set_session(&Session {
        name: "generated".to_owned(),
        clock: "tsc".to_owned(),
        ..Session::default()
    })?;
    let process = writer.add_process(Process {
        pid: 1,
        parent_pid: 0,
        origin: ProcessOrigin::Exec,
        start_ns: 0,
        end_ns: None,
        executable: "/generated".to_owned(),
        command_line: vec!["generated".to_owned()],
        exit_status: None,
    })?;
    for tid in 1..=2 {
        writer.add_thread(Thread {
            process,
            tid,
            name: format!("thread {tid}"),
            start_ns: 0,
            end_ns: None,
        })?;
    }
    let mut random = Random(88_172_645_463_325_252);
    let stacks = stacks(&mut writer, process, &mut random)?;
    let mut ledger = Ledger::new();
    let mut summary = SummaryBuilder::new();
    let mut live: Vec<u64> = Vec::new();
    let mut free: Vec<u64> = Vec::new();
    let mut fresh_avma = 0x5555_0000_0000;
    let (mut time_ns, mut since_checkpoint) = (0, 0);
    for _ in 0..event_count {
        time_ns += 20 + random.below(60);
        let is_free = !live.is_empty()
            && random.below((LIVE_COUNT * 2) as u64) < (live.len() as u64).min(LIVE_COUNT as u64 * 2);
        let action = if is_free {
            // Nine of ten frees concern one of the last 64 blocks.
            let young = if random.below(10) == 0 { live.len() } else { live.len().min(64) };
            let place = live.len() - 1 - random.below(young as u64) as usize;
            let address_avma = live.swap_remove(place);
            free.push(address_avma);
            Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false }
        } else {
            let address_avma = free.pop().unwrap_or_else(|| {
                fresh_avma += 96;
                fresh_avma
            });
            live.push(address_avma);
            let stack = stacks[random.below(stacks.len() as u64) as usize];
            let size_bytes = 8 + random.below(11) * 8;
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }
        };
        let thread = ThreadIndex((time_ns >> 12 & 1) as u32);
        let event = Event { time_ns, thread, heap: HeapId::MALLOC, action };
        ledger.apply(&event, process, &mut summary);
        writer.event(&event)?;
        since_checkpoint += 1;
        if since_checkpoint >= CHECKPOINT_EVENTS {
            since_checkpoint = 0;
            writer.checkpoint(time_ns, ledger.sorted_blocks())?;
        }
    }
    let summary = Summary { event_count, duration_ns: time_ns, ..summary.finish() };
    writer.finish(&summary)
}

/// Leaves of a tree of call paths.
fn stacks<W: std::io::Write>(
    writer: &mut TraceWriter<W>,
    process: ProcessIndex,
    random: &mut Random,
) -> Result<Vec<StackIndex>> {
    let mut nodes = vec![(StackIndex::EMPTY, 0)];
    while nodes.len() < 2_001 {
        // The newest nodes are the likeliest parents, which makes deep stacks.
        let near = random.below(nodes.len().min(40) as u64) as usize;
        // A path that is deep enough is followed by one that begins at the root.
        let (parent, depth) =
            nodes.get(nodes.len() - 1 - near).filter(|&&(_, depth)| depth < 24).unwrap_or(&nodes[0]);
        let (parent, depth) = (*parent, *depth);
        let return_address_avma = 0x40_0000 + random.below(50_000) * 8;
        let stack = writer.add_stack(StackNode { parent, process, return_address_avma, first_seen_ns: 0 })?;
        nodes.push((stack, depth + 1));
    }
    Ok(nodes.into_iter().skip(1).map(|(stack, _)| stack).collect())
}
