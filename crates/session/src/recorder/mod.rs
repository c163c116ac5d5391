//! The recorder: rounds of scan, merge, translate, free.
//!
//! ```text
//! T0 = now
//! scan       claimed buffers and how far each is published; new processes, threads, nodes
//! watermark  W = T0 - 50 µs, but not beyond a thread that is in the middle of an event
//! merge      the records up to W, by time, through translate into the sink
//! free       buffers that are used up; wake agents that wait
//! ```

pub(crate) mod called_stacks;
pub(crate) mod clock;
pub(crate) mod common_records;
pub(crate) mod made_code;
mod made_objects;
mod map_folders;
pub(crate) mod merge;
pub(crate) mod module_files;
pub(crate) mod module_image;
pub(crate) mod own_heaps;
pub(crate) mod own_ranges;
pub(crate) mod pool_growth;
mod process_ends;
pub(crate) mod process_facts;
mod process_life;
pub(crate) mod process_state;
pub(crate) mod process_tree;
pub(crate) mod sink;
pub(crate) mod spare_time;
pub(crate) mod statistics;
pub(crate) mod system_facts;
pub(crate) mod target_view;
pub(crate) mod translate;

mod attach_hold;
pub(crate) mod earlier_blocks;
pub(crate) mod go;
mod go_children;
mod go_notes;
mod going_on;
pub(crate) mod graph_snapshots;
mod housekeeping;
pub(crate) mod inside;
mod inside_notes;
pub(crate) mod memory;
pub(crate) mod memory_look;
mod next_file;
mod samples;
mod scan;
mod snapshots;
mod unseen_exec;
mod watermark;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use heapr_ring::{Pool, reader, writer};
use heapr_trace::{Amounts, EqualBlocks, Loss, ProcessIndex, Thread};
use heapr_wire::DisableReason;

use self::attach_hold::HeldProcesses;
use self::snapshots::Snapshots;
use crate::recorder::clock::Clock;
use crate::recorder::inside::Looked;
use crate::recorder::merge::Stream;
use crate::recorder::own_ranges::AgentMemory;
use crate::recorder::pool_growth::PoolGrowth;
use crate::recorder::process_state::ProcessState;
use crate::recorder::sink::Sink;
use crate::recorder::statistics::{Statistics, ThreadCounters};
use crate::{ProcessStatus, Progress};

/// Time after which an event is either visible to the recorder, or its thread was seen to be busy.
/// Store buffers drain within a microsecond; 50 µs is a wide margin.
const SLACK_NS: u64 = 50_000;
/// Fraction of the buffers (one in `MAY_WAIT`) that may be in use before the recorder hurries. One
/// eighth of the default 64 MiB holds 700,000 events of 12 bytes, which take 40 ms when a program
/// has ended. With half of the buffers, and events of 20 bytes, a program of half a second took a
/// tenth longer in all. With a twelfth redis waited for 0.32 s of 3.9, with an eighth 0.25, with a
/// quarter 0.21; stress took 0.48, 0.46 and 0.52 s.
const MAY_WAIT: usize = 8;
/// Number of events after which the buffers read so far (about twelve) are freed within a round.
/// They are used again while they are still in the caches. Freed only at the end of a round of
/// hundreds of buffers, they forced as many new ones to be faulted in.
const SLICE_EVENTS: u64 = 1 << 16;
/// Slice while the buffers are mostly free: about 20 µs, after each of which the recorder yields
/// the processor. Without the yield the kernel would let others wait for a millisecond or more.
/// Node, whose threads wake each other all the time: 0.94 s without yields, 0.88 s with 500 and
/// with 250 events (27 rounds). With 2,000 events: 0.09 s less once, and no less in two series of
/// 15.
const POLITE_SLICE_EVENTS: u64 = 500;
/// Slice while a snapshot is taken and the recorder's time is shared: half a millisecond's work.
const SHARED_SLICE_EVENTS: u64 = 1 << 14;
/// Interval between two readings of the threads and processes: liveness, names, sizes.
const HOUSEKEEPING_NS: u64 = 100_000_000;
/// Number of threads above which ended threads are also looked for between two housekeepings. Where
/// thousands end at once, their slots are then reused before as many pages of slots are touched.
const STREAMS_MANY: usize = 256;
const STREAM_LOOK_NS: u64 = 40_000;
/// Largest factor by which [`HOUSEKEEPING_NS`] grows in a sampling session, which is left running.
/// The interval is a twentieth of the session's age up to that limit. Ten processes read ten times
/// a second took 1.7 % of a processor, of which next to nothing was samples.
const HOUSEKEEPING_SELDOM: u64 = 10;
const HOUSEKEEPING_PART_OF_AGE: u64 = 20;
/// Housekeeping interval while a thread waits for a buffer: an ended process may hold one.
const HOUSEKEEPING_IN_NEED_NS: u64 = 10_000_000;

