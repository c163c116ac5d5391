//! Go's heap in the file: events of [`HeapId::RUNTIME`], sampled by the runtime itself.

use std::time::Instant;

use heapr_inject::StoppedProcess;
use heapr_proc::mappings;
use heapr_trace::{
    Action, Event, HeapId, HeapName, Mapping, Module, Notice, Process, ProcessOrigin, SamplingPeriod,
    StackIndex, StackNode, Thread, ThreadIndex,
};

use crate::recorder::Recorder;
use crate::recorder::facts::process_facts;
use crate::recorder::go::{Change, GoHeap, GoTarget};
use crate::recorder::names::module_files::SeenModule;
use crate::recorder::state::process_state::ProcessState;

/// Least time between two readings of a program's heap; `SHARE` limits the readings to a twentieth
/// of the time.
const LOOK_NS: u64 = 10_000_000;
const SHARE: u64 = 20;
/// Readings in a row that may fail before the account counts as unknown.
const FAILED_LOOKS: u32 = 3;
/// Notice where the runtime keeps no account; the next texts say what can be done.
const SWITCHED_OFF: &str =
    "Go's own heap is not seen: its runtime samples nothing, as nothing in the program asks for it";
const SWITCHED_ON_BY_RUN: &str = "heapr run has it sampled from the start";
const NO_SWITCH: &str = "and its file does not tell how to switch that on";
/// Slot number of processes without an agent.
const NO_SLOT: u32 = u32::MAX;
const _: () = assert!(HeapId::RUNTIME.0 as usize == heapr_wire::RUNTIME_HEAP);

impl Recorder {
    /// Adds a program that nothing can be loaded into; only its runtime's account is read.
    pub(crate) fn add_outside(&mut self, pid: u32, target: GoTarget) {
        let now_ns = self.clock.now_ns().max(self.sink.last_ns);
        let parent_pid = heapr_proc::Stat::of_process(pid).and_then(|stat| stat.number(4)).unwrap_or(0);
        let executable = process_facts::executable(pid);
        let entry = Process {
            pid,
            parent_pid: u32::try_from(parent_pid).unwrap_or(0),
            origin: ProcessOrigin::Exec,
            start_ns: now_ns,
            end_ns: None,
            command_line: heapr_proc::command_line(pid),
            executable: executable.clone(),
            exit_status: None,
        };
        self.end_images_before(pid, now_ns);
        let index = self.enter_process(&entry);
        let generation = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        let mut state = ProcessState::new(index, NO_SLOT, generation, pid);
        (state.entry, state.executable) = (Some(entry), executable.clone());
        for mapping in mappings::read(pid).unwrap_or_default() {
            if !mapping.is_executable || mapping.name != executable {
                continue;
            }
            let module = Module { path: executable.clone(), build_id: Vec::new() };
            let seen = SeenModule {
                pid,
                path: executable.as_bytes(),
                start_avma: mapping.start_avma,
                bias_avma: target.bias_avma,
                is_main: true,
                is_old: false,
            };
            self.sink.module_files.see(&module, &seen);
            let writer = &mut self.sink.writer;
            let added = writer.add_module(module).and_then(|module| {
                writer.add_mapping(Mapping {
                    process: index,
                    module,
                    start_avma: mapping.start_avma,
                    end_avma: mapping.end_avma,
                    bias_avma: target.bias_avma,
                    loaded_ns: now_ns,
                    unloaded_ns: u64::MAX,
                })
            });
            match added {
                Ok(number) => {
                    state.mappings.insert(mapping.start_avma, (mapping.end_avma, number));
                }
                Err(error) => self.sink.keep(Err(error)),
            }
        }
        self.processes.push(state);
        self.take_go(self.processes.len() - 1, target);
    }

    /// Lets go of a process without an agent. Returns `false` if there is no such process.
    pub(crate) fn let_go_outside(&mut self, pid: u32) -> bool {
        let is_it =
            |process: &&mut ProcessState| process.pid == pid && process.slot == NO_SLOT && !process.has_ended;
        let Some(process) = self.processes.iter_mut().find(is_it) else { return false };
        process.has_ended = true;
        process.is_let_go = true;
        true
    }

    /// Registers Go's runtime in a process.
    pub(in crate::recorder) fn take_go(&mut self, place: usize, target: GoTarget) {
        let process = &mut self.processes[place];
        if process.go.is_some() {
            return;
        }
        if let Some(why) = target.unreadable() {
            let index = process.index;
            return self.note_go(index, &format!("Go's own heap is not seen: {why}"));
        }
        process.go = Some(Box::new(GoHeap::new(target)));
    }

    fn note_go(&mut self, process: heapr_trace::ProcessIndex, text: &str) {
        let notice = Notice { process, time_ns: self.clock.now_ns(), text: text.to_owned() };
        let outcome = self.sink.writer.notice(&notice);
        self.sink.keep(outcome);
    }

