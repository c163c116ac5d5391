//! Periodic work that not every round needs: liveness, names of threads, sizes of processes, free
//! slots.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_trace::{Loss, Notice, ResidentSample, RssSample, ThreadIndex};
use heapr_wire::{
    DisableReason, FLAG_LOOK_INSIDE, MARK_TREE_UNKNOWN, PROCESS_DISABLED, PROCESS_FREE, THREAD_ENDED,
    THREAD_FREE,
};

use crate::recorder::Recorder;
use crate::recorder::facts::process_facts;
use crate::recorder::state::statistics::{ThreadCounters, add};
use crate::recorder::status::disable_text;

/// Notice for a program whose executable defines `malloc`.
const OWN_MALLOC: &str = "it brings a malloc of its own, of which only what reaches the C library's is recorded (heapr start --pid attaches to it \
                          and sees all)";

/// Longest duration in ns of a reading of a resident set; a longer one was interrupted, and its
/// time is uncertain.
const LOOK_NS: u64 = 2_000_000;
/// Largest number of readings, of which the least interrupted one is used, where processors are
/// busy.
const MAX_LOOKS: u32 = 4;

/// Divisor of a thread's age that gives the interval between checks: nearly all threads say when
/// they end.
const LOOK_PART_OF_AGE: u64 = 16;
const LOOK_SELDOM_NS: u64 = 10_000_000_000;

/// Largest number of untraced programs per process that the file mentions.
pub(crate) const UNTRACED_MAX: usize = 16;

pub(crate) fn untraced_text(program: &str, reason: &str) -> String {
    let program = if program.is_empty() { "a program" } else { program };
    format!("{program}, which it started, runs untraced: {reason}")
}

impl Recorder {
    /// Names a program whose exec was held and that had ended before its name could be read.
    pub(crate) fn name_program(&mut self, pid: u32, program: &str) {
        let newest = self.processes.iter_mut().rfind(|process| process.pid == pid);
        if let Some(process) = newest.filter(|process| process.executable.is_empty())
            && let Some(entry) = &mut process.entry
        {
            program.clone_into(&mut process.executable);
            program.clone_into(&mut entry.executable);
            let outcome = self.sink.writer.update_process(process.index, entry);
            self.sink.keep(outcome);
        }
    }

    /// Notes that a program whose exec was held could not be attached to.
    pub(crate) fn note_untraced(&mut self, key: (u32, u32), program: &str, reason: &str) {
        self.pool.control().processes_refused.fetch_add(1, Relaxed);
        self.note(key, untraced_text(program, reason));
    }

    /// Writes a notice about a process.
    pub(crate) fn note(&mut self, key: (u32, u32), text: String) {
        // The process may have registered since the last round.
        if !self.process_by_slot.contains_key(&key) {
            self.find_processes();
        }
        let Some(&place) = self.process_by_slot.get(&key) else { return };
        let Some(process) = self.processes.get(place) else { return };
        let notice = Notice { process: process.index, time_ns: self.clock.now_ns(), text };
        let outcome = self.sink.writer.notice(&notice);
        self.sink.keep(outcome);
    }

    /// Notes the exit status of a child that was waited for.
    pub(crate) fn process_exited(&mut self, pid: u32, wait_status: i32) {
        // The newest image, because earlier ones ended by exec. The process may have been seen dead
        // before it was waited for, and may already be written as done.
        let newest = self.processes.iter_mut().rfind(|process| process.child_pid == pid);
        let Some(process) = newest else { return };
        process.has_ended = true;
        let Some(entry) = process.entry.as_mut().filter(|entry| entry.exit_status.is_none()) else { return };
        entry.exit_status = Some(wait_status);
        if process.is_done && !process.is_forgotten {
            let outcome = self.sink.writer.update_process(process.index, entry);
            self.sink.keep(outcome);
        }
    }

    /// Notes an attached process and its id in our namespace.
    pub(crate) fn process_attached(&mut self, slot: u32, generation: u32, pid: u32) {
        self.outer_pids.insert((slot, generation), pid);
        self.find_processes();
    }

