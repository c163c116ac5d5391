//! Synthetic traces for tests, written by the real writer. Two processes run one program each, with
//! modules at different addresses, so that equal stacks differ in all their addresses.

use heapr_ledger::{Ledger, ProcessEnds, SummaryBuilder};
use heapr_query::{FrameSink, SourceFrame, SymbolSource};
use heapr_trace::{
    Action, Event, HeapId, Mapping, Module, ModuleIndex, Process, ProcessIndex, ProcessOrigin, Snapshot,
    SnapshotColumns, SnapshotTrigger, StackIndex, StackNode, Thread, ThreadIndex, Trace, TraceWriter,
};

/// Module and symbol of each function. A call at `svma = 16 * number + slot` is in function
/// `number`; two slots of a function are two locations in it.
pub(crate) const FUNCTIONS: [(usize, &str); 7] = [
    (0, "main"),
    (0, "load(int)"),
    (1, "grow<int>(int)"),
    (1, "shrink()"),
    (2, "malloc"),
    (2, "operator new(unsigned long)"),
    (1, "calloc"),
];

/// Paths of the modules.
pub(crate) const MODULES: [&str; 3] = ["/opt/app", "/usr/lib/libgrow.so.1.2", "/lib/libc.so.6"];

/// A stack: function and slot of each frame, outermost first.
pub(crate) type Path = Vec<(usize, usize)>;

/// One call of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Alloc { address: u64, size_bytes: u64, path: Path },
    Free { address: u64 },
    Realloc { old_address: u64, address: u64, size_bytes: u64, path: Path },
    Failed { size_bytes: u64 },
}

/// A call with its time and thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) time_ns: u64,
    /// Threads 0 and 1 belong to process 0, thread 2 to process 1.
    pub(crate) thread: u32,
    pub(crate) heap: HeapId,
    pub(crate) call: Call,
}

/// An address that is freed and was never handed out.
pub(crate) const UNKNOWN: u64 = 0xdead_0000;

/// Process ids.
pub(crate) const PIDS: [u32; 2] = [100, 200];

/// The process of a thread.
pub(crate) fn process_of(thread: u32) -> ProcessIndex {
    ProcessIndex(thread / 2)
}

fn base(process: ProcessIndex, module: usize) -> u64 {
    0x1000_0000 * (u64::from(process.0) + 1) + 0x10_0000 * module as u64
}

/// Writes the steps; a checkpoint after every `checkpoint_every` events.
pub(crate) fn trace_of(steps: &[Step], checkpoint_every: usize, has_summary: bool, end_ns: u64) -> Trace {
    trace_of_lives(steps, checkpoint_every, has_summary, end_ns, Lives::Unknown)
}

/// Ends of the two processes in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lives {
    /// The ends were not observed.
    Unknown,
    /// Each ends with its last event.
    End,
    /// Each ends with its last event; the second one was forked from the first right before its
    /// first event.
    Forked,
}

/// Writes the steps of processes with these lives.
pub(crate) fn trace_of_lives(
    steps: &[Step],
    checkpoint_every: usize,
    has_summary: bool,
    end_ns: u64,
    lives: Lives,
) -> Trace {
    let mut bytes = Vec::new();
    write(&mut bytes, steps, checkpoint_every, has_summary, (end_ns, lives)).unwrap();
    Trace::from_source(Box::new(bytes)).unwrap()
}

/// Origin, start and end of a process.
fn life(steps: &[Step], process: ProcessIndex, lives: Lives) -> (ProcessOrigin, u64, Option<u64>) {
    let mut own = steps.iter().filter(|step| process_of(step.thread) == process).map(|step| step.time_ns);
    let (first_ns, last_ns) = (own.next(), own.next_back());
    let end_ns = last_ns.or(first_ns).filter(|_| lives != Lives::Unknown);
    if lives == Lives::Forked && process != ProcessIndex(0) {
        return (ProcessOrigin::Fork { parent: ProcessIndex(0) }, first_ns.unwrap_or(0), end_ns);
    }
    (ProcessOrigin::Exec, 0, end_ns)
}

