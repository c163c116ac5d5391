//! Finds what the agents have published: new processes, threads, stack nodes, and the fill of each
//! buffer.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use heapr_ring::Pool;
use heapr_ring::reader::{self, ClaimedBuffer, Content};
use heapr_trace::{Process, ProcessIndex, ProcessOrigin, Thread, ThreadIndex};
use heapr_wire::{
    NO_SLOT, ORIGIN_ATTACH, ORIGIN_FORK, PROCESS_DISABLED, PROCESS_FREE, PROCESS_LIVE, PROCESS_SLOT_COUNT,
};

use crate::recorder::facts::process_facts;
use crate::recorder::intake::merge::{Stream, StreamBuffer};
use crate::recorder::processes::unseen_exec;
use crate::recorder::state::process_state::ProcessState;
use crate::recorder::{Recorder, ThreadState};

/// Placeholder for the id of an ended process of another process namespace, which `/proc` does not
/// show.
const NOT_SHOWN: u32 = 0;

/// Process image that has registered and is not known yet.
struct Registered {
    start_ticks: u64,
    /// Slot and generation.
    key: (u32, u32),
    /// Process id as the process itself sees it, and its process namespace.
    pid: (u32, u32),
}

/// Program of a process image.
struct Program {
    executable: String,
    command_line: Vec<String>,
    has_gone_on: bool,
}

/// Returns the program of a process image that is read for the first time.
///
/// `/proc` may describe another image, if the process has ended or execed by then. A forked child
/// runs its parent's program; of other images the agent reports the executable (see
/// [`crate::recorder::translate`]).
///
/// `told_name`: file name as the process itself reported it. Used for a process that `/proc` no
/// longer shows and that allocates nothing.
fn program_of(pid: u32, parent: Option<&ProcessState>, told_name: &str, has_gone_on: bool) -> Program {
    // The command line is read first: if the executable is still the parent's afterwards, no exec
    // came before the read.
    let command_line = heapr_proc::command_line(pid);
    let executable = process_facts::executable(pid);
    let is_parents = |parent: &ProcessState| {
        !executable.is_empty() && process_facts::may_be_same_program(&executable, &parent.executable)
    };
    let has_gone_on = has_gone_on || !parent.is_none_or(is_parents);
    if !has_gone_on {
        let executable = if executable.is_empty() { told_name.to_owned() } else { executable };
        return Program { executable, command_line, has_gone_on };
    }
    let of_parent = parent.and_then(|parent| parent.entry.as_ref());
    Program {
        executable: parent.map_or(told_name, |parent| &parent.executable).to_owned(),
        command_line: of_parent.map(|entry| entry.command_line.clone()).unwrap_or_default(),
        has_gone_on,
    }
}

impl Recorder {
    /// Notes which processes and threads had ended before this round's scan. Only their events are
    /// certain to be read completely by it.
    pub(crate) fn note_ends(&mut self) {
        for process in &mut self.processes {
            process.had_ended_at_scan = process.has_ended;
        }
        for stream in &mut self.streams {
            stream.had_ended_at_scan = stream.has_ended;
        }
    }

    pub(crate) fn find_processes(&mut self) {
        let mut found = Vec::new();
        for index in 0..PROCESS_SLOT_COUNT as u32 {
            let Some(slot) = self.pool.process_slot(index) else { break };
            // Acquire: pairs with the Release in `claim_process`.
            let state = slot.state.load(Acquire);
            if state != PROCESS_LIVE && state != PROCESS_DISABLED {
                // Slots are claimed lowest first: none behind a slot that was never used is in use.
                if state == PROCESS_FREE && slot.generation.load(Relaxed) == 0 {
                    break;
                }
                continue;
            }
            let key = (index, slot.generation.load(Relaxed));
            if !self.process_by_slot.contains_key(&key) {
                found.push(Registered {
                    start_ticks: slot.start_ticks.load(Relaxed),
                    key,
                    pid: (slot.pid.load(Relaxed), slot.namespace.load(Relaxed)),
                });
            }
        }
        // A freed slot is claimed again by any process: a parent, or the image before an exec, may
        // lie in a higher one.
        found.sort_by_key(|registered| registered.start_ticks);
        for (place, &Registered { key, pid, .. }) in found.iter().enumerate() {
            let Some(slot) = self.pool.process_slot(key.0) else { continue };
            let is_entered = self.outer_pids.contains_key(&key) || self.is_final;
            if self.held.holds(key, slot, is_entered) {
                continue;
            }
            let has_gone_on = found[place + 1..].iter().any(|later| later.pid == pid);
            self.add_process(key.0, key.1, has_gone_on);
        }
    }