    /// Notes that a process was detached from and writes no more events.
    pub(crate) fn process_detached(&mut self, slot: u32, generation: u32) {
        self.find_processes();
        if let Some(&place) = self.process_by_slot.get(&(slot, generation))
            && let Some(process) = self.processes.get_mut(place)
        {
            process.has_ended = true;
            process.is_let_go = true;
        }
    }

    /// Notes that a process started with the agent writes no more events. Its threads keep their
    /// buffers until it ends, because they still access them.
    pub(crate) fn process_let_go(&mut self, pid: u32) {
        let slots = self.processes.iter().filter(|process| process.pid == pid && !process.has_ended);
        for process in slots {
            let slot = self.pool.process_slot(process.slot);
            let is_it = |slot: &&heapr_wire::ProcessSlot| slot.generation.load(Relaxed) == process.generation;
            if let Some(slot) = slot.filter(is_it) {
                // The agent itself stores the same when it is called next.
                slot.disable_reason.store(DisableReason::LetGo as u32, Relaxed);
                slot.state.store(PROCESS_DISABLED, Release);
            }
        }
    }

    /// Checks at once whether the processes live.
    pub(crate) fn look_for_ends(&mut self) {
        self.look_at_lives(self.clock.now_ns());
        self.look_at_each_without_descriptor();
    }

    /// Asks the processes one by one that have no descriptor to wait for.
    fn look_at_each_without_descriptor(&mut self) {
        for process in &mut self.processes {
            if !process.has_ended && !process.is_done && process.life.descriptor().is_none() {
                process.look_at_life();
            }
        }
    }

    /// Does the periodic work. Returns the number of freed buffers.
    pub(crate) fn keep_house(&mut self, now_ns: u64) -> u32 {
        let mut freed_count = 0;
        for stream in &self.streams {
            if let Some(process) = self.processes.get_mut(stream.process) {
                process.idle_looks.note_event(stream.last_ticks);
            }
        }
        let had_ended: Vec<bool> = self.processes.iter().map(|process| process.has_ended).collect();
        self.look_at_lives(now_ns);
        self.look_at_each_without_descriptor();
        for place in 0..self.processes.len() {
            if self.processes[place].is_done {
                continue;
            }
            let has_just_ended = self.processes[place].has_ended && had_ended.get(place) == Some(&false);
            self.note_notices(place, now_ns);
            if has_just_ended {
                // The last events are read in the next round; then the process is done.
                continue;
            }
            if self.processes[place].has_ended {
                self.note_unseen_exec(place, now_ns);
                freed_count += self.end_process(place, now_ns);
                continue;
            }
            // Sessions that sample are left on for months. A look that found another image is
            // followed by a second one at once.
            let process = &self.processes[place];
            let may_wait = process.other_image_ns.is_none() && !process.idle_looks.is_due(now_ns);
            if may_wait && self.is_sampled() {
                self.take_looks(place);
                continue;
            }
            if self.is_sampled() && self.note_unchanged(place) {
                self.take_looks(place);
                continue;
            }
            if self.look_for_unseen_exec(place, now_ns) {
                continue;
            }
            self.take_looks(place);
            self.note_resident_set(place);
        }
        if self.is_sampled() {
            self.follow_counting();
        }
        self.look_at_threads(now_ns);
        self.look_at_sizes();
        freed_count
    }

    /// Writes the resident set of a process. The kernel's own counters are read, because
    /// `smaps_rollup` walks pages and makes the process wait.
    fn note_resident_set(&mut self, place: usize) {
        let process = &self.processes[place];
        let mut best: Option<(u64, u64, heapr_proc::ResidentCounters)> = None;
        for _ in 0..MAX_LOOKS {
            let before_ns = self.clock.now_ns();
            let Some(counters) = heapr_proc::ResidentCounters::of_process(process.pid) else { break };
            let time_ns = self.clock.now_ns();
            let took_ns = time_ns.saturating_sub(before_ns);
            if best.as_ref().is_none_or(|&(least_ns, ..)| took_ns < least_ns) {
                best = Some((took_ns, time_ns, counters));
            }
            if took_ns < LOOK_NS {
                break;
            }
        }
        let Some((_, time_ns, counters)) = best else { return };
        self.sink.module_files.look_for_made_code(self.processes[place].pid);
        self.write_resident_set(place, &counters, time_ns);
    }

