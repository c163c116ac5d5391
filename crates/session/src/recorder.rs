//! The recorder: rounds of scan, merge, translate, free.
//!
//! ```text
//! T0 = now
//! scan       claimed buffers and how far each is published; new processes, threads, nodes
//! watermark  W = T0 - 50 µs, but not beyond a thread that is in the middle of an event
//! merge      the records up to W, by time, through translate into the sink
//! free       buffers that are used up; wake agents that wait
//! ```

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::Pool;
use heapr_ring::reader::{self, ClaimedBuffer, Content};
use heapr_trace::{Loss, Process, ProcessIndex, ProcessOrigin, Thread, ThreadIndex};
use heapr_wire::{
    NO_SLOT, ORIGIN_FORK, PROCESS_DISABLED, PROCESS_FREE, PROCESS_LIVE, PROCESS_SLOT_COUNT, THREAD_ENDED,
    THREAD_FREE,
};

use crate::clock::Clock;
use crate::merge::{Stream, StreamBuffer, order, record_words};
use crate::process_facts;
use crate::process_state::ProcessState;
use crate::sink::Sink;
use crate::translate::{Outcome, Record, translate};

/// An event with an earlier time is published, or its thread was seen to be busy: stores reach other processors in far
/// less (store buffers drain within a microsecond; 50 is a wide margin).
const SLACK_NS: u64 = 50_000;
/// A thread that is in the middle of an event for longer is stopped or starved: the others no longer wait for it.
const BUSY_MAX_NS: u64 = 200_000_000;
/// Threads and processes are looked at this often: whether they live, what they are called, how large they are.
const HOUSEKEEPING_NS: u64 = 100_000_000;

/// Counters over the whole session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Event buffers taken to their end.
    pub buffers_written: u64,
    /// Most buffers in use at once.
    pub buffers_claimed_max: u64,
    /// Times that a thread waited for a buffer.
    pub wait_count: u64,
    /// How long in all, ns.
    pub wait_ns: u64,
    /// Stacks that were not the thread's last one.
    pub stack_count: u64,
    /// Frames unwound for them.
    pub frames_unwound: u64,
    /// Unwind rules read from unwind tables.
    pub rule_miss_count: u64,
    /// Stacks that ended before the outermost frame.
    pub stacks_truncated: u64,
    /// Stacks compared with a full unwind.
    pub verify_count: u64,
    /// How many of them differed.
    pub verify_mismatch_count: u64,
    /// What was lost.
    pub loss: Loss,
}

/// Reads the pool and feeds the sink.
#[derive(Debug)]
pub(crate) struct Recorder {
    pool: Pool,
    clock: Clock,
    pub(crate) sink: Sink,
    processes: Vec<ProcessState>,
    /// (slot, generation) of a live process -> its place in `processes`.
    process_by_slot: HashMap<(u32, u32), usize>,
    /// (slot, generation) -> process id as we see it, where it is known.
    outer_pids: HashMap<(u32, u32), u32>,
    streams: Vec<Stream>,
    stream_by_slot: HashMap<(u32, u32), usize>,
    threads: Vec<ThreadState>,
    heads: Vec<((u64, bool), usize)>,
    places: Vec<usize>,
    statistics: Statistics,
    next_housekeeping_ns: u64,
    is_final: bool,
}

/// A thread's entry in the file, and what was last told of it.
#[derive(Debug)]
struct ThreadState {
    entry: Thread,
    process: usize,
    /// Its id as we see it; that in the entry is its own.
    outer_tid: u32,
}

