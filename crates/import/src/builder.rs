//! Builder of a trace from another tool's file: stacks, amounts or events, and notices.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufWriter;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_symbols::encode_bundle;
use heapr_trace::{
    Action, Amounts, Course, CourseMoment, CourseRow, Event, HeapId, Module, Notice, Process, ProcessIndex,
    ProcessOrigin, RssSample, SamplingPeriod, Session, StackIndex, StackNode, StackTotals, Summary, System,
    Thread, ThreadIndex, Totals, Trace, TraceWriter, Untold,
};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::locations::{Frame, Locations, Range, Writer};

/// Largest number of moments of a course.
const MOMENTS_MAX: usize = 128;

/// Memory of a stack node in bytes, here and in a reader of the trace.
const NODE_BYTES: usize = 96;

/// Smallest number of events between two checkpoints.
const CHECKPOINT_EVENTS: u64 = 1 << 21;

/// Builder of one trace with one process.
pub(crate) struct TraceBuilder {
    writer: Writer,
    /// File of the trace. It has no name, so that it is deleted when the last user closes it.
    file: File,
    process: ProcessIndex,
    thread: ThreadIndex,
    tool: &'static str,
    budget: Budget,
    locations: Locations,
    nodes: HashMap<(StackIndex, u64), StackIndex>,
    amounts: BTreeMap<StackIndex, Amounts>,
    course: Course,
    /// Second thread, whose frees end no temporary block, as the tool counts them.
    other_thread: Option<ThreadIndex>,
    ledger: Ledger,
    summary: SummaryBuilder,
    event_count: u64,
    since_checkpoint: u64,
    last_ns: u64,
    notes: Vec<String>,
    invalid_count: u64,
    /// Command line of the program, from the file.
    pub(crate) command_line: Vec<String>,
    /// Process id; 0 if unknown.
    pub(crate) pid: u32,
    /// Version of the tool.
    pub(crate) tool_version: String,
    /// Duration of the recording.
    pub(crate) duration_ns: u64,
    /// Wall clock at the start; 0 if unknown.
    pub(crate) start_unix_ns: u64,
    /// Time of the peak.
    pub(crate) peak_time_ns: u64,
    /// Facts about the machine.
    pub(crate) system: System,
    /// Facts that the file lacks.
    pub(crate) untold: Untold,
}

impl TraceBuilder {
    pub(crate) fn new(tool: &'static str, budget: Budget) -> Result<Self> {
        let io = |source| Error::Io { action: "making a file for the trace", source };
        let file = tempfile::tempfile().map_err(io)?;
        let sink = BufWriter::with_capacity(1 << 18, file.try_clone().map_err(io)?);
        let mut writer = TraceWriter::new_sampled(sink)?;
        let process = writer.add_process(process(0, &[]))?;
        let thread = writer.add_thread(any_thread(process))?;
        Ok(Self {
            writer,
            file,
            process,
            thread,
            tool,
            budget,
            locations: Locations::default(),
            nodes: HashMap::new(),
            amounts: BTreeMap::new(),
            course: Course::default(),
            other_thread: None,
            ledger: Ledger::new(),
            summary: SummaryBuilder::new(),
            event_count: 0,
            since_checkpoint: 0,
            last_ns: 0,
            notes: Vec::new(),
            invalid_count: 0,
            command_line: Vec::new(),
            pid: 0,
            tool_version: String::new(),
            duration_ns: 0,
            start_unix_ns: 0,
            peak_time_ns: 0,
            system: System::default(),
            untold: Untold::default(),
        })
    }

