//! Hooking of embedded allocators in a program that has an agent, from outside like an attach. If
//! an attach has brought the agent, its record gets the changes, so that the detach removes them.
//!
//! ```text
//! the agent waits    modules, their functions: by a reader of symbols
//! it is stopped      no thread in bytes to be overwritten
//!                    one thread maps a trampoline area near each module
//!                    the agent's table is filled, then the jumps are written
//! it runs on         and each call of those functions is recorded
//! ```
//! The jumps lead to the agent at once, because it is active already.

use std::mem::offset_of;
use std::time::Duration;

use heapr_wire::{
    BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL, INNER_FUNCTIONS, INNER_HEAPS, Injection, InnerFunction,
};

use crate::address_room;
use crate::change::Change;
use crate::detach::find_record;
use crate::error::{Error, Result};
use crate::inside_function::{InsideFunction, InsideHeaps, NOT_ALL, THROWS, broken_groups};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::plan;
use crate::record::{ISLANDS_MAX, PATCHES_MAX, Patch, Record};
use crate::remote::Borrowed;
use crate::stop::{Settled, Stopped, StoppedThread};
use crate::x86_64::{Countdown, Island, Place, Prologue, Sampling, Way, island_of};
use crate::{target, thread_place};
use heapr_proc::{Mapping, mappings};

/// A module of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoadedModule {
    /// Name in the loader's list; empty for the program itself.
    pub name: String,
    /// Whether the module is the program itself.
    pub is_main: bool,
    /// Load bias: `avma - bias_avma` is the address as in the file.
    pub bias_avma: u64,
    /// Whether the module is an agent of heapr.
    pub is_agent: bool,
    /// Whether the module has a `malloc` that others can call.
    pub exports_malloc: bool,
    /// Whether the module is the C library or the loader.
    pub is_c_library: bool,
}

/// Report of the hooking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsideReport {
    /// Names of the functions whose calls are recorded.
    pub hooked: Vec<String>,
    /// Names of the functions that could not be hooked, each with the reason.
    pub not_hooked: Vec<(String, String)>,
    /// Time for which the process was stopped.
    pub pause: Duration,
}

const STOP_LIMIT: Duration = Duration::from_millis(200);
const SETTLE_LIMIT: Duration = Duration::from_millis(100);
/// Largest distance in bytes of a trampoline area: just under 2 GiB, the range of a jump.
const JUMP_DISTANCE: u64 = (1 << 31) - (64 << 20);
const SYS_MMAP: u64 = 9;
const SYS_MPROTECT: u64 = 10;
const PROT_READ_WRITE: u64 = 3;
const PROT_READ_EXECUTE: u64 = 5;
/// Private, anonymous, without reserved swap, and never replacing a mapping.
const MAP_FLAGS: u64 = 0x02 | 0x20 | 0x4000 | 0x10_0000;

fn open(pid: u32) -> Result<ProcessMemory> {
    ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })
}

/// Reads the modules of a process from its loader's list; a program without a loader is its only
/// module.
///
/// # Errors
/// Returns an error if the process may not be read or is gone, or if it has no loader and its file
/// has no malloc.
pub fn loaded_modules(pid: u32) -> Result<Vec<LoadedModule>> {
    let memory = open(pid)?;
    let modules = Modules::read(pid, &memory)?;
    if modules.list.iter().any(|module| module.statics().is_some()) {
        plan::c_library(pid, &memory, &modules)?;
    }
    let has = |module: &crate::modules::Module, name: &str| module.symbol(&memory, name).is_some();
    let seen = modules.list.iter().map(|module| LoadedModule {
        name: module.name.clone(),
        is_main: module.is_main,
        bias_avma: module.bias,
        is_agent: has(module, INJECTION_SYMBOL),
        exports_malloc: has(module, "malloc"),
        is_c_library: module.statics().is_none()
            && (has(module, "gnu_get_libc_version") || has(module, "_rtld_global")),
    });
    Ok(seen.collect())
}

/// The agent of a process.
struct Agent {
    injection_avma: u64,
    /// Record of an attach.
    record: Option<Record>,
}