/// Reads the pool and feeds the sink.
#[derive(Debug)]
pub(crate) struct Recorder {
    pool: Pool,
    pub(crate) growth: PoolGrowth,
    clock: Clock,
    pub(crate) sink: Sink,
    processes: Vec<ProcessState>,
    /// (slot, generation) of a live process -> its index in `processes`.
    process_by_slot: HashMap<(u32, u32), usize>,
    /// (slot, generation) -> process id in our namespace, where it is known.
    outer_pids: HashMap<(u32, u32), u32>,
    held: HeldProcesses,
    streams: Vec<Stream>,
    stream_by_slot: HashMap<(u32, u32), usize>,
    threads: Vec<ThreadState>,
    heads: Vec<(u64, usize)>,
    places: Vec<usize>,
    statistics: Statistics,
    next_housekeeping_ns: u64,
    next_thread_look_ns: u64,
    is_final: bool,
    /// True while a thread in spare time runs the recorder; see [`spare_time`].
    is_lent: bool,
    snapshots: Snapshots,
    /// Embedded allocators found in processes and not written to the file yet.
    pub(crate) looked: Vec<Looked>,
    /// Time up to which all events have been read.
    watermark_ns: u64,
    /// True if the last round read everything up to the moment of a requested cut.
    is_at_cut: bool,
}

/// Result of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Number of events read.
    pub(crate) event_count: u64,
    /// True if everything that the scan found was read, up to the watermark.
    pub(crate) is_whole: bool,
}

/// Entry of a thread in the file, as it was last written.
#[derive(Debug)]
struct ThreadState {
    entry: Thread,
    process: usize,
    /// Thread id in our namespace; the entry has the thread's own id for itself.
    outer_tid: u32,
}

impl Recorder {
    pub(crate) fn new(pool: Pool, growth: PoolGrowth, clock: Clock, sink: Sink) -> Self {
        Self {
            pool,
            growth,
            clock,
            sink,
            processes: Vec::new(),
            process_by_slot: HashMap::new(),
            outer_pids: HashMap::new(),
            held: HeldProcesses::default(),
            streams: Vec::new(),
            stream_by_slot: HashMap::new(),
            threads: Vec::new(),
            heads: Vec::new(),
            places: Vec::new(),
            statistics: Statistics::default(),
            next_housekeeping_ns: 0,
            next_thread_look_ns: 0,
            is_final: false,
            is_lent: false,
            snapshots: Snapshots::default(),
            looked: Vec::new(),
            watermark_ns: 0,
            is_at_cut: false,
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Number of live traced processes.
    pub(crate) fn live_process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.has_ended).count()
    }

    /// Progress of the recording.
    pub(crate) fn progress(&self) -> Progress {
        let totals = self.sink.summary.totals();
        let (live_bytes, live_count) = self.sink.summary.live();
        let equal = self.estimates();
        Progress {
            event_count: self.sink.event_count,
            live_bytes,
            live_bytes_plus_minus: equal.half_of_bytes(live_bytes, live_count),
            peak_bytes: totals.peak_bytes,
            peak_bytes_plus_minus: equal.half_of_bytes(totals.peak_bytes, totals.peak_count),
        }
    }