    /// Adds a process. `has_gone_on`: `/proc` shows another image, because the process has execed.
    fn add_process(&mut self, index: u32, generation: u32, has_gone_on: bool) {
        let Some(slot) = self.pool.process_slot(index) else { return };
        let inner_pid = slot.pid.load(Relaxed);
        let namespace = slot.namespace.load(Relaxed);
        let is_of_ours = namespace == 0 || namespace == process_facts::own_namespace();
        let is_elsewhere = !is_of_ours || !process_facts::is_proc_of_own_namespace();
        let known = self.outer_pids.get(&(index, generation)).copied();
        let shown =
            || if is_elsewhere { process_facts::outer_pid(inner_pid, namespace) } else { Some(inner_pid) };
        let shown_pid = known.or_else(shown);
        let pid = shown_pid.unwrap_or(NOT_SHOWN);
        let parent_slot = slot.parent_slot.load(Relaxed);
        let was_attached = slot.origin.load(Relaxed) == ORIGIN_ATTACH;
        let is_fork = slot.origin.load(Relaxed) == ORIGIN_FORK && parent_slot != NO_SLOT;
        let mut told_name = process_facts::told_name(&reader::executable_name(slot));
        if told_name.is_empty() {
            // The process may not see itself; the program that execed it has told its name.
            let before = self.processes.iter().rfind(|process| process.pid == pid);
            let before = before.and_then(|process| self.pool.process_slot(process.slot));
            let held = before.filter(|slot| slot.exec_held.load(Relaxed) != 0);
            told_name =
                held.map(|slot| process_facts::told_name(&reader::untraced_name(slot))).unwrap_or_default();
        }
        let parent = self.processes.iter().rfind(|process| is_fork && process.slot == parent_slot);
        let Program { executable, command_line, has_gone_on } =
            program_of(pid, parent, &told_name, has_gone_on);
        let parents_image = parent.and_then(|parent| parent.first_image);
        let parent = parent.map(|parent| parent.index);
        let entry = Process {
            pid: shown_pid.unwrap_or(inner_pid),
            parent_pid: slot.parent_pid.load(Relaxed),
            origin: parent.map_or(ProcessOrigin::Exec, |parent| ProcessOrigin::Fork { parent }),
            start_ns: self.clock.recent_ns(slot.start_ticks.load(Relaxed)),
            end_ns: None,
            command_line,
            executable: executable.clone(),
            exit_status: None,
        };
        // An exec replaces the image of the same process, and the blocks of the old image are gone.
        // The old image is done only when everything that it published is read: both may be found
        // in the same round.
        if !is_fork {
            self.end_images_before(pid, entry.start_ns);
        }
        let image = if was_attached { process_facts::image(pid) } else { None };
        let resumed = self.resume(pid, image);
        let is_resumed = resumed.is_some();
        let (file_index, entry) = resumed.unwrap_or_else(|| (self.enter_process(&entry), entry));
        let mut state = ProcessState::new(file_index, index, generation, pid);
        state.sample_mean_bytes = self.first_mean_bytes(file_index);
        (state.image, state.is_resumed) = (image, is_resumed);
        state.is_elsewhere = is_elsewhere || pid != inner_pid;
        state.child_pid = if is_of_ours { inner_pid } else { pid };
        state.executable = executable;
        state.has_gone_on = has_gone_on;
        state.was_attached = was_attached;
        state.first_image = unseen_exec::first_image(&state, parents_image);
        state.entry = Some(entry);
        if let Some(parent) = self.processes.iter().find(|process| Some(process.index) == parent) {
            let (own_heaps, names) = parent.own_heaps.for_child(file_index, self.clock.now_ns());
            state.own_heaps = own_heaps;
            for name in names {
                let outcome = self.sink.writer.heap_name(&name);
                self.sink.keep(outcome);
            }
        }
        self.process_by_slot.insert((index, generation), self.processes.len());
        self.processes.push(state);
    }

    /// Ends the images of a process that a newer image replaced.
    pub(crate) fn end_images_before(&mut self, pid: u32, start_ns: u64) {
        for process in &mut self.processes {
            let is_before = process.entry.as_ref().is_none_or(|known| known.start_ns <= start_ns);
            if process.pid == pid && is_before {
                // It is seen now, even if its process has ended before this round.
                process.other_image_ns = None;
            }
            if process.pid == pid && !process.has_ended && is_before {
                process.has_ended = true;
                process.is_end_counted = true;
                process.is_replaced = true;
                self.sink.add_end(start_ns, process.index);
                if let Some(before) = &mut process.entry {
                    before.end_ns.get_or_insert(start_ns);
                }
            }
        }
    }