impl Agent {
    fn find(pid: u32, memory: &ProcessMemory, modules: &Modules) -> Result<Self> {
        if let Some(record) = find_record(pid, memory)? {
            return Ok(Self { injection_avma: record.injection_avma, record: Some(record) });
        }
        let agents = modules.list.iter().filter_map(|module| module.symbol(memory, INJECTION_SYMBOL));
        let agents = agents.map(|symbol| Self { injection_avma: symbol.address_avma, record: None });
        let is_ours = |agent: &Self| {
            agent.word(memory, offset_of!(Injection, magic)) == Some(INJECTION_MAGIC)
                && agent.word(memory, offset_of!(Injection, build_id)) == Some(BUILD_ID)
        };
        agents.into_iter().find(is_ours).ok_or(Error::NotAttached { pid })
    }

    /// Locations for counting calls; `None`: all calls are recorded.
    fn sampling(&self, memory: &ProcessMemory) -> Option<Sampling> {
        let pointed_at = |field: usize| memory.read_u64(self.word(memory, field)?).ok();
        let marks_avma = pointed_at(offset_of!(Injection, marks)).filter(|&marks_avma| marks_avma != 0)?;
        let place = match (pointed_at(offset_of!(Injection, countdown_place))?, &self.record) {
            (0, Some(record)) => Place::State(Countdown {
                slot_offset: i32::try_from(record.tls_offset).ok()?,
                left_offset: i32::try_from(self.word(memory, offset_of!(Injection, countdown_offset))?)
                    .ok()?,
            }),
            (0, None) => return None,
            (place, _) => Place::Thread(i32::try_from(place.cast_signed()).ok()?),
        };
        Some(Sampling { marks_avma, place })
    }

    fn word(&self, memory: &ProcessMemory, field: usize) -> Option<u64> {
        memory.read_u64(self.injection_avma.wrapping_add(field as u64)).ok()
    }
}

/// A function that is going to be hooked.
struct Planned {
    name: String,
    prologue: Prologue,
    way: Way,
    /// Words for the agent's table, as addresses and values, without the function's own address.
    words: Vec<(u64, u64)>,
    /// Address of the word for the function's own address.
    real_avma: Option<u64>,
}

/// Hooks functions of a process, whose agent may wait for that.
///
/// # Errors
/// Returns an error if the process may not be traced, has no agent of heapr, or gave no suitable
/// moment. It then runs on unchanged.
pub fn hook_inside(pid: u32, functions: &[InsideFunction]) -> Result<InsideReport> {
    let _change = Change::begin(pid);
    in_own_thread(|| hook_here(pid, functions))
}

fn hook_here(pid: u32, functions: &[InsideFunction]) -> Result<InsideReport> {
    let memory = &open(pid)?;
    let modules = Modules::read(pid, memory)?;
    let mut agent = Agent::find(pid, memory, &modules)?;
    target::check(pid, false)?;
    let mut report = InsideReport::default();
    let planned = plan_functions(pid, memory, &modules, &agent, functions, &mut report)?;
    if planned.is_empty() {
        return Ok(report);
    }
    let gadgets = plan::gadgets(pid, memory)?;
    let no_moment =
        |reason: &str| Error::NoQuietMoment { pid, seconds: STOP_LIMIT.as_secs(), reason: reason.to_owned() };
    let mut stopped = match Stopped::stop(pid, None, STOP_LIMIT)? {
        Ok(stopped) => stopped,
        Err(restless) => return Err(restless.no_moment(STOP_LIMIT)),
    };
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let prologues: Vec<&Prologue> = planned.iter().map(|planned| &planned.prologue).collect();
    let settled = stopped
        .settle(SETTLE_LIMIT, |thread| thread_place::is_in_prologue(&prologues, memory, &mappings, thread))?;
    if settled != Settled::Quiet {
        return Err(no_moment("a thread was at the entry of the allocator"));
    }
    let Some(&thread) = thread_place::choose_thread(memory, &mappings, &stopped.threads) else {
        return Err(no_moment("no thread has room on its stack"));
    };
    write_hooks(pid, memory, gadgets, &thread, &planned, agent.record.as_mut(), &mut report)?;
    report.pause = stopped.resume();
    Ok(report)
}