    /// Number of process images seen so far.
    pub(crate) fn process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.is_superseded).count()
    }

    /// Whether a live process belongs to the session.
    pub(crate) fn knows(&self, pid: u32) -> bool {
        self.processes.iter().any(|process| process.pid == pid && !process.has_ended)
    }

    /// Whether a process is being recorded: known, alive, and with an agent that has not given up.
    pub(crate) fn records(&self, pid: u32) -> bool {
        self.processes.iter().any(|process| process.pid == pid && self.is_recorded(process))
    }

    /// Whether a process was seen, by the id under which its starter knows it.
    pub(crate) fn has_started(&self, child_pid: u32) -> bool {
        self.processes.iter().any(|process| process.child_pid == child_pid)
    }

    /// [`Self::records`] for one process.
    fn is_recorded(&self, process: &ProcessState) -> bool {
        let slot = self.pool.process_slot(process.slot);
        let is_disabled = slot.is_some_and(|slot| {
            slot.generation.load(Relaxed) == process.generation
                && slot.state.load(Relaxed) == heapr_wire::PROCESS_DISABLED
        });
        !process.has_ended && !process.is_done && !is_disabled
    }

    /// Estimates of the error of live amounts, from sums alone: the ledger keeps no more.
    pub(crate) fn estimates(&self) -> EqualBlocks {
        self.sink.summary.sampling().map_or_else(EqualBlocks::default, EqualBlocks::of)
    }

    /// Status of the newest process images, live ones first.
    pub(crate) fn process_statuses(&self, most: usize) -> Vec<ProcessStatus> {
        let equal = self.estimates();
        let mut live: HashMap<ProcessIndex, Amounts> = HashMap::new();
        for (process, _, totals) in self.sink.summary.by_heap() {
            *live.entry(process).or_default() += &totals.amounts();
        }
        let alive = self.processes.iter().rev().filter(|process| !process.has_ended);
        let ended = self.processes.iter().rev().filter(|process| process.has_ended && !process.is_superseded);
        let status = |process: &ProcessState| {
            let slot = self.pool.process_slot(process.slot);
            let slot =
                slot.filter(|slot| !process.has_ended && slot.generation.load(Relaxed) == process.generation);
            let reason = slot.map_or(0, |slot| slot.disable_reason.load(Relaxed));
            let live = live.get(&process.index).copied().unwrap_or_default();
            let list_avma = slot.map_or(0, |slot| slot.own_mappings_avma.load(Relaxed));
            let agent = (list_avma != 0).then(|| AgentMemory::of(process.pid, list_avma)).flatten();
            ProcessStatus {
                pid: process.pid,
                executable: process.executable.clone(),
                name: process.entry.as_ref().map_or("", heapr_trace::Process::name).to_owned(),
                // Housekeeping may not have seen the end of the process yet.
                is_alive: !process.has_ended && heapr_proc::is_alive(process.pid),
                disabled: DisableReason::from_number_untrusted(reason)
                    .filter(|&reason| reason != DisableReason::None)
                    .map(|reason| disable_text(reason).to_owned()),
                live_count: live.outstanding_count,
                live_count_plus_minus: equal.half_of_count(live.outstanding_count, live.outstanding_bytes),
                live_bytes: live.outstanding_bytes,
                live_bytes_plus_minus: equal.half_of_bytes(live.outstanding_bytes, live.outstanding_count),
                own_bytes: if process.has_ended { 0 } else { own_bytes(process.pid, agent.as_ref()) },
                agent_mapping_count: agent.map(|agent| agent.mapping_count),
                agent_mapped_bytes: agent.map(|agent| agent.mapped_bytes),
                agent_resident_bytes: agent.and_then(|agent| agent.resident_bytes),
            }
        };
        alive.chain(ended).take(most).map(status).collect()
    }

    /// Notes that the recorder is lent for a turn in spare time, or has come back.
    pub(crate) fn note_lent(&mut self, is_lent: bool) {
        self.is_lent = is_lent;
        self.statistics.spare_turns += u64::from(is_lent);
    }

    /// Whether the buffers are filling up, a thread waits for one, or a snapshot is due.
    pub(crate) fn is_wanted_now(&self) -> bool {
        let control = self.pool.control();
        let claimed_count = control.buffers_claimed.load(Relaxed) as usize;
        claimed_count >= self.pool.limit_count() / MAY_WAIT
            || writer::is_to_be_opened(&self.pool, claimed_count)
            || control.waiter_count.load(Relaxed) != 0
            || self.has_snapshots_to_take()
    }

    /// Runs one round. While a snapshot is taken the round is short, and the snapshot has its turn
    /// after it. Returns the number of events read.
    pub(crate) fn round(&mut self) -> u64 {
        if self.sink.has_snapshot() && !self.is_final {
            let began = Instant::now();
            return self.round_while(SHARED_SLICE_EVENTS, |_| began.elapsed() < snapshots::SLICE).event_count;
        }
        let slice_events = if self.is_wanted_now() { SLICE_EVENTS } else { POLITE_SLICE_EVENTS };
        let let_others_run = |recorder: &Self| {
            if !recorder.is_wanted_now() {
                std::thread::yield_now();
            }
            true
        };
        self.round_while(slice_events, let_others_run).event_count
    }

    /// Runs a round in slices of about `slice_events`. The round ends early if `goes_on` returns
    /// false after a slice; the next round reads the rest.
    pub(crate) fn round_while(&mut self, slice_events: u64, goes_on: impl Fn(&Self) -> bool) -> Round {
        let before = self.sink.event_count;
        let now_ticks = self.clock.now_ticks();
        let now_ns = self.clock.now_ns();
        // Processes that came and went since the last round are found before their liveness is
        // checked.
        self.find_processes();
        self.look_at_lives(now_ns);
        self.note_ends();
        let claimed_count = self.scan();
        reader::note_claimed(&self.pool, claimed_count);
        self.growth.follow(&self.pool, claimed_count as usize, now_ns);
        let is_behind = claimed_count as usize >= self.pool.limit_count() / MAY_WAIT;
        // A thread started while the recorder is lent would inherit the lowest priority for good.
        self.sink.writer.use_second_thread(is_behind && !self.is_lent && self.sink.keeps_events());
        self.statistics.buffers_claimed_max =
            self.statistics.buffers_claimed_max.max(u64::from(claimed_count));
        self.clock.anchor();
        self.count_ends();
        let watermark = if self.is_final { u64::MAX } else { self.watermark(now_ticks, now_ns) };
        // Read after the time: the thread that requests a cut stands still until the cut is set.
        let cut_ticks = self.cut_ticks();
        let is_at_cut = cut_ticks.is_some_and(|cut_ticks| cut_ticks <= watermark);
        let watermark = watermark.min(cut_ticks.unwrap_or(u64::MAX));
        let is_whole = loop {
            let is_all = self.merge(watermark, slice_events);
            let freed_count = self.free_used_up();
            reader::finish_slice(&self.pool, freed_count);
            if is_all || !goes_on(self) {
                break is_all;
            }
        };
        self.watermark_ns = match (is_whole, self.is_final) {
            // More events with the time of the last one may still come.
            (false, _) => self.watermark_ns.max(self.sink.last_ns.saturating_sub(1)),
            (true, true) => now_ns,
            (true, false) => self.clock.ns(watermark).min(now_ns),
        };
        self.is_at_cut = is_at_cut && is_whole;
        self.sink.checkpoint_if_due();
        if self.sink.steering.is_some() {
            self.tell_unmarked();
            self.steer(now_ns);
        }
        let has_waiters = self.pool.control().waiter_count.load(Relaxed) != 0;
        let interval_ns = self.housekeeping_interval_ns(now_ns);
        let early_ns = if has_waiters { interval_ns - HOUSEKEEPING_IN_NEED_NS } else { 0 };
        self.look_at_go(now_ns);
        self.look_at_children_of_go(now_ns);
        if now_ns + early_ns >= self.next_housekeeping_ns {
            self.next_housekeeping_ns = now_ns + interval_ns;
            let freed_count = self.keep_house(now_ns);
            reader::note_ends_looked_for(&self.pool);
            reader::finish_slice(&self.pool, freed_count);
        } else if self.streams.len() > STREAMS_MANY && now_ns >= self.next_thread_look_ns {
            self.next_thread_look_ns = now_ns + self.streams.len() as u64 * STREAM_LOOK_NS;
            self.look_at_threads(now_ns);
        }
        Round { event_count: self.sink.event_count - before, is_whole }
    }

    fn housekeeping_interval_ns(&self, now_ns: u64) -> u64 {
        match self.sink.steering {
            None => HOUSEKEEPING_NS,
            Some(_) => (now_ns / HOUSEKEEPING_PART_OF_AGE)
                .clamp(HOUSEKEEPING_NS, HOUSEKEEPING_NS * HOUSEKEEPING_SELDOM),
        }
    }

    /// Reads everything that was published, even from threads that are in the middle of an event.
    pub(crate) fn drain(&mut self) {
        self.is_final = true;
        self.round();
        // Requested snapshots are of live processes: taken before these count as ended.
        self.request_last_snapshot();
        self.finish_snapshots();
        let now_ns = self.clock.now_ns();
        self.look_at_go(u64::MAX);
        self.keep_house(now_ns);
        for place in 0..self.processes.len() {
            self.end_process(place, now_ns);
        }
    }

    /// Ends the recording: reads everything that was published and tells the agents.
    pub(crate) fn close(&mut self) {
        reader::close_session(&self.pool);
        self.drain();
        while !self.streams.is_empty() {
            let last = self.streams.len() - 1;
            self.retire_stream(last);
        }
        self.finish_snapshots();
        let loss = self.statistics().loss;
        if self.tell_losses(loss) {
            return;
        }
        let whole = Loss { events_lost: 0, stacks_lost: 0, ..loss };
        if whole != Loss::default() {
            let outcome = self.sink.writer.loss(None, None, whole);
            self.sink.keep(outcome);
        }
    }

    /// Finishes the file.
    pub(crate) fn finish(
        mut self,
        duration_ns: u64,
        statistics: Statistics,
    ) -> (heapr_trace::Summary, Option<heapr_trace::Error>) {
        self.write_statistics(statistics);
        self.sink.finish(duration_ns)
    }

    /// Writes the counters of the recording so far.
    fn write_statistics(&mut self, statistics: Statistics) {
        let named = [
            ("buffers_written", statistics.buffers_written),
            ("buffers_claimed_max", statistics.buffers_claimed_max),
            ("wait_count", statistics.wait_count),
            ("wait_ns", statistics.wait_ns),
            ("stacks_unwound", statistics.stack_count),
            ("frames_unwound", statistics.frames_unwound),
            ("rules_read", statistics.rule_miss_count),
            ("turns_in_spare_time", statistics.spare_turns),
            ("stacks_truncated", statistics.stacks_truncated),
            ("stacks_verified", statistics.verify_count),
            ("stacks_verified_mismatches", statistics.verify_mismatch_count),
        ];
        for (name, value) in named {
            let outcome = self.sink.writer.statistic(name, value);
            self.sink.keep(outcome);
        }
        if self.snapshots_left_out() > 0 {
            let outcome = self.sink.writer.statistic("snapshots_left_out", self.snapshots_left_out());
            self.sink.keep(outcome);
        }
    }

    /// Flushes the file, so that everything so far is readable after a crash.
    pub(crate) fn flush(&mut self) {
        self.sink.flush();
    }

    /// Returns the counters of the session so far, of live and ended threads.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        for stream in &self.streams {
            let Some(slot) = self.pool.thread_slot(stream.slot) else { continue };
            if slot.generation.load(Relaxed) != stream.generation {
                continue;
            }
            statistics.add_thread(ThreadCounters::read(slot));
        }
        let control = self.pool.control();
        statistics.loss.processes_refused = u64::from(control.processes_refused.load(Relaxed));
        statistics
    }
}

