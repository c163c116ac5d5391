//! Thread that searches a process for embedded allocators when its agent requests it. A separate
//! thread, so that a program never waits for the recorder's current work.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use heapr_allocators::Sought;
use heapr_inject::LoadedModule;
use heapr_ring::{Pool, sys};
use heapr_wire::{
    FLAG_LOOK_INSIDE, MARK_EXEC_WANTED, MARK_LOOK_BEGUN, MARK_MEMORY_WANTED, PROCESS_FREE, PROCESS_LIVE,
    PROCESS_SLOT_COUNT, ProcessSlot,
};

use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::facts::process_facts;
use crate::recorder::inside::finder::{Finder, Inside, WantedFile, functions_of, has_malloc};

/// Longest time between two checks for requests, in case a wake-up was missed.
const ROUND: Duration = Duration::from_secs(1);
/// Interval between two checks for debug files while a search waits for them.
const ROUND_WAITING: Duration = Duration::from_millis(100);

/// Callback that holds an exec which a process is about to call; arguments are (slot, generation)
/// and (pid, tid).
pub(crate) type HoldExec = Box<dyn Fn((u32, u32), (u32, u32)) -> bool + Send>;

/// Result of a request of an agent: allocators found, functions hooked, memory read.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    /// Slot and generation of the process.
    pub(crate) key: (u32, u32),
    pub(crate) inside: Inside,
    /// Reading of the process's memory, if it was requested.
    pub(crate) memory: Option<MemoryLook>,
    /// Functions that could not be hooked, with the reasons.
    pub(crate) not_hooked: Vec<(String, String)>,
    /// Number of functions that were hooked.
    pub(crate) hooked_count: usize,
    /// Reason for which no function could be hooked, if so.
    pub(crate) failure: Option<String>,
}

impl Looked {
    /// Result of a request for a reading of the memory.
    fn of_memory(key: (u32, u32), memory: Option<MemoryLook>) -> Self {
        let (inside, not_hooked) = (Inside::default(), Vec::new());
        Self { key, inside, memory, not_hooked, hooked_count: 0, failure: None }
    }
}

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    pool: Arc<Pool>,
    is_over: Arc<AtomicBool>,
    /// Arguments of the thread, until it is started.
    begin: Option<(Sought, Sender<Looked>)>,
    thread: Option<JoinHandle<()>>,
    looked: Receiver<Looked>,
    known: Known,
}

/// Modules searched so far, by slot, with the generation of the slot.
type Known = Arc<Mutex<HashMap<u32, (u32, HashSet<LoadedModule>)>>>;

impl Watch {
    /// Creates the handle; [`Self::begin`] starts the thread. With its first thread the C library
    /// installs a handler for a signal of its own. A program started after that would not ignore
    /// the signal any more.
    pub(crate) fn new(pool: Arc<Pool>, sought: Sought) -> Self {
        let (sender, looked) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (begin, known) = (Some((sought, sender)), Known::default());
        Self { pool, is_over, begin, thread: None, looked, known }
    }

    /// Whether [`Self::begin`] was not called yet.
    pub(crate) fn is_new(&self) -> bool {
        self.begin.is_some()
    }

    /// Starts the thread.
    pub(crate) fn begin(&mut self, hold_exec: HoldExec) {
        if let Some((sought, sender)) = self.begin.take() {
            let of_thread = (Arc::clone(&self.pool), Arc::clone(&self.is_over), Arc::clone(&self.known));
            let thread = std::thread::Builder::new().name("heapr-inside".to_owned()).spawn(move || {
                let (pool, is_over, known) = of_thread;
                let finder = Finder::new(sought);
                let waiting = Vec::new();
                Watcher { pool: &pool, finder, known, waiting, sender, hold_exec }.run(&is_over);
            });
            self.thread = thread.ok();
            if self.thread.is_none() {
                // Without the thread a request would never be answered.
                self.pool.control().flags.fetch_and(!FLAG_LOOK_INSIDE, Release);
            }
        }
    }

