//! Holding a recorded process still at a moment when none of its threads is at allocating, so that
//! its memory and what was recorded of it can be looked at together.
//!
//! Whoever is in the agent, or in an allocator that the agent has called, runs on for a moment
//! while all others stand still. Should we be killed, the kernel lets all of it go on.
//!
//! ```text
//! without a copy   stop, look ........................................, go on
//! with one         stop, copy, go on; look at the copy ..............., end it
//! ```
//! Without a copy nothing is written into the process; with one some words below a stack.

use std::cell::Cell;
use std::time::{Duration, Instant};

use heapr_proc::mappings;
use heapr_proc::{Mapping, thread_name};
use heapr_wire::{BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL, Injection};

use crate::allocator_code::is_in;
use crate::copy::{self, Copied};
use crate::detach::find_record;
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::remote::{Borrowed, Gadgets};
use crate::stop::{Settled, Stopped, StoppedThread};
use crate::thread_place::{choose_thread, stack_words};
use crate::{plan, ptrace, target};

/// How long a good moment is waited for, and between two tries.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE_BETWEEN: Duration = Duration::from_millis(5);
/// How long the threads may take to stop, and to leave the allocator: parts of the pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Tries after which a thread in the allocator is no longer waited for.
const TRIES_MAX: u32 = 8;
/// Between two looks whether a copy may stay.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const FUTEX: u64 = 202;
/// Bytes of a stack in which an allocator has its frames.
const ALLOCATOR_STACK_BYTES: u64 = 2048;

/// A thread that stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldThread {
    /// As we number it.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Stack pointer.
    pub stack_pointer: u64,
    /// Where it has its descriptor.
    pub thread_pointer: u64,
    /// All registers as words, vector registers too.
    pub registers: Vec<u64>,
}

/// A process while all of its threads stand still.
#[derive(Debug, Clone, Default)]
pub struct HeldProcess {
    /// Its threads.
    pub threads: Vec<HeldThread>,
    /// Memory that is the agent's: start and end.
    pub agent: Vec<(u64, u64)>,
    /// No thread is at allocating.
    pub is_quiet: bool,
}

/// How a process is held.
#[derive(Debug, Clone, Copy, Default)]
pub struct HoldRequest {
    /// One of its threads waits in the agent to be looked at.
    pub at_exit: bool,
    /// It goes on as soon as a copy of its memory is made, if one can be.
    pub copies: bool,
}

/// Whose memory is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The process's own: it stands still.
    Process,
    /// That of a copy with this number; the process runs.
    Copy(u32),
}

/// Who looks at a process that is held.
pub trait Look: Send {
    /// It stands still from now on.
    fn stands_still(&mut self);

    /// Takes down what only the process itself tells of this moment; then it goes on. Whether it is
    /// worth looking.
    fn take_down(&mut self) -> bool;

    /// Looks through its memory. `goes_on` tells whether that may still be done.
    fn look(&mut self, held: &HeldProcess, from: ReadFrom, goes_on: &dyn Fn() -> bool);
}

/// What a hold was.
#[derive(Debug, Clone, Default)]
pub struct HoldReport {
    /// Longest that a thread stood still at the last try.
    pub pause: Duration,
    /// How often it was tried.
    pub try_count: u32,
    /// Threads.
    pub thread_count: usize,
    /// A copy was asked for, and why there is none.
    pub no_copy: Option<String>,
    /// How long the copy was there.
    pub copy_life: Option<Duration>,
}

/// Where the agent of a process lies.
struct AgentPlace {
    /// Code through which calls of the allocator go: return addresses lead there.
    code: Vec<(u64, u64)>,
    /// Its own memory, without what it has mapped.
    memory: Vec<(u64, u64)>,
    /// Where it lists what it has mapped, and how long the lists are.
    lists: Vec<(u64, u64)>,
}

impl AgentPlace {
    /// All of its memory now.
    fn memory_now(&self, memory: &ProcessMemory) -> Vec<(u64, u64)> {
        let mapped = self.lists.iter().flat_map(|&(list_avma, count)| list_of(memory, list_avma, count));
        self.memory.iter().copied().chain(mapped).collect()
    }
}

/// Holds a recorded process still and has `looks` look at it.
///
/// # Errors
/// See [`Error`]; the process runs on as it was.
pub fn hold(pid: u32, request: HoldRequest, looks: &mut dyn Look) -> Result<HoldReport> {
    in_own_thread(|| hold_here(pid, request, looks))
}