    /// Reads the heaps whose turn it is.
    pub(in crate::recorder) fn look_at_go(&mut self, now_ns: u64) {
        for place in 0..self.processes.len() {
            let process = &mut self.processes[place];
            let is_due = process.go.as_ref().is_some_and(|go| now_ns >= go.next_look_ns);
            if !is_due || process.has_ended || process.is_done {
                continue;
            }
            let Some(mut go) = process.go.take() else { continue };
            let began = Instant::now();
            let memory = StoppedProcess::of(process.pid);
            let is_first = !go.is_read;
            let outcome = go.look(&memory);
            let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            go.next_look_ns = now_ns.saturating_add(LOOK_NS.max(took_ns.saturating_mul(SHARE)));
            match outcome {
                Ok(changes) => {
                    go.failed_looks = 0;
                    if is_first && go.mean_bytes == 0 {
                        let index = self.processes[place].index;
                        let is_switch_known =
                            go.target.places.is_some_and(|places| places.unwanted_svma != 0);
                        let more = if is_switch_known { SWITCHED_ON_BY_RUN } else { NO_SWITCH };
                        self.note_go(index, &format!("{SWITCHED_OFF} ({more})"));
                    }
                    self.take_go_changes(place, &mut go, &changes);
                    self.processes[place].go = Some(go);
                }
                // Before the program's own code has run there may be no buckets yet. A program that
                // ends loses its memory before it is a zombie, and one that execs has another.
                Err(_)
                    if is_first
                        || go.failed_looks < FAILED_LOOKS
                        || heapr_proc::resident_bytes(self.processes[place].pid).is_none() =>
                {
                    go.failed_looks = go.failed_looks.saturating_add(1);
                    self.processes[place].go = Some(go);
                }
                Err(_) => {
                    let index = self.processes[place].index;
                    self.note_go(
                        index,
                        "Go's own heap is not seen: its runtime's account is not as it is known",
                    );
                }
            }
        }
    }

    fn take_go_changes(&mut self, place: usize, go: &mut GoHeap, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let time_ns = self.sink.last_ns.max(self.watermark_ns);
        let process = self.processes[place].index;
        let thread = match go.thread {
            Some(thread) => thread,
            None => {
                let thread = self.begin_go(place, time_ns);
                go.thread = Some(thread);
                thread
            }
        };
        let mean_bytes = if go.mean_bytes == 1 { SamplingPeriod::ALL_BYTES } else { go.mean_bytes };
        let whose = SamplingPeriod::of_runtime(process);
        let known = self.sink.summary.sampling().and_then(|known| known.mean_of_runtime(process));
        if mean_bytes != 0 && known != Some(mean_bytes) || go.mean_bytes == 1 && known.is_none() {
            if mean_bytes != SamplingPeriod::ALL_BYTES {
                // Readers that take the file's numbers for counts refuse the file.
                let outcome = self.sink.writer.has_samples();
                self.sink.keep(outcome);
            }
            self.sink.note_mean(whose, time_ns, mean_bytes);
        }
        for change in changes {
            let stack = self.go_stack(process, go, change.number, time_ns);
            let mut event = |action| {
                self.sink.event(&Event { time_ns, thread, heap: HeapId::RUNTIME, action }, process);
            };
            for block in change.new.clone() {
                let address_avma = GoHeap::address_avma(change.number, block);
                let size_bytes = change.size_bytes;
                event(Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false });
            }
            for block in change.gone.clone() {
                let address_avma = GoHeap::address_avma(change.number, block);
                event(Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false });
            }
        }
    }

    /// Adds the heap and a thread for its events to the file.
    fn begin_go(&mut self, place: usize, time_ns: u64) -> ThreadIndex {
        let ProcessState { index, pid, .. } = self.processes[place];
        let name =
            HeapName { process: index, heap: HeapId::RUNTIME, name: "Go".to_owned(), first_ns: time_ns };
        let outcome = self.sink.writer.heap_name(&name);
        self.sink.keep(outcome);
        let entry = Thread {
            process: index,
            tid: pid,
            name: "Go's runtime".to_owned(),
            start_ns: time_ns,
            end_ns: None,
        };
        self.enter_thread(place, entry, pid)
    }

    fn go_stack(
        &mut self,
        process: heapr_trace::ProcessIndex,
        go: &mut GoHeap,
        number: usize,
        time_ns: u64,
    ) -> StackIndex {
        let (known, addresses) = go.stack(number);
        if let Some(known) = known {
            return known;
        }
        let addresses = addresses.to_vec();
        let mut parent = StackIndex::EMPTY;
        for return_address_avma in addresses.into_iter().rev() {
            let key = (parent, return_address_avma);
            if let Some(&known) = go.nodes.get(&key) {
                parent = known;
                continue;
            }
            let node = StackNode { parent, process, return_address_avma, first_seen_ns: time_ns };
            match self.sink.writer.add_stack(node) {
                Ok(stack) => {
                    go.nodes.insert(key, stack);
                    parent = stack;
                }
                Err(error) => {
                    self.sink.keep(Err(error));
                    break;
                }
            }
        }
        go.keep_stack(number, parent);
        parent
    }
}