/// Bytes that a process has in memory or swap without a file, less those of its agent.
fn own_bytes(pid: u32, agent: Option<&AgentMemory>) -> u64 {
    let counters = heapr_proc::ResidentCounters::of_process(pid);
    let all = counters.map_or(0, |counters| counters.anonymous_bytes.saturating_add(counters.swapped_bytes));
    all.saturating_sub(agent.and_then(|agent| agent.resident_bytes).unwrap_or(0))
}

fn disable_text(reason: DisableReason) -> &'static str {
    match reason {
        DisableReason::None => "",
        DisableReason::SessionClosed => "the session was closed",
        DisableReason::RecorderDied => "the recorder was thought dead",
        DisableReason::BadPool => "its shared buffers belong to another build of heapr",
        DisableReason::PoolOverwritten => {
            "something in one of the session's processes writes over heapr's shared buffers"
        }
        DisableReason::NoProcessSlot => "too many processes were traced",
        DisableReason::NoMemory => "it had no memory for the agent",
        DisableReason::NotFollowed => "children are not followed",
        DisableReason::NoAllocator => "its allocator's functions were not found",
        DisableReason::LetGo => "it was let go",
        DisableReason::Sanitizer => "it is built with a sanitizer, which must come before the agent",
        DisableReason::NotVisible => {
            "where it runs, the agent's file or the recorder is not seen (another root directory, mounts or user)"
        }
        DisableReason::Static => "it is statically linked, so nothing can be loaded into it",
        DisableReason::OtherProcessor => "it is for another processor than x86-64",
        DisableReason::Forbidden => "it has forbidden itself what recording needs (seccomp, or PR_SET_TSC)",
    }
}