fn write(
    bytes: &mut Vec<u8>,
    steps: &[Step],
    checkpoint_every: usize,
    has_summary: bool,
    (end_ns, lives): (u64, Lives),
) -> heapr_trace::Result<()> {
    let mut writer = TraceWriter::new(bytes)?;
    let (mut ledger, mut ends) = (Ledger::new(), ProcessEnds::default());
    for (index, pid) in PIDS.into_iter().enumerate() {
        let number = ProcessIndex(index as u32);
        let (origin, start_ns, process_end_ns) = life(steps, number, lives);
        ledger.add_process(number, origin, start_ns);
        if let Some(end_ns) = process_end_ns {
            ends.add(end_ns, number);
        }
        let process = writer.add_process(Process {
            pid,
            parent_pid: 1,
            origin,
            start_ns,
            end_ns: process_end_ns,
            executable: MODULES[0].to_owned(),
            command_line: vec!["app".to_owned()],
            exit_status: None,
        })?;
        for tid in (0..2).filter(|tid| index == 0 || *tid == 0) {
            writer.add_thread(Thread {
                process,
                tid: pid + tid,
                name: format!("worker-{tid}"),
                start_ns: 0,
                end_ns: None,
            })?;
        }
        for (number, path) in MODULES.into_iter().enumerate() {
            let module = writer.add_module(Module { path: path.to_owned(), build_id: vec![number as u8] })?;
            let start_avma = base(process, number);
            writer.add_mapping(Mapping {
                process,
                module,
                start_avma,
                end_avma: start_avma + 0x1_0000,
                bias_avma: start_avma,
                loaded_ns: 0,
                unloaded_ns: u64::MAX,
            })?;
        }
    }
    let mut stacks = Stacks::default();
    let mut summary = SummaryBuilder::new();
    for (number, step) in steps.iter().enumerate() {
        let process = process_of(step.thread);
        let mut stack_of = |path: &Path| stacks.stack(&mut writer, process, path, step.time_ns);
        let action = match &step.call {
            Call::Alloc { address, size_bytes, path } => Action::Alloc {
                address_avma: *address,
                size_bytes: *size_bytes,
                stack: stack_of(path)?,
                is_moved_realloc: false,
            },
            Call::Free { address } => {
                Action::Free { address_avma: *address, stack: StackIndex::EMPTY, is_moved_realloc: false }
            }
            Call::Realloc { old_address, address, size_bytes, path } => Action::Realloc {
                old_address_avma: *old_address,
                address_avma: *address,
                size_bytes: *size_bytes,
                stack: stack_of(path)?,
            },
            Call::Failed { size_bytes } => {
                Action::Failed { size_bytes: *size_bytes, stack: StackIndex::EMPTY }
            }
        };
        let event =
            Event { time_ns: step.time_ns, thread: ThreadIndex(step.thread), heap: step.heap, action };
        writer.event(&event)?;
        while let Some((end_ns, process)) = ends.take_before(event.time_ns) {
            ledger.end_process(process, end_ns, &mut summary);
        }
        ledger.apply(&event, process, &mut summary);
        if (number + 1) % checkpoint_every == 0 {
            writer.checkpoint(step.time_ns, ledger.sorted_blocks())?;
        }
    }
    // The file ends with a snapshot of the live blocks.
    let mut columns = SnapshotColumns::new();
    let live: Vec<_> = ledger.live_blocks().collect();
    live.iter().for_each(|block| columns.push(block));
    writer.snapshot_part(1, 0, end_ns, &mut columns)?;
    writer.snapshot(&Snapshot {
        number: 1,
        time_ns: end_ns,
        event_index: steps.len() as u64,
        name: "end".to_owned(),
        trigger: SnapshotTrigger::Request,
        block_count: live.len() as u64,
        block_bytes: live.iter().map(|block| block.size_bytes).sum(),
        part_count: 1,
        export_ns: 0,
        processes: Vec::new(),
        notes: Vec::new(),
    })?;
    if has_summary {
        let mut summary = summary.finish();
        summary.event_count = steps.len() as u64;
        summary.duration_ns = end_ns;
        writer.finish(&summary)?;
    } else {
        writer.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Stacks {
    known: Vec<(ProcessIndex, Path, StackIndex)>,
}

impl Stacks {
    fn stack<W: std::io::Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessIndex,
        path: &Path,
        time_ns: u64,
    ) -> heapr_trace::Result<StackIndex> {
        let Some((&(function, slot), callers)) = path.split_last() else { return Ok(StackIndex::EMPTY) };
        if let Some((_, _, stack)) = self.known.iter().find(|(of, known, _)| *of == process && known == path)
        {
            return Ok(*stack);
        }
        let parent = self.stack(writer, process, &callers.to_vec(), time_ns)?;
        let svma = 16 * function as u64 + slot as u64;
        let return_address_avma = base(process, FUNCTIONS[function].0) + svma + 1;
        let node = StackNode { parent, process, return_address_avma, first_seen_ns: time_ns };
        let stack = writer.add_stack(node)?;
        self.known.push((process, path.clone(), stack));
        Ok(stack)
    }
}

/// Names of [`FUNCTIONS`]. At slot 1 of `grow`, `calloc` is inlined.
#[derive(Debug, Default)]
pub(crate) struct Names;

/// Function that is inlined at a location, if any.
pub(crate) fn inlined_at(function: usize, slot: usize) -> Option<usize> {
    (function == 2 && slot == 1).then_some(6)
}

impl SymbolSource for Names {
    fn resolve(&mut self, module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>) {
        for (number, svma) in svmas.iter().enumerate() {
            let (function, slot) = ((svma / 16) as usize, (svma % 16) as usize);
            assert_eq!(FUNCTIONS[function].0, module.0 as usize, "{svma:#x} was asked for in another module");
            let frame = |function: usize, is_inlined| SourceFrame {
                symbol: Some(FUNCTIONS[function].1),
                file: Some("source.cc"),
                line: Some(*svma as u32 + 1),
                is_inlined,
            };
            match inlined_at(function, slot) {
                Some(inlined) => sink(number, &[frame(inlined, true), frame(function, false)]),
                None => sink(number, &[frame(function, false)]),
            }
        }
    }
}