fn hold_here(pid: u32, request: HoldRequest, looks: &mut dyn Look) -> Result<HoldReport> {
    target::check(pid, false)?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let mut report = HoldReport::default();
    // Found before it stands still.
    let gadgets = match request.copies.then(|| copy::obstacle(pid)) {
        None => None,
        Some(None) => match plan::gadgets(pid, &memory) {
            Ok(gadgets) => Some(gadgets),
            Err(error) => {
                report.no_copy = Some(error.to_string());
                None
            }
        },
        Some(obstacle) => {
            report.no_copy = obstacle;
            None
        }
    };
    let agent = agent_place(pid, &memory)?;
    let begin = Instant::now();
    loop {
        report.try_count += 1;
        let Some(mut stopped) = Stopped::stop(pid, None, STOP_LIMIT)? else {
            if begin.elapsed() > LIMIT {
                let reason =
                    "a thread did not stop (it waits for a child made by vfork, or for a disk)".to_owned();
                return Err(Error::NoQuietMoment { pid, seconds: LIMIT.as_secs(), reason });
            }
            std::thread::sleep(PAUSE_BETWEEN);
            continue;
        };
        let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        let settled = stopped.settle(SETTLE_LIMIT, |thread| {
            let waits = request.at_exit
                && thread.registers.system_call() == Some(FUTEX)
                && is_in(&agent.code, thread.registers.rip);
            !waits && is_at_allocating(&agent, &memory, &mappings, thread)
        })?;
        let is_last = report.try_count >= TRIES_MAX && settled != Settled::Runs;
        if settled != Settled::Quiet && !is_last {
            stopped.resume();
            if begin.elapsed() > LIMIT {
                let reason = "a thread was in the allocator at each try".to_owned();
                return Err(Error::NoQuietMoment { pid, seconds: LIMIT.as_secs(), reason });
            }
            std::thread::sleep(PAUSE_BETWEEN);
            continue;
        }
        report.thread_count = stopped.threads.len();
        let threads = stopped.threads.iter().map(|thread| held_thread(pid, thread));
        let threads = threads.collect::<std::io::Result<Vec<_>>>();
        let threads = threads.map_err(|source| Error::Trace { pid, call: "PTRACE_GETREGSET", source })?;
        let held =
            HeldProcess { threads, agent: agent.memory_now(&memory), is_quiet: settled == Settled::Quiet };
        looks.stands_still();
        let copied = gadgets.and_then(|gadgets| {
            let made = make_copy(pid, &memory, &mappings, &stopped, gadgets);
            made.map_err(|reason| report.no_copy = Some(reason)).ok()
        });
        match copied {
            None => {
                looks.look(&held, ReadFrom::Process, &|| true);
                report.pause = stopped.resume();
            }
            Some(copied) => {
                let since = Instant::now();
                let is_worth_it = looks.take_down();
                report.pause = stopped.resume();
                if is_worth_it {
                    copied.settle_down();
                    let looked = Cell::new(Instant::now());
                    let goes_on = || {
                        if looked.get().elapsed() < LOOK_AGAIN {
                            return true;
                        }
                        looked.set(Instant::now());
                        target::threads(pid).is_ok() && !copy::is_room_short(pid)
                    };
                    looks.look(&held, ReadFrom::Copy(copied.number()), &goes_on);
                }
                drop(copied);
                report.copy_life = Some(since.elapsed());
            }
        }
        return Ok(report);
    }
}

/// Copies a process that stands still; else says why not.
fn make_copy(
    pid: u32,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    stopped: &Stopped,
    gadgets: Gadgets,
) -> std::result::Result<Copied, String> {
    if let Some(reason) = copy::check_filters(pid, &stopped.threads) {
        return Err(reason);
    }
    let thread = choose_thread(memory, mappings, &stopped.threads)
        .ok_or_else(|| "no thread has room on its stack".to_owned())?;
    let mut borrowed = Borrowed::new(pid, memory, gadgets, thread).map_err(|error| error.to_string())?;
    let outcome = copy::copy(pid, &mut borrowed);
    let is_home = borrowed.bring_home();
    let copied = outcome.map_err(|error| error.to_string())?.map_err(str::to_owned)?;
    is_home.map_err(|error| error.to_string())?;
    Ok(copied)
}