    /// Writes the resident set of a process that has made no progress since the last reading, as it
    /// was then. Returns false of one that has, or whose program may be another one by now.
    fn note_unchanged(&mut self, place: usize) -> bool {
        let process = &mut self.processes[place];
        let Some(counters) =
            process.idle_looks.unchanged(process.pid).filter(|_| process.other_image_ns.is_none())
        else {
            return false;
        };
        let time_ns = self.clock.now_ns();
        self.write_resident_set(place, &counters, time_ns);
        true
    }

    fn write_resident_set(&mut self, place: usize, counters: &heapr_proc::ResidentCounters, time_ns: u64) {
        self.processes[place].idle_looks.note(counters, time_ns);
        let process = self.processes[place].index;
        let rss_bytes = counters.rss_bytes();
        let outcome = self.sink.writer.rss_sample(RssSample { time_ns, process, rss_bytes });
        self.sink.keep(outcome);
        let sample = ResidentSample {
            time_ns,
            process,
            anonymous_bytes: counters.anonymous_bytes,
            file_bytes: counters.file_bytes,
            shared_memory_bytes: counters.shared_memory_bytes,
            swapped_bytes: counters.swapped_bytes,
            page_table_bytes: counters.page_table_bytes,
            most_rss_bytes: counters.most_rss_bytes,
        };
        let outcome = self.sink.writer.resident_sample(sample);
        self.sink.keep(outcome);
        self.look_if_due(place, counters, time_ns);
    }

    /// Writes notices if the agent of a process has stopped recording by itself, or does not see
    /// its allocator.
    fn note_notices(&mut self, place: usize, now_ns: u64) {
        let process = &mut self.processes[place];
        let Some(slot) = self.pool.process_slot(process.slot) else { return };
        if slot.generation.load(Relaxed) != process.generation {
            return;
        }
        let mut texts = Vec::new();
        // The embedded malloc may still be hooked by a search under way. The agent asks for the
        // first one some time after it has registered.
        let does_look = self.pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE != 0;
        let done = slot.looks_done.load(Acquire);
        let is_looked_at = slot.looks_wanted.load(Relaxed) == done && (done != 0 || !does_look);
        let has_own_malloc = slot.has_own_malloc.load(Relaxed) != 0;
        if !process.is_own_malloc_noted && has_own_malloc && (is_looked_at || process.has_ended) {
            process.is_own_malloc_noted = true;
            texts.push(OWN_MALLOC.to_owned());
        }
        let reason = DisableReason::from_number_untrusted(slot.disable_reason.load(Relaxed));
        if let Some(reason) = reason.filter(|reason| !process.is_end_noted && reason.is_early_end()) {
            process.is_end_noted = true;
            let what = if reason == DisableReason::Sanitizer { "not recorded" } else { "recording ended" };
            texts.push(format!("{what}, because {}", disable_text(reason)));
        }
        // Acquire: the program's name is stored before.
        let reason = DisableReason::from_number_untrusted(slot.untraced_exec.load(Acquire));
        if let Some(reason) =
            reason.filter(|reason| !matches!(reason, DisableReason::None | DisableReason::Forbidden))
        {
            let name = process_facts::told_name(&heapr_ring::reader::untraced_name(slot));
            let text = untraced_text(&name, disable_text(reason));
            if process.untraced.len() < UNTRACED_MAX && process.untraced.insert(text.clone()) {
                texts.push(text);
            }
        }
        if slot.exit_marks.fetch_and(!MARK_TREE_UNKNOWN, Relaxed) & MARK_TREE_UNKNOWN != 0 {
            texts.push("blocks in talloc's pools are not recorded: this version's are not known".to_owned());
        }
        texts.extend(self.take_inside(place, now_ns));
        let process = &self.processes[place];
        for text in texts {
            let notice = Notice { process: process.index, time_ns: now_ns, text };
            let outcome = self.sink.writer.notice(&notice);
            self.sink.keep(outcome);
        }
    }