fn plan_functions(
    pid: u32,
    memory: &ProcessMemory,
    modules: &Modules,
    agent: &Agent,
    functions: &[InsideFunction],
    report: &mut InsideReport,
) -> Result<Vec<Planned>> {
    let field = |at: usize| agent.word(memory, at).ok_or(Error::NotAttached { pid });
    let kept_avma = field(offset_of!(Injection, kept_entry))?;
    let light_avma = field(offset_of!(Injection, light_entry))?;
    let first_avma = field(offset_of!(Injection, inner))?;
    let first_kept_avma = field(offset_of!(Injection, inner_kept))?;
    let kept_bytes = field(offset_of!(Injection, inner_kept_bytes))?;
    let names_avma = field(offset_of!(Injection, inner_heap_names))?;
    let place = |number: usize| first_avma + (number * size_of::<InnerFunction>()) as u64;
    let mut free = (0..INNER_FUNCTIONS)
        .filter(|&number| memory.read_u64(place(number) + offset_of!(InnerFunction, real) as u64) == Ok(0));
    let known = (0..INNER_HEAPS).map(|heap| {
        let name = memory.read_vec(names_avma + heap as u64 * 32, 32).unwrap_or_default();
        String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
    });
    let mut heaps = InsideHeaps::known(known);
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let sampling = agent.sampling(memory);
    let broken = broken_groups(memory, functions, agent.record.is_some());
    let mut planned: Vec<Planned> = Vec::new();
    for function in functions {
        let seen: Vec<u64> = planned.iter().map(|planned| planned.prologue.function_avma).collect();
        if function.may_throw && agent.record.is_some() {
            report.not_hooked.push((function.name.clone(), THROWS.to_owned()));
            continue;
        }
        let prologue = match function.prologue(memory, &seen) {
            Ok(Some(prologue)) => prologue,
            Ok(None) => continue,
            Err(reason) => {
                report.not_hooked.push((function.name.clone(), reason.to_owned()));
                continue;
            }
        };
        if function.whole_of.is_some_and(|group| broken.contains(&group)) {
            report.not_hooked.push((function.name.clone(), NOT_ALL.to_owned()));
            continue;
        }
        // The function is hooked already, in the process that this one was forked from.
        if jumps_to_island(memory, &mappings, prologue.entry_avma) {
            continue;
        }
        // Two names of one function need one hook.
        if planned.iter().any(|known| known.prologue.entry_avma == prologue.entry_avma) {
            continue;
        }
        let Some(number) = free.next() else {
            report.not_hooked.push((function.name.clone(), "there are too many".to_owned()));
            continue;
        };
        let at = |field: usize| place(number) + field as u64;
        let mut words = vec![
            (at(offset_of!(InnerFunction, signature)), function.signature.word()),
            (at(offset_of!(InnerFunction, heap)), heaps.number_of(function)),
        ];
        let (real, own) = (at(offset_of!(InnerFunction, real)), at(offset_of!(InnerFunction, own)));
        words.extend(function.instead_avma.map(|instead_avma| (real, instead_avma)));
        words.extend(function.code_words(place(number)));
        let counted = sampling.and_then(|sampling| {
            function.counted(memory, &prologue, sampling, &|avma| {
                functions.iter().any(|function| function.begins_at(avma))
                    || jumps_to_island(memory, &mappings, avma)
            })
        });
        let entry_avma = if function.keeps_convention { light_avma } else { kept_avma };
        planned.push(Planned {
            name: function.name.clone(),
            prologue,
            way: Way::Kept {
                entry_avma,
                function_avma: first_kept_avma + number as u64 * kept_bytes,
                counted,
            },
            words,
            real_avma: Some(if function.instead_avma.is_some() { own } else { real }),
        });
    }
    if let Some(first) = planned.first_mut() {
        first.words.extend(heaps.words().map(|(offset, word)| (names_avma + offset, word)));
    }
    planned.extend(after_load(
        memory,
        &mappings,
        modules,
        kept_avma,
        field(offset_of!(Injection, after_load))?,
    ));
    Ok(planned)
}

/// True if a function begins with a jump to code outside of any file.
fn jumps_to_island(memory: &ProcessMemory, mappings: &[Mapping], entry_avma: u64) -> bool {
    let code = memory.read_vec(entry_avma, 16).unwrap_or_default();
    let island = island_of(entry_avma, &code).and_then(|page_avma| mappings::find(mappings, page_avma));
    island.is_some_and(|mapping| mapping.is_executable && mapping.inode == 0)
}

/// Plans a hook of the function that the loader calls after loading modules, unless it is hooked
/// already.
fn after_load(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    modules: &Modules,
    entry_avma: u64,
    function_avma: u64,
) -> Option<Planned> {
    let function = InsideFunction::after_load(memory, modules)?;
    let prologue = function.prologue(memory, &[]).ok()??;
    if jumps_to_island(memory, mappings, prologue.entry_avma) {
        return None;
    }
    let way = Way::Kept { entry_avma, function_avma, counted: None };
    Some(Planned { name: function.name, prologue, way, words: Vec::new(), real_avma: None })
}