    /// Registers modules that an attach has searched; the key is (slot, generation).
    pub(crate) fn add_known(&self, (slot, generation): (u32, u32), modules: Vec<LoadedModule>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(slot, (generation, modules.into_iter().collect()));
    }

    /// Takes the results since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Looked> + '_ {
        self.looked.try_iter()
    }
}

impl Watch {
    /// Ends the thread. Results found so far can still be taken.
    pub(crate) fn end(&mut self) {
        self.begin = None;
        // Requests from here on would not be answered.
        self.pool.control().flags.fetch_and(!FLAG_LOOK_INSIDE, Release);
        self.is_over.store(true, Release);
        let word = &self.pool.control().looks_wanted;
        word.fetch_add(1, Release);
        sys::futex_wake(word, u32::MAX >> 1);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has printed its own message.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Search that waits for debug files.
struct Waiting {
    key: (u32, u32),
    /// Number of the request that the process waits for.
    wanted: Option<u32>,
    pid: u32,
    new: Vec<LoadedModule>,
    remarks: Receiver<Vec<String>>,
}

impl Waiting {
    /// True if the program has not begun. Only then may it wait for a server: in a running program
    /// that loads a library, the waiting thread may hold locks that others need.
    fn is_start(&self) -> bool {
        self.new.iter().any(|module| module.is_main)
    }
}

struct Watcher<'a> {
    pool: &'a Pool,
    finder: Finder,
    known: Known,
    waiting: Vec<Waiting>,
    sender: Sender<Looked>,
    hold_exec: HoldExec,
}

impl Watcher<'_> {
    fn run(&mut self, is_over: &AtomicBool) {
        let word = &self.pool.control().looks_wanted;
        loop {
            let seen = word.load(Acquire);
            if is_over.load(Acquire) {
                return;
            }
            for index in 0..PROCESS_SLOT_COUNT as u32 {
                let Some(slot) = self.pool.process_slot(index) else { break };
                let state = slot.state.load(Acquire);
                // Slots are used in order: none behind a slot that was never used is in use.
                if state == PROCESS_FREE && slot.generation.load(Relaxed) == 0 {
                    break;
                }
                let wanted = slot.looks_wanted.load(Acquire);
                let is_waiting =
                    self.waiting.iter().any(|waiting| waiting.key.0 == index && waiting.wanted.is_some());
                if state == PROCESS_LIVE && wanted != slot.looks_done.load(Relaxed) && !is_waiting {
                    slot.exit_marks.fetch_or(MARK_LOOK_BEGUN, Relaxed);
                    match self.look(index, slot) {
                        Some(waiting) if waiting.is_start() => {
                            self.waiting.push(Waiting { wanted: Some(wanted), ..waiting });
                        }
                        waiting => {
                            answer(slot, wanted);
                            self.waiting.extend(waiting);
                        }
                    }
                }
            }
            self.go_on();
            let longest = if self.waiting.is_empty() { ROUND } else { ROUND_WAITING };
            sys::futex_wait(word, seen, longest.as_nanos() as u64);
        }
    }