    /// Updates names, ends, and slots of threads.
    pub(crate) fn look_at_threads(&mut self, now_ns: u64) {
        // A thread that ended without notice may have the buffer that another waits for.
        let is_needed = self.pool.control().waiter_count.load(Relaxed) != 0;
        let mut number = 0;
        while number < self.streams.len() {
            let stream = &mut self.streams[number];
            let process = &self.processes[stream.process];
            let slot = self.pool.thread_slot(stream.slot);
            let is_ours = slot.is_some_and(|slot| slot.generation.load(Relaxed) == stream.generation);
            let has_said_so = is_ours && slot.is_some_and(|slot| slot.state.load(Acquire) == THREAD_ENDED);
            let thread = &mut self.threads[stream.thread.0 as usize];
            if !process.has_ended && !has_said_so {
                if now_ns < stream.next_look_ns && !self.is_final && !is_needed {
                    number += 1;
                    continue;
                }
                let age_ns = now_ns.saturating_sub(thread.entry.start_ns);
                stream.next_look_ns = now_ns + (age_ns / LOOK_PART_OF_AGE).min(LOOK_SELDOM_NS);
                match heapr_proc::thread_name(process.pid, thread.outer_tid) {
                    Some(name) if name != thread.entry.name && !process.has_gone_on => {
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
            // A buffer claimed between the scan and the thread's end is found by the next scan.
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

    /// Adds a finished stream's counters to the totals and frees its slot.
    pub(crate) fn retire_stream(&mut self, number: usize) {
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

    /// Writes a process as done, if everything of it is read. Returns the number of freed buffers.
    pub(crate) fn end_process(&mut self, place: usize, now_ns: u64) -> u32 {
        if self.processes[place].is_done || !(self.processes[place].had_ended_at_scan || self.is_final) {
            return 0;
        }
        let has_buffers =
            self.streams.iter().any(|stream| stream.process == place && !stream.buffers.is_empty());
        if has_buffers && !self.is_final {
            return 0;
        }
        self.note_last_resident_set(place, now_ns);
        self.note_notices(place, now_ns);
        self.take_last_looks(place, now_ns);
        self.note_memory(place, now_ns);
        self.note_missing_graph(place);
        let process = &mut self.processes[place];
        process.is_done = true;
        let freed_count = process.free_all_blocks(&self.pool);
        let is_superseded = process.is_superseded;
        let is_over = process.has_ended && !process.is_let_go;
        if let Some(entry) = process.entry.as_mut().filter(|_| !is_superseded) {
            if is_over {
                entry.end_ns.get_or_insert(now_ns);
            }
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
            if loss != Loss::default() && self.sink.next_file.is_none() {
                let outcome = self.sink.writer.loss(Some(process.index), None, loss);
                self.sink.keep(outcome);
            }
            if process.has_ended {
                slot.state.store(PROCESS_FREE, Release);
            }
        }
        self.process_by_slot.remove(&(process.slot, process.generation));
        process.forget();
        if !is_superseded {
            self.snapshot_at_end_of(place);
        }
        freed_count
    }

    /// Adds a thread's counters to the totals, and its loss to the file.
    fn add_counters(&mut self, thread: ThreadIndex, process: usize, counters: ThreadCounters) {
        self.statistics.add_thread(counters);
        if counters.events_lost > 0 && self.sink.next_file.is_none() {
            let index = self.processes[process].index;
            let loss = Loss { events_lost: counters.events_lost, ..Loss::default() };
            let outcome = self.sink.writer.loss(Some(index), Some(thread), loss);
            self.sink.keep(outcome);
        }
    }
}