    /// Counts bytes that are stored in memory.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        self.budget.keep(bytes)
    }

    /// Invents an address for a call in named frames, the innermost inlined one first.
    pub(crate) fn named(&mut self, module: &str, build_id: &[u8], frames: Vec<Frame>) -> Result<u64> {
        let module = Module { path: module.to_owned(), build_id: build_id.to_vec() };
        // The names count again for frames that are already known.
        let texts: usize = frames.iter().map(|frame| frame.name.len() + frame.file.len() + 64).sum();
        self.budget.keep(texts + module.path.len())?;
        self.locations.named(&mut self.writer, self.process, module, frames)
    }

    /// Records the range in which code of a file was mapped.
    pub(crate) fn mapped(&mut self, module: &str, build_id: &[u8], range: Range) -> Result<bool> {
        let module = Module { path: module.to_owned(), build_id: build_id.to_vec() };
        self.budget.keep(module.path.len() + 128)?;
        self.locations.mapped(&mut self.writer, self.process, module, range)
    }

    /// Stack of a call at `call_avma` in the stack `caller`.
    pub(crate) fn stack(&mut self, caller: StackIndex, call_avma: u64) -> Result<StackIndex> {
        if let Some(&known) = self.nodes.get(&(caller, call_avma)) {
            return Ok(known);
        }
        self.budget.keep(NODE_BYTES)?;
        let return_address_avma = call_avma.saturating_add(1);
        let node = StackNode { parent: caller, process: self.process, return_address_avma, first_seen_ns: 0 };
        let stack = self.writer.add_stack(node)?;
        self.nodes.insert((caller, call_avma), stack);
        Ok(stack)
    }

    /// Stack of these calls, the innermost first.
    pub(crate) fn stack_of(&mut self, calls: &[u64]) -> Result<StackIndex> {
        calls.iter().rev().try_fold(StackIndex::EMPTY, |caller, &call| self.stack(caller, call))
    }

    /// Adds amounts of a stack, for a file without events.
    pub(crate) fn add(&mut self, stack: StackIndex, amounts: &Amounts) {
        *self.amounts.entry(stack).or_default() += amounts;
    }

    /// Adds the live bytes at a moment, with its stacks if they are known. For a file without
    /// events; in order of time.
    pub(crate) fn moment(&mut self, time_ns: u64, live_bytes: u64, rows: Vec<CourseRow>) {
        let moment = CourseMoment { time_ns, live_bytes, rows, ..CourseMoment::default() };
        self.course.moments.push(moment);
        // If there are too many moments, every other one is dropped, first among those without
        // stacks.
        for keeps_stacks in [true, false] {
            if self.course.moments.len() > MOMENTS_MAX {
                let mut number = 0_usize;
                self.course.moments.retain(|moment| {
                    number += 1;
                    number % 2 == 1 || keeps_stacks && !moment.rows.is_empty()
                });
            }
        }
    }

    /// Adds an event at `time_ns`, or just behind the preceding event.
    pub(crate) fn event(&mut self, time_ns: u64, action: Action) -> Result<()> {
        self.event_of(self.thread, time_ns, action)
    }

    /// Adds an event of another thread than the allocating one: its free ends no temporary block.
    pub(crate) fn event_elsewhere(&mut self, time_ns: u64, action: Action) -> Result<()> {
        let thread = match self.other_thread {
            Some(thread) => thread,
            None => self.writer.add_thread(any_thread(self.process))?,
        };
        self.other_thread = Some(thread);
        self.event_of(thread, time_ns, action)
    }

    fn event_of(&mut self, thread: ThreadIndex, time_ns: u64, action: Action) -> Result<()> {
        // Each event has its own time, because the peak must be at one of them.
        self.last_ns = time_ns.max(self.last_ns.saturating_add(1));
        let event = Event { time_ns: self.last_ns, thread, heap: HeapId::MALLOC, action };
        self.ledger.apply(&event, self.process, &mut self.summary);
        self.writer.event(&event)?;
        self.event_count += 1;
        self.since_checkpoint += 1;
        if self.since_checkpoint >= CHECKPOINT_EVENTS.max(16 * self.ledger.live_count() as u64) {
            self.since_checkpoint = 0;
            self.writer.checkpoint(self.last_ns, self.ledger.sorted_blocks())?;
        }
        Ok(())
    }

    /// Adds the resident bytes at a time.
    pub(crate) fn resident(&mut self, time_ns: u64, rss_bytes: u64) -> Result<()> {
        Ok(self.writer.rss_sample(RssSample { time_ns, process: self.process, rss_bytes })?)
    }

    /// Marks the amounts as estimates from samples, `mean_bytes` apart.
    pub(crate) fn sampled_every(&mut self, mean_bytes: u64) -> Result<()> {
        let process = SamplingPeriod::EVERY_PROCESS;
        Ok(self.writer.sampling(SamplingPeriod { process, from_ns: 0, mean_bytes })?)
    }

    /// Adds a sentence for all readers of the trace, without its full stop.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Counts an invalid record at `offset`, which is skipped.
    pub(crate) fn invalid(&mut self, offset: u64) {
        if self.invalid_count == 0 {
            self.note(format!("the first record that makes no sense is at offset {offset}"));
        }
        self.invalid_count += 1;
    }

    /// Finishes the trace and opens it.
    pub(crate) fn finish(mut self) -> Result<Trace> {
        self.writer.update_process(self.process, &process(self.pid, &self.command_line))?;
        self.writer.set_system(&self.system)?;
        self.writer.set_session(&Session {
            name: self.tool.to_owned(),
            heapr_version: format!("{} {}", self.tool, self.tool_version).trim_end().to_owned(),
            command_line: self.command_line.clone(),
            start_unix_ns: self.start_unix_ns,
            ..Session::default()
        })?;
        for text in &self.notes {
            let notice = Notice { process: self.process, time_ns: 0, text: text.clone() };
            self.writer.notice(&notice)?;
        }
        if self.invalid_count > 0 {
            let loss = heapr_trace::Loss { records_invalid: self.invalid_count, ..Default::default() };
            self.writer.loss(Some(self.process), None, loss)?;
        }
        let summary = if self.event_count > 0 {
            let built = std::mem::take(&mut self.summary).finish();
            let duration_ns = self.duration_ns.max(self.last_ns);
            Summary { event_count: self.event_count, duration_ns, ..built }
        } else {
            Summary { course: std::mem::take(&mut self.course), ..self.summary_of_amounts() }
        };
        let tables = std::mem::take(&mut self.locations).tables();
        if !tables.is_empty() {
            self.writer.symbols(&encode_bundle(&tables))?;
        }
        self.writer.finish(&summary)?;
        drop(self.writer);
        Ok(Trace::from_source(Box::new(self.file))?.with_untold(self.untold))
    }

    fn summary_of_amounts(&self) -> Summary {
        let sum: Amounts = self.amounts.values().sum();
        let mut totals = Totals { peak_time_ns: self.peak_time_ns, ..Totals::default() };
        totals.add_amounts(&sum);
        let total = |(&stack, &amounts): (&StackIndex, &Amounts)| StackTotals {
            stack,
            process: self.process,
            heap: HeapId::MALLOC,
            amounts,
        };
        Summary {
            totals,
            by_heap: vec![(self.process, HeapId::MALLOC, totals)],
            by_stack: self.amounts.iter().map(total).collect(),
            event_count: 0,
            duration_ns: self.duration_ns,
            ..Summary::default()
        }
    }
}

/// The one thread of a tool that records no threads.
fn any_thread(process: ProcessIndex) -> Thread {
    Thread { process, tid: 0, name: "all threads".to_owned(), start_ns: 0, end_ns: None }
}

fn process(pid: u32, command_line: &[String]) -> Process {
    Process {
        pid,
        parent_pid: 0,
        origin: ProcessOrigin::Exec,
        start_ns: 0,
        end_ns: None,
        executable: command_line.first().cloned().unwrap_or_default(),
        command_line: command_line.to_vec(),
        exit_status: None,
    }
}