fn held_thread(pid: u32, thread: &StoppedThread) -> std::io::Result<HeldThread> {
    let mut registers = thread.registers.words();
    let extended = ptrace::extended_state(thread.tid)?;
    registers.extend(extended.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(HeldThread {
        tid: thread.tid,
        name: thread_name(pid, thread.tid).unwrap_or_default(),
        stack_pointer: thread.registers.rsp,
        thread_pointer: thread.registers.fs_base,
        registers,
    })
}

/// Whether a thread is in the agent, or in something that it has called. A thread that runs the
/// program's own code is not, whatever is left of earlier calls on its stack.
fn is_at_allocating(
    agent: &AgentPlace,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let rip = thread.registers.rip;
    if is_in(&agent.code, rip) {
        return true;
    }
    // Allocators lie in libraries.
    let is_in_library = mappings::find(mappings, rip)
        .is_some_and(|mapping| mapping.name.contains(".so") || mapping.name == "[vdso]");
    let words = || stack_words(memory, mappings, thread.registers.rsp, ALLOCATOR_STACK_BYTES);
    is_in_library && words().is_none_or(|words| words.iter().any(|&word| is_in(&agent.code, word)))
}

/// Finds the agent: one that was injected, or one that the loader has loaded.
fn agent_place(pid: u32, memory: &ProcessMemory) -> Result<AgentPlace> {
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    if let Some(record) = find_record(pid, memory)? {
        let own = (record.start_avma, record.start_avma.wrapping_add(record.bytes));
        let islands = record.islands.iter().map(|&(start, bytes)| (start, start.wrapping_add(bytes)));
        let all: Vec<(u64, u64)> = islands.chain([own]).collect();
        let lists = vec![(record.list_avma, record.list_count)];
        return Ok(AgentPlace { code: all.clone(), memory: all, lists });
    }
    let modules = Modules::read(pid, memory)?;
    let agents = modules.list.iter().filter_map(|module| module.symbol(memory, INJECTION_SYMBOL));
    let mut place = AgentPlace { code: Vec::new(), memory: Vec::new(), lists: Vec::new() };
    for symbol in agents {
        let word = |offset: usize| memory.read_u64(symbol.address_avma.wrapping_add(offset as u64));
        if word(std::mem::offset_of!(Injection, magic)) != Ok(INJECTION_MAGIC)
            || word(std::mem::offset_of!(Injection, build_id)) != Ok(BUILD_ID)
        {
            continue;
        }
        let Some(here) = mappings.iter().position(|mapping| mapping.contains(symbol.address_avma)) else {
            continue;
        };
        let list_avma = word(std::mem::offset_of!(Injection, mappings)).unwrap_or(0);
        let list_count = word(std::mem::offset_of!(Injection, mapping_count)).unwrap_or(0);
        place.lists.push((list_avma, list_count));
        let inode = mappings[here].inode;
        for mapping in module_around(&mappings, here) {
            let range = (mapping.start_avma, mapping.end_avma);
            if mapping.is_executable && mapping.inode == inode {
                place.code.push(range);
            }
            place.memory.push(range);
        }
    }
    if place.code.is_empty() { Err(Error::NotAttached { pid }) } else { Ok(place) }
}

/// The mappings of the module that one of them is of, with the anonymous one behind its data.
fn module_around(mappings: &[Mapping], here: usize) -> &[Mapping] {
    let inode = mappings[here].inode;
    let is_of_it = |mapping: &Mapping| mapping.inode == inode;
    let mut first = here;
    while first > 0
        && is_of_it(&mappings[first - 1])
        && mappings[first - 1].end_avma == mappings[first].start_avma
    {
        first -= 1;
    }
    let mut last = here;
    while let Some(next) = mappings.get(last + 1) {
        let touches = next.start_avma == mappings[last].end_avma;
        if !touches || !is_of_it(next) {
            break;
        }
        last += 1;
    }
    &mappings[first..=last]
}

/// The agent's list of its own mappings.
fn list_of(memory: &ProcessMemory, list_avma: u64, count: u64) -> Vec<(u64, u64)> {
    const LIST_MAX: u64 = 1 << 16;
    let list = memory.read_vec(list_avma, count.min(LIST_MAX) as usize * 16).unwrap_or_default();
    let pairs = list.as_chunks::<16>().0.iter().map(|pair| {
        let (start, bytes) = pair.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        (word(start), word(bytes))
    });
    let real = pairs.filter(|&(start, bytes)| start != 0 && bytes != 0);
    real.filter_map(|(start, bytes)| Some((start, start.checked_add(bytes.checked_next_multiple_of(4096)?)?)))
        .collect()
}