impl Recorder {
    pub(crate) fn new(pool: Pool, clock: Clock, sink: Sink) -> Self {
        Self {
            pool,
            clock,
            sink,
            processes: Vec::new(),
            process_by_slot: HashMap::new(),
            outer_pids: HashMap::new(),
            streams: Vec::new(),
            stream_by_slot: HashMap::new(),
            threads: Vec::new(),
            heads: Vec::new(),
            places: Vec::new(),
            statistics: Statistics::default(),
            next_housekeeping_ns: 0,
            is_final: false,
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Live traced processes.
    pub(crate) fn live_process_count(&self) -> usize {
        self.processes.iter().filter(|process| !process.has_ended).count()
    }

    /// Images seen so far.
    pub(crate) fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// One round. Returns the number of events taken.
    pub(crate) fn round(&mut self) -> u64 {
        let before = self.sink.event_count;
        let now_ticks = self.clock.now_ticks();
        let now_ns = self.clock.now_ns();
        self.note_ends();
        self.find_processes();
        let claimed_count = self.scan();
        self.clock.anchor();
        let watermark = if self.is_final { u64::MAX } else { self.watermark(now_ticks, now_ns) };
        self.merge(watermark);
        let freed_count = self.free_used_up();
        reader::finish_round(&self.pool, claimed_count.saturating_sub(freed_count), freed_count > 0);
        self.statistics.buffers_claimed_max =
            self.statistics.buffers_claimed_max.max(u64::from(claimed_count));
        self.sink.checkpoint_if_due();
        if now_ns >= self.next_housekeeping_ns {
            self.next_housekeeping_ns = now_ns + HOUSEKEEPING_NS;
            self.keep_house(now_ns);
        }
        self.sink.event_count - before
    }

    /// Takes everything that was published, whoever was interrupted in whatever.
    pub(crate) fn drain(&mut self) {
        self.is_final = true;
        self.round();
        let now_ns = self.clock.now_ns();
        self.keep_house(now_ns);
        for place in 0..self.processes.len() {
            self.end_process(place, now_ns);
        }
    }

    /// Takes note that a child was waited for.
    pub(crate) fn process_exited(&mut self, pid: u32, wait_status: i32) {
        for process in self.processes.iter_mut().filter(|process| process.pid == pid && !process.has_ended) {
            process.has_ended = true;
            if let Some(entry) = &mut process.entry {
                entry.exit_status = Some(wait_status);
            }
        }
    }

    /// Takes note of a process that was attached to, and of its id as we see it.
    pub(crate) fn process_attached(&mut self, slot: u32, generation: u32, pid: u32) {
        self.outer_pids.insert((slot, generation), pid);
        self.find_processes();
    }

    /// Takes note that a process writes no more: it was detached from.
    pub(crate) fn process_detached(&mut self, slot: u32, generation: u32) {
        self.find_processes();
        if let Some(&place) = self.process_by_slot.get(&(slot, generation))
            && let Some(process) = self.processes.get_mut(place)
        {
            process.has_ended = true;
        }
    }

    /// Looks at once whether the processes live.
    pub(crate) fn look_for_ends(&mut self) {
        for process in self.processes.iter_mut().filter(|process| !process.has_ended) {
            process.has_ended = !process_facts::is_alive(process.pid);
        }
    }

    /// Ends the file.
    pub(crate) fn finish(
        mut self,
        duration_ns: u64,
        statistics: Statistics,
    ) -> (heapr_trace::Summary, Option<heapr_trace::Error>) {
        let named = [
            ("buffers_written", statistics.buffers_written),
            ("buffers_claimed_max", statistics.buffers_claimed_max),
            ("wait_count", statistics.wait_count),
            ("wait_ns", statistics.wait_ns),
            ("stacks_unwound", statistics.stack_count),
            ("frames_unwound", statistics.frames_unwound),
            ("rules_read", statistics.rule_miss_count),
            ("stacks_truncated", statistics.stacks_truncated),
            ("stacks_verified", statistics.verify_count),
            ("stacks_verified_mismatches", statistics.verify_mismatch_count),
        ];
        for (name, value) in named {
            let outcome = self.sink.writer.statistic(name, value);
            self.sink.keep(outcome);
        }
        self.sink.finish(duration_ns)
    }

    /// Makes everything so far readable after a crash.
    pub(crate) fn flush(&mut self) {
        self.sink.flush();
    }

    /// Notes who had ended before this round's scan: only they have certainly been read to their end after it.
    fn note_ends(&mut self) {
        for process in &mut self.processes {
            process.had_ended_at_scan = process.has_ended;
        }
        for stream in &mut self.streams {
            stream.had_ended_at_scan = stream.has_ended;
        }
    }

    fn find_processes(&mut self) {
        for index in 0..PROCESS_SLOT_COUNT as u32 {
            let Some(slot) = self.pool.process_slot(index) else { break };
            // Acquire: pairs with the Release in `claim_process`.
            let state = slot.state.load(Acquire);
            if state != PROCESS_LIVE && state != PROCESS_DISABLED {
                // Slots are claimed lowest first: behind one that was never used there is none in use.
                if state == PROCESS_FREE && slot.generation.load(Relaxed) == 0 {
                    break;
                }
                continue;
            }
            let generation = slot.generation.load(Relaxed);
            if self.process_by_slot.contains_key(&(index, generation)) {
                continue;
            }
            self.add_process(index, generation);
        }
    }

    fn add_process(&mut self, index: u32, generation: u32) {
        let Some(slot) = self.pool.process_slot(index) else { return };
        let inner_pid = slot.pid.load(Relaxed);
        let namespace = slot.namespace.load(Relaxed);
        let is_elsewhere = namespace != 0 && namespace != process_facts::own_namespace();
        let known = self.outer_pids.get(&(index, generation)).copied();
        let outer = || if is_elsewhere { process_facts::outer_pid(inner_pid, namespace) } else { None };
        let pid = known.or_else(outer).unwrap_or(inner_pid);
        let parent_slot = slot.parent_slot.load(Relaxed);
        let is_fork = slot.origin.load(Relaxed) == ORIGIN_FORK && parent_slot != NO_SLOT;
        let parent = self
            .processes
            .iter()
            .rfind(|process| is_fork && process.slot == parent_slot)
            .map(|process| process.index);
        let executable = process_facts::executable(pid);
        let entry = Process {
            pid,
            parent_pid: slot.parent_pid.load(Relaxed),
            origin: parent.map_or(ProcessOrigin::Exec, |parent| ProcessOrigin::Fork { parent }),
            start_ns: self.clock.recent_ns(slot.start_ticks.load(Relaxed)),
            end_ns: None,
            command_line: process_facts::command_line(pid),
            executable: executable.clone(),
            exit_status: None,
        };
        // An exec replaces the image of the same process: what the old one had is gone.
        let now_ns = self.clock.now_ns();
        // It is done only when what it published before is read: it may be found in the same round as its successor.
        for process in &mut self.processes {
            if process.pid == pid && !process.has_ended && !is_fork {
                process.has_ended = true;
                if let Some(entry) = &mut process.entry {
                    entry.end_ns.get_or_insert(now_ns);
                }
            }
        }
        let file_index = match self.sink.writer.add_process(entry.clone()) {
            Ok(file_index) => file_index,
            Err(error) => {
                self.sink.keep(Err(error));
                ProcessIndex(self.processes.len() as u32)
            }
        };
        self.sink.ledger.add_process(file_index, entry.origin);
        let mut state = ProcessState::new(file_index, index, generation, pid);
        state.is_elsewhere = is_elsewhere || pid != inner_pid;
        state.executable = executable;
        state.entry = Some(entry);
        self.process_by_slot.insert((index, generation), self.processes.len());
        self.processes.push(state);
    }

    /// Notes how far each claimed buffer is published. Returns how many are claimed.
    fn scan(&mut self) -> u32 {
        let mut claimed_count = 0;
        for index in 0..self.pool.buffer_count() as u32 {
            let Some(buffer) = reader::claimed_buffer(&self.pool, index) else { continue };
            claimed_count += 1;
            match buffer.content {
                Content::Events { words, is_busy, is_closed } => {
                    let Some(stream) = self.stream_for(&buffer) else {
                        self.free_if_orphan(&buffer, |pool, slot| {
                            pool.thread_slot(slot).map(|slot| slot.generation.load(Relaxed))
                        });
                        continue;
                    };
                    stream.note(StreamBuffer {
                        sequence: buffer.sequence,
                        index,
                        taken: 0,
                        published: words,
                        is_busy,
                        is_closed,
                        claimed_ticks: buffer.claimed_ticks,
                    });
                }
                Content::Nodes { first_node } => {
                    let Some(&place) = self.process_by_slot.get(&(buffer.slot, buffer.generation)) else {
                        self.free_if_orphan(&buffer, |pool, slot| {
                            pool.process_slot(slot).map(|slot| slot.generation.load(Relaxed))
                        });
                        continue;
                    };
                    if !self.processes[place].note_block(index, first_node, &self.pool) {
                        self.statistics.loss.records_invalid += 1;
                        reader::free_buffer(&self.pool, index);
                    }
                }
            }
        }
        // Nodes after events: an event's node was published before the event was.
        for process in &mut self.processes {
            process.read_nodes(&self.pool);
        }
        claimed_count
    }

    /// Frees a buffer whose owner is gone for good: its slot does not exist or is another's by now. Its content says
    /// nothing without the owner.
    fn free_if_orphan(&mut self, buffer: &ClaimedBuffer, generation_of: impl Fn(&Pool, u32) -> Option<u32>) {
        if generation_of(&self.pool, buffer.slot) != Some(buffer.generation) {
            self.statistics.loss.records_invalid += 1;
            reader::free_buffer(&self.pool, buffer.index);
        }
    }

    /// The stream of a buffer's owner; `None` if its process is not known.
    fn stream_for(&mut self, buffer: &ClaimedBuffer) -> Option<&mut Stream> {
        if let Some(&place) = self.stream_by_slot.get(&(buffer.slot, buffer.generation)) {
            return self.streams.get_mut(place);
        }
        // A slot of another generation tells nothing of this buffer's owner.
        let slot = self.pool.thread_slot(buffer.slot)?;
        if slot.generation.load(Relaxed) != buffer.generation {
            return None;
        }
        let owner = (slot.process_slot.load(Relaxed), slot.process_generation.load(Relaxed));
        let process = match self.process_by_slot.get(&owner) {
            Some(&process) => process,
            None => {
                // It registered after this round's look at the processes.
                self.find_processes();
                *self.process_by_slot.get(&owner)?
            }
        };
        let slot = self.pool.thread_slot(buffer.slot)?;
        let tid = slot.tid.load(Relaxed);
        // Nested signal levels are the same thread to the user.
        let known = self.threads.iter().rposition(|thread| {
            thread.process == process && thread.entry.tid == tid && thread.entry.end_ns.is_none()
        });
        let thread = match known {
            Some(thread) => ThreadIndex(thread as u32),
            None => self.add_thread(process, tid, buffer.claimed_ticks),
        };
        self.stream_by_slot.insert((buffer.slot, buffer.generation), self.streams.len());
        self.streams.push(Stream::new(buffer.slot, buffer.generation, process, thread));
        self.streams.last_mut()
    }

    fn add_thread(&mut self, process: usize, tid: u32, ticks: u64) -> ThreadIndex {
        let pid = self.processes[process].pid;
        let is_elsewhere = self.processes[process].is_elsewhere;
        let outer_tid = if is_elsewhere { process_facts::outer_tid(pid, tid).unwrap_or(tid) } else { tid };
        let entry = Thread {
            process: self.processes[process].index,
            tid,
            name: process_facts::thread_name(pid, outer_tid).unwrap_or_default(),
            start_ns: self.clock.recent_ns(ticks),
            end_ns: None,
        };
        let index = ThreadIndex(self.threads.len() as u32);
        if let Err(error) = self.sink.writer.add_thread(entry.clone()) {
            self.sink.keep(Err(error));
        }
        self.threads.push(ThreadState { entry, process, outer_tid });
        index
    }

    /// Up to which time all events are known.
    fn watermark(&mut self, now_ticks: u64, now_ns: u64) -> u64 {
        let mut watermark = now_ticks.saturating_sub(self.clock.ticks_in(SLACK_NS));
        for stream in &mut self.streams {
            let busy = stream.buffers.back().filter(|buffer| buffer.is_busy);
            let Some(buffer) = busy.filter(|_| !self.processes[stream.process].has_ended) else {
                stream.busy_since_ns = 0;
                continue;
            };
            let reached = stream.published_ticks(&self.pool).unwrap_or(buffer.claimed_ticks);
            if stream.busy_since_ns == 0 || stream.busy_at_ticks != reached {
                stream.busy_since_ns = now_ns;
                stream.busy_at_ticks = reached;
            }
            if now_ns - stream.busy_since_ns < BUSY_MAX_NS {
                watermark = watermark.min(reached);
            }
        }
        watermark
    }

    /// Takes the records up to `watermark` in order of time.
    fn merge(&mut self, watermark: u64) {
        let mut heads = std::mem::take(&mut self.heads);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.streams.len(), 0);
        heads.clear();
        for (number, stream) in self.streams.iter().enumerate() {
            if let Some(head) = stream.head(&self.pool, &mut places[number]) {
                heads.push((order(&head), number));
            }
        }
        // The streams that have something, latest first: the next record is at the end. A stream that was taken from
        // sinks to its new place, mostly next to its old one.
        heads.sort_unstable_by(|one, other| other.cmp(one));
        while let Some((first, number)) = heads.pop() {
            if first.0 > watermark {
                break;
            }
            let until = heads.last().map_or((u64::MAX, true), |&(order, _)| order);
            if let Some(next) = self.take_run(number, &mut places[number], until, watermark) {
                let mut place = heads.len();
                while place > 0 && heads[place - 1].0 < next {
                    place -= 1;
                }
                heads.insert(place, (next, number));
            }
        }
        self.heads = heads;
        self.places = places;
    }

    /// Takes records of one stream while they come before `until` and the watermark. Returns the next one's order.
    fn take_run(
        &mut self,
        number: usize,
        at: &mut usize,
        until: (u64, bool),
        watermark: u64,
    ) -> Option<(u64, bool)> {
        let stream = &mut self.streams[number];
        let process = &mut self.processes[stream.process];
        loop {
            let head = stream.head(&self.pool, at)?;
            let next = order(&head);
            if head.ticks > watermark || next > until {
                return Some(next);
            }
            let Some((kind, words)) = record_words(&head) else {
                self.statistics.loss.records_invalid += 1;
                stream.skip_buffer(*at);
                continue;
            };
            let ticks = head.ticks;
            let mut time_ns = self.clock.ns(ticks);
            if time_ns < self.sink.last_ns {
                // Its thread was held up in the middle of writing it.
                if self.sink.last_ns - time_ns > SLACK_NS {
                    self.statistics.loss.events_late += 1;
                }
                time_ns = self.sink.last_ns;
            }
            let record = Record { head, kind, words };
            if translate(&record, time_ns, stream.thread, process, &mut self.sink) == Outcome::Invalid {
                self.statistics.loss.records_invalid += 1;
            }
            stream.take(*at, words, ticks);
        }
    }

    /// Frees buffers that are read to their end. Returns how many.
    fn free_used_up(&mut self) -> u32 {
        let mut freed_count = 0;
        for stream in &mut self.streams {
            let has_ended = self.processes[stream.process].has_ended || stream.has_ended;
            while let Some(&front) = stream.buffers.front() {
                let is_last = stream.buffers.len() == 1;
                if front.taken < front.published
                    || !(front.is_closed || (has_ended && is_last && Self::is_drained(&self.pool, &front)))
                {
                    break;
                }
                reader::free_buffer(&self.pool, front.index);
                stream.buffers.pop_front();
                self.statistics.buffers_written += 1;
                freed_count += 1;
            }
        }
        for process in &mut self.processes {
            freed_count += process.free_read_blocks(&self.pool);
        }
        freed_count
    }

    /// Whether nothing was published in a buffer since the scan.
    fn is_drained(pool: &Pool, buffer: &StreamBuffer) -> bool {
        matches!(
            reader::claimed_buffer(pool, buffer.index).map(|now| now.content),
            Some(Content::Events { words, .. }) if words <= buffer.taken
        )
    }

    /// What need not be done in every round.
    fn keep_house(&mut self, now_ns: u64) {
        for place in 0..self.processes.len() {
            if self.processes[place].is_done {
                continue;
            }
            if self.processes[place].has_ended {
                self.end_process(place, now_ns);
                continue;
            }
            let pid = self.processes[place].pid;
            if !process_facts::is_alive(pid) {
                // Its last events are read in the next round; then it is done.
                self.processes[place].has_ended = true;
                continue;
            }
            if let Some(rss_bytes) = process_facts::rss_bytes(pid) {
                let sample = heapr_trace::RssSample {
                    time_ns: now_ns,
                    process: self.processes[place].index,
                    rss_bytes,
                };
                let outcome = self.sink.writer.rss_sample(sample);
                self.sink.keep(outcome);
            }
        }
        self.look_at_threads(now_ns);
    }

    /// Names, ends, and slots of threads.
    fn look_at_threads(&mut self, now_ns: u64) {
        let mut number = 0;
        while number < self.streams.len() {
            let stream = &mut self.streams[number];
            let process = &self.processes[stream.process];
            let slot = self.pool.thread_slot(stream.slot);
            let is_ours = slot.is_some_and(|slot| slot.generation.load(Relaxed) == stream.generation);
            let has_said_so = is_ours && slot.is_some_and(|slot| slot.state.load(Acquire) == THREAD_ENDED);
            let thread = &mut self.threads[stream.thread.0 as usize];
            if !process.has_ended && !has_said_so {
                match process_facts::thread_name(process.pid, thread.outer_tid) {
                    Some(name) if name != thread.entry.name => {
                        thread.entry.name = name;
                        let outcome = self.sink.writer.update_thread(stream.thread, &thread.entry);
                        self.sink.keep(outcome);
                    }
                    Some(_) => {}
                    None => stream.has_ended = true,
                }
            } else {
                stream.has_ended = true;
            }
            // What it claimed between the scan and its end is found by the next scan.
            let is_read = stream.had_ended_at_scan || self.is_final;
            if !stream.has_ended || !is_read || !stream.buffers.is_empty() {
                number += 1;
                continue;
            }
            if thread.entry.end_ns.is_none() && !process.has_ended {
                thread.entry.end_ns = Some(now_ns);
                let outcome = self.sink.writer.update_thread(stream.thread, &thread.entry);
                self.sink.keep(outcome);
            }
            self.retire_stream(number);
        }
    }

    /// Adds a finished stream's counters to the totals and gives its slot back.
    fn retire_stream(&mut self, number: usize) {
        let stream = self.streams.swap_remove(number);
        self.stream_by_slot.remove(&(stream.slot, stream.generation));
        if let Some(moved) = self.streams.get(number) {
            self.stream_by_slot.insert((moved.slot, moved.generation), number);
        }
        let mut slot_counters = None;
        if let Some(slot) = self.pool.thread_slot(stream.slot)
            && slot.generation.load(Relaxed) == stream.generation
        {
            let counters = ThreadCounters::read(slot);
            slot_counters = Some(counters);
            slot.state.store(THREAD_FREE, Release);
        }
        if let Some(counters) = slot_counters {
            self.add_counters(stream.thread, stream.process, counters);
        }
    }

    fn end_process(&mut self, place: usize, now_ns: u64) {
        if self.processes[place].is_done || !(self.processes[place].had_ended_at_scan || self.is_final) {
            return;
        }
        let has_buffers =
            self.streams.iter().any(|stream| stream.process == place && !stream.buffers.is_empty());
        if has_buffers && !self.is_final {
            return;
        }
        let process = &mut self.processes[place];
        process.is_done = true;
        process.free_all_blocks(&self.pool);
        if let Some(entry) = &mut process.entry {
            entry.end_ns.get_or_insert(now_ns);
            let outcome = self.sink.writer.update_process(process.index, entry);
            self.sink.keep(outcome);
        }
        if let Some(slot) = self.pool.process_slot(process.slot)
            && slot.generation.load(Relaxed) == process.generation
        {
            let statistics = &mut self.statistics;
            add(&mut statistics.verify_count, slot.verify_count.load(Relaxed));
            add(&mut statistics.verify_mismatch_count, slot.verify_mismatch_count.load(Relaxed));
            let loss = Loss {
                events_lost: slot.events_lost.load(Relaxed),
                stacks_lost: slot.stacks_lost.load(Relaxed),
                ..Loss::default()
            };
            add(&mut statistics.loss.events_lost, loss.events_lost);
            add(&mut statistics.loss.stacks_lost, loss.stacks_lost);
            if loss != Loss::default() {
                let outcome = self.sink.writer.loss(Some(process.index), None, loss);
                self.sink.keep(outcome);
            }
            if process.has_ended {
                slot.state.store(PROCESS_FREE, Release);
            }
        }
        self.process_by_slot.remove(&(process.slot, process.generation));
        process.forget();
    }
}

/// Adds a number that a target has written: whatever it is, the sum does not wrap.
fn add(sum: &mut u64, amount_untrusted: u64) {
    *sum = sum.saturating_add(amount_untrusted);
}

impl Statistics {
    fn add_thread(&mut self, counters: ThreadCounters) {
        add(&mut self.wait_count, counters.wait_count);
        add(&mut self.wait_ns, counters.wait_ns);
        add(&mut self.stack_count, counters.stack_count);
        add(&mut self.frames_unwound, counters.frames_unwound);
        add(&mut self.rule_miss_count, counters.rule_miss_count);
        add(&mut self.stacks_truncated, counters.stacks_truncated);
        add(&mut self.loss.events_lost, counters.events_lost);
    }
}

/// A thread slot's counters.
#[derive(Debug, Clone, Copy)]
struct ThreadCounters {
    events_lost: u64,
    wait_count: u64,
    wait_ns: u64,
    stack_count: u64,
    frames_unwound: u64,
    rule_miss_count: u64,
    stacks_truncated: u64,
}

impl ThreadCounters {
    fn read(slot: &heapr_wire::ThreadSlot) -> Self {
        Self {
            events_lost: slot.events_lost.load(Relaxed),
            wait_count: slot.wait_count.load(Relaxed),
            wait_ns: slot.wait_ns.load(Relaxed),
            stack_count: slot.stack_count.load(Relaxed),
            frames_unwound: slot.frames_unwound.load(Relaxed),
            rule_miss_count: slot.rule_miss_count.load(Relaxed),
            stacks_truncated: slot.stacks_truncated.load(Relaxed),
        }
    }
}

impl Recorder {
    /// Adds a thread's counters to the totals, and its loss to the file.
    fn add_counters(&mut self, thread: ThreadIndex, process: usize, counters: ThreadCounters) {
        self.statistics.add_thread(counters);
        if counters.events_lost > 0 {
            let index = self.processes[process].index;
            let loss = Loss { events_lost: counters.events_lost, ..Loss::default() };
            let outcome = self.sink.writer.loss(Some(index), Some(thread), loss);
            self.sink.keep(outcome);
        }
    }

    /// The counters of the session so far: of what has ended and of what is alive.
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

    /// Ends the recording: everything published is taken, the agents are told.
    pub(crate) fn close(&mut self) {
        reader::close_session(&self.pool);
        self.drain();
        while !self.streams.is_empty() {
            let last = self.streams.len() - 1;
            self.retire_stream(last);
        }
        let loss = self.statistics().loss;
        let whole = Loss { events_lost: 0, stacks_lost: 0, ..loss };
        if whole != Loss::default() {
            let outcome = self.sink.writer.loss(None, None, whole);
            self.sink.keep(outcome);
        }
    }
}