    /// Returns the modules that were not searched yet.
    fn new_of(&self, (slot, generation): (u32, u32), modules: Vec<LoadedModule>) -> Vec<LoadedModule> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(slot).or_default();
        if known.0 != generation {
            *known = (generation, HashSet::new());
        }
        modules.into_iter().filter(|module| known.1.insert(module.clone())).collect()
    }

    /// Answers one request. `Some`: the search waits for debug files and continues later.
    fn look(&mut self, index: u32, slot: &ProcessSlot) -> Option<Waiting> {
        let generation = slot.generation.load(Relaxed);
        let (inner_pid, namespace) = (slot.pid.load(Relaxed), slot.namespace.load(Relaxed));
        let pid = process_facts::shown_pid(inner_pid, namespace)?;
        // Acquire: sees what the agent wrote before the mark.
        if slot.exit_marks.fetch_and(!MARK_EXEC_WANTED, Acquire) & MARK_EXEC_WANTED != 0 {
            let (pid, tid) = (slot.exec_pid.load(Relaxed), slot.exec_tid.load(Relaxed));
            let outer = process_facts::shown_pid(pid, namespace);
            let whose = outer.filter(|_| pid == tid).map(|outer| (outer, outer));
            let is_held = whose.is_some_and(|whose| (self.hold_exec)((index, generation), whose));
            slot.exec_held.store(u32::from(is_held), Relaxed);
            return None;
        }
        // Acquire: see above.
        if slot.exit_marks.fetch_and(!MARK_MEMORY_WANTED, Acquire) & MARK_MEMORY_WANTED != 0 {
            let memory = MemoryLook::of(pid, slot.own_mappings_avma.load(Relaxed), false);
            let _ = self.sender.send(Looked::of_memory((index, generation), memory));
        }
        let modules = heapr_inject::loaded_modules(pid).ok()?;
        let new = self.new_of((index, generation), modules);
        let inside = self.finder.look(pid, &new);
        let files = self.finder.wanted(&inside);
        if files.is_empty() {
            self.hook(slot, (index, generation), pid, &new, inside);
            return None;
        }
        let (sender, remarks) = channel();
        let fetch = move || drop(sender.send(WantedFile::fetch_all(&files)));
        // If the thread cannot start, the sender is dropped, and the search continues without the
        // files.
        let _ = std::thread::Builder::new().name("heapr-fetch".to_owned()).spawn(fetch);
        Some(Waiting { key: (index, generation), wanted: None, pid, new, remarks })
    }

    /// Continues the searches whose debug files have come, or will not come.
    fn go_on(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            let remarks = match waiting.remarks.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.waiting.push(waiting);
                    continue;
                }
                told => told.unwrap_or_default(),
            };
            let Waiting { key, wanted, pid, new, .. } = waiting;
            let Some(slot) = self.pool.process_slot(key.0) else { continue };
            if slot.generation.load(Relaxed) == key.1 && slot.state.load(Acquire) == PROCESS_LIVE {
                let inside = Inside { remarks, ..self.finder.look(pid, &new) };
                self.hook(slot, key, pid, &new, inside);
                if let Some(wanted) = wanted {
                    answer(slot, wanted);
                }
            }
        }
    }

    /// Hooks the functions that were found.
    fn hook(&self, slot: &ProcessSlot, key: (u32, u32), pid: u32, new: &[LoadedModule], inside: Inside) {
        let is_first = new.iter().any(|module| module.is_main);
        // Go's runtime has not begun: the thread that loads the library waits for this answer.
        if let Some(go) = &inside.go {
            go.switch_on(pid);
        }
        let functions = functions_of(&inside);
        let mut looked =
            Looked { key, inside, memory: None, not_hooked: Vec::new(), hooked_count: 0, failure: None };
        // The first call also lets the agent request later searches.
        if functions.is_empty() && !is_first {
            let _ = self.sender.send(looked);
            return;
        }
        match heapr_inject::hook_inside(pid, &functions) {
            Ok(report) => {
                looked.hooked_count = report.hooked.len();
                looked.not_hooked = report.not_hooked;
                if is_first && has_malloc(&looked.inside, &report.hooked) {
                    slot.has_own_malloc.store(0, Relaxed);
                }
            }
            Err(error) => looked.failure = Some(error.to_string()),
        }
        let _ = self.sender.send(looked);
    }
}

/// Marks a request as answered and wakes the process.
fn answer(slot: &ProcessSlot, wanted: u32) {
    slot.exit_marks.fetch_and(!MARK_LOOK_BEGUN, Relaxed);
    slot.looks_done.store(wanted, Release);
    sys::futex_wake(&slot.looks_done, u32::MAX >> 1);
}
