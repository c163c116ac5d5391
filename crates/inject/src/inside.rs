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

mod hooks;

use std::mem::offset_of;
use std::time::Duration;

use heapr_wire::{
    BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL, INNER_FUNCTIONS, INNER_HEAPS, Injection, InnerFunction,
};

use crate::arch::{AllRegistersCountdown, Countdown, Place, Prologue, Sampling, Way, island_of};
use crate::areas::{Ground, TOO_MANY};
use crate::change::Change;
use crate::detach::find_record_among;
use crate::error::{Error, Result};
use crate::inside_function::{InsideFunction, InsideHeaps, NOT_ALL, THROWS, broken_groups};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::plan;
use crate::record::Record;
use crate::remote::Borrowed;
use crate::stop::{Settled, Stopped};
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

impl InsideReport {
    fn refuse(&mut self, function: &InsideFunction, reason: &str) {
        self.not_hooked.push((function.name.clone(), reason.to_owned()));
    }
}

const STOP_LIMIT: Duration = Duration::from_millis(200);
const SETTLE_LIMIT: Duration = Duration::from_millis(100);

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
        if let Some(record) = find_record_among(pid, memory, modules)? {
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

impl Planned {
    /// Plans the entry of the agent's table with a number.
    fn new(
        function: &InsideFunction,
        prologue: Prologue,
        counted: Option<AllRegistersCountdown>,
        (table, number): (&AgentTable, usize),
        heap: u64,
    ) -> Self {
        let at = |field: usize| table.entry_avma(number) + field as u64;
        let mut words = vec![
            (at(offset_of!(InnerFunction, signature)), function.signature.word()),
            (at(offset_of!(InnerFunction, heap)), heap),
        ];
        let (real, own) = (at(offset_of!(InnerFunction, real)), at(offset_of!(InnerFunction, own)));
        words.extend(function.instead_avma.map(|instead_avma| (real, instead_avma)));
        words.extend(function.code_words(table.entry_avma(number)));
        let entry_avma = if function.keeps_convention { table.light_avma } else { table.kept_avma };
        let function_avma = table.first_kept_avma + number as u64 * table.kept_bytes;
        Self {
            name: function.name.clone(),
            prologue,
            way: Way::Kept { entry_avma, function_avma, counted },
            words,
            real_avma: Some(if function.instead_avma.is_some() { own } else { real }),
        }
    }
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
    let gadgets = plan::gadgets_among(pid, memory, &modules)?;
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
    let borrowed = Borrowed::new(pid, memory, gadgets, &thread)?;
    let ground = Ground { pid, memory, mappings: &mappings };
    hooks::write(ground, borrowed, &planned, agent.record.as_mut(), &mut report)?;
    report.pause = stopped.resume();
    Ok(report)
}

/// Addresses in the agent's table of embedded functions.
struct AgentTable {
    /// Entry that saves all registers.
    kept_avma: u64,
    /// Entry for functions that keep the calling convention.
    light_avma: u64,
    /// First entry of the table.
    first_avma: u64,
    /// Code of the first function, and size of each in bytes.
    first_kept_avma: u64,
    kept_bytes: u64,
    /// Names of the heaps.
    names_avma: u64,
    after_load_avma: u64,
}

impl AgentTable {
    fn of(agent: &Agent, pid: u32, memory: &ProcessMemory) -> Result<Self> {
        let field = |at: usize| agent.word(memory, at).ok_or(Error::NotAttached { pid });
        Ok(Self {
            kept_avma: field(offset_of!(Injection, all_registers_entry))?,
            light_avma: field(offset_of!(Injection, light_entry))?,
            first_avma: field(offset_of!(Injection, inner))?,
            first_kept_avma: field(offset_of!(Injection, inner_kept))?,
            kept_bytes: field(offset_of!(Injection, inner_kept_bytes))?,
            names_avma: field(offset_of!(Injection, inner_heap_names))?,
            after_load_avma: field(offset_of!(Injection, after_load))?,
        })
    }

    fn entry_avma(&self, number: usize) -> u64 {
        self.first_avma + (number * size_of::<InnerFunction>()) as u64
    }

    fn is_free(&self, number: usize, memory: &ProcessMemory) -> bool {
        memory.read_u64(self.entry_avma(number) + offset_of!(InnerFunction, real) as u64) == Ok(0)
    }

    /// Heaps that have names in the table.
    fn heaps(&self, memory: &ProcessMemory) -> InsideHeaps {
        InsideHeaps::known((0..INNER_HEAPS).map(|heap| {
            let name = memory.read_vec(self.names_avma + heap as u64 * 32, 32).unwrap_or_default();
            String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
        }))
    }
}

fn plan_functions(
    pid: u32,
    memory: &ProcessMemory,
    modules: &Modules,
    agent: &Agent,
    functions: &[InsideFunction],
    report: &mut InsideReport,
) -> Result<Vec<Planned>> {
    let table = AgentTable::of(agent, pid, memory)?;
    let mut free = (0..INNER_FUNCTIONS).filter(|&number| table.is_free(number, memory));
    let mut heaps = table.heaps(memory);
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let sampling = agent.sampling(memory);
    let broken = broken_groups(memory, functions, agent.record.is_some());
    let mut planned: Vec<Planned> = Vec::new();
    for function in functions {
        let seen: Vec<u64> = planned.iter().map(|planned| planned.prologue.function_avma).collect();
        if function.may_throw && agent.record.is_some() {
            report.refuse(function, THROWS);
            continue;
        }
        let prologue = match function.prologue(memory, &seen) {
            Ok(Some(prologue)) => prologue,
            Ok(None) => continue,
            Err(reason) => {
                report.refuse(function, reason);
                continue;
            }
        };
        if function.whole_of.is_some_and(|group| broken.contains(&group)) {
            report.refuse(function, NOT_ALL);
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
            report.refuse(function, TOO_MANY);
            continue;
        };
        let counted = sampling.and_then(|sampling| {
            function.counted(memory, &prologue, sampling, &|avma| {
                functions.iter().any(|function| function.begins_at(avma))
                    || jumps_to_island(memory, &mappings, avma)
            })
        });
        planned.push(Planned::new(function, prologue, counted, (&table, number), heaps.number_of(function)));
    }
    if let Some(first) = planned.first_mut() {
        first.words.extend(heaps.words().map(|(offset, word)| (table.names_avma + offset, word)));
    }
    planned.extend(after_load(memory, &mappings, modules, table.kept_avma, table.after_load_avma));
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