/// Maps the trampoline areas by a thread of the process, fills the agent's table, writes the jumps.
fn write_hooks(
    pid: u32,
    memory: &ProcessMemory,
    gadgets: crate::remote::Gadgets,
    thread: &StoppedThread,
    planned: &[Planned],
    mut record: Option<&mut Record>,
    report: &mut InsideReport,
) -> Result<()> {
    let memory_error = |source| Error::Memory { pid, source };
    let mut borrowed = Borrowed::new(pid, memory, gadgets, thread)?;
    let mut islands: Vec<(Island, u64)> = Vec::new();
    let mut jumps = Vec::new();
    for function in planned {
        let entry_avma = function.prologue.entry_avma;
        let near =
            islands.iter().position(|(island, _)| island.start_avma.abs_diff(entry_avma) < JUMP_DISTANCE);
        let near = match near {
            Some(near) => near,
            None => {
                let bytes = Island::bytes_for(planned.len());
                if record.as_ref().is_some_and(|record| record.islands.len() >= ISLANDS_MAX) {
                    report.not_hooked.push((function.name.clone(), "there are too many".to_owned()));
                    continue;
                }
                let start = map_near(pid, memory, &mut borrowed, entry_avma, bytes)?;
                let island = match &mut record {
                    Some(record) => {
                        record.islands.push((start, bytes));
                        memory.write(record.start_avma, &record.to_bytes()).map_err(memory_error)?;
                        Island::new(start, record.start_avma, record.gate_avma())
                    }
                    None => Island::new(start, start, start),
                };
                islands.push((island, bytes));
                islands.len() - 1
            }
        };
        let (island, _) = &mut islands[near];
        let added = island
            .add(&function.prologue, &function.way)
            .and_then(|landing| Ok((landing, Island::jump_from(&function.prologue, landing)?)));
        match added {
            Ok((landing, jump)) => {
                // No gate is needed, because the agent is active.
                let at = (landing.target_avma - island.start_avma) as usize;
                island.bytes[at..at + 8].copy_from_slice(&landing.trampoline_avma.to_le_bytes());
                island.count(landing);
                jumps.push((function, landing, jump));
            }
            Err(reason) => report.not_hooked.push((function.name.clone(), reason.to_owned())),
        }
    }
    for (island, bytes) in &islands {
        memory.write(island.start_avma, &island.bytes).map_err(memory_error)?;
        let arguments = [island.start_avma, *bytes, PROT_READ_EXECUTE, 0, 0, 0];
        borrowed.call_system("mprotect", SYS_MPROTECT, arguments)?;
    }
    borrowed.bring_home()?;
    for (function, landing, _) in &jumps {
        let real = function.real_avma.map(|avma| (avma, landing.moved_avma));
        for (avma, word) in function.words.iter().copied().chain(real) {
            memory.write(avma, &word.to_le_bytes()).map_err(memory_error)?;
        }
    }
    if let Some(record) = record {
        record.code.has_other = true;
        let room = PATCHES_MAX.saturating_sub(record.patches.len());
        for (function, ..) in jumps.drain(room.min(jumps.len())..) {
            report.not_hooked.push((function.name.clone(), "there are too many".to_owned()));
        }
        for (function, landing, new) in &jumps {
            let counts = landing.counts;
            let (address_avma, target_avma) = (function.prologue.entry_avma, landing.target_avma);
            let mut original = [0; 5];
            memory.read(address_avma, &mut original).map_err(memory_error)?;
            record.patches.push(Patch { address_avma, original, new: *new, target_avma, counts });
        }
        // The record must list the changes before they are made.
        memory.write(record.start_avma, &record.to_bytes()).map_err(memory_error)?;
    }
    for (function, _, jump) in &jumps {
        memory.write(function.prologue.entry_avma, jump).map_err(memory_error)?;
        if function.real_avma.is_some() {
            report.hooked.push(function.name.clone());
        }
    }
    Ok(())
}

/// Maps memory near a function.
fn map_near(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    near_avma: u64,
    bytes: u64,
) -> Result<u64> {
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let hint = address_room::room_near(&mappings, near_avma, bytes, JUMP_DISTANCE)
        .ok_or(Error::Unsupported { pid, reason: "there is no free address range near its allocator" })?;
    let arguments = [hint, bytes, PROT_READ_WRITE, MAP_FLAGS, u64::MAX, 0];
    thread.call_system("mmap", SYS_MMAP, arguments)
}