    /// Adds an entry for a process to the file and the ledger.
    pub(crate) fn enter_process(&mut self, entry: &Process) -> ProcessIndex {
        let added = self.sink.writer.add_process(entry.clone());
        let file_index = added.unwrap_or_else(|error| {
            self.sink.keep(Err(error));
            // Number of processes with an entry of their own.
            ProcessIndex(self.processes.iter().filter(|process| !process.is_resumed).count() as u32)
        });
        self.sink.ledger.add_process(file_index, entry.origin, entry.start_ns);
        file_index
    }

    /// Returns the entry of a process that was attached to before, let go, and still runs the same
    /// program.
    ///
    /// Processes that one program forks within a clock tick differ in their ids alone.
    fn resume(&mut self, pid: u32, image: Option<[u64; 2]>) -> Option<(ProcessIndex, Process)> {
        let image = image?;
        let is_it = |process: &ProcessState| process.pid == pid && process.image == Some(image);
        let before = self.processes.iter_mut().rfind(|process| is_it(process))?;
        before.is_superseded = true;
        let mut entry = before.entry.clone()?;
        entry.end_ns = None;
        let index = before.index;
        self.forget_end_of(index);
        self.sink.forget_end(index);
        let outcome = self.sink.writer.update_process(index, &entry);
        self.sink.keep(outcome);
        Some((index, entry))
    }

    /// Notes the fill of each claimed buffer. Returns the number of claimed buffers.
    pub(crate) fn scan(&mut self) -> u32 {
        let (mut claimed_count, mut held_count) = (0, 0);
        let held_before = reader::held_count(&self.pool);
        for index in 0..self.pool.buffer_count() as u32 {
            let Some(buffer) = reader::claimed_buffer(&self.pool, index) else {
                let was_senseless = reader::free_if_senseless(&self.pool, index);
                self.statistics.loss.records_invalid += u64::from(was_senseless);
                continue;
            };
            claimed_count += 1;
            held_count += u32::from(!matches!(buffer.content, Content::Events { is_closed: true, .. }));
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
        reader::note_held(&self.pool, held_before, held_count);
        // Nodes after events: an event's node was published before the event was.
        for process in &mut self.processes {
            process.read_nodes(&self.pool);
        }
        claimed_count
    }

    /// Frees a buffer whose owner is gone: the owner's slot does not exist or belongs to another by
    /// now. Without the owner the content cannot be interpreted.
    fn free_if_orphan(&mut self, buffer: &ClaimedBuffer, generation_of: impl Fn(&Pool, u32) -> Option<u32>) {
        if generation_of(&self.pool, buffer.slot) != Some(buffer.generation) {
            self.statistics.loss.records_invalid += 1;
            reader::free_buffer(&self.pool, buffer.index);
        }
    }

    /// Returns the stream of a buffer's owner; `None` if its process is not known.
    fn stream_for(&mut self, buffer: &ClaimedBuffer) -> Option<&mut Stream> {
        if let Some(&place) = self.stream_by_slot.get(&(buffer.slot, buffer.generation)) {
            return self.streams.get_mut(place);
        }
        // A slot of another generation says nothing of this buffer's owner.
        let slot = self.pool.thread_slot(buffer.slot)?;
        if slot.generation.load(Relaxed) != buffer.generation {
            return None;
        }
        let owner = (slot.process_slot.load(Relaxed), slot.process_generation.load(Relaxed));
        let process = match self.process_by_slot.get(&owner) {
            Some(&process) => process,
            None => {
                // The process registered after this round's search for processes.
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

    pub(crate) fn add_thread(&mut self, process: usize, tid: u32, ticks: u64) -> ThreadIndex {
        let ProcessState { pid, is_elsewhere, has_gone_on, .. } = self.processes[process];
        let outer_tid = if is_elsewhere { process_facts::outer_tid(pid, tid).unwrap_or(tid) } else { tid };
        let entry = Thread {
            process: self.processes[process].index,
            tid,
            name: if has_gone_on { None } else { heapr_proc::thread_name(pid, outer_tid) }
                .unwrap_or_default(),
            start_ns: self.clock.recent_ns(ticks),
            end_ns: None,
        };
        self.enter_thread(process, entry, outer_tid)
    }

    pub(crate) fn enter_thread(&mut self, process: usize, entry: Thread, outer_tid: u32) -> ThreadIndex {
        let index = ThreadIndex(self.threads.len() as u32);
        if let Err(error) = self.sink.writer.add_thread(entry.clone()) {
            self.sink.keep(Err(error));
        }
        self.threads.push(ThreadState { entry, process, outer_tid });
        index
    }
}
