//! Reads a process without attaching to it or stopping it.

use anyhow::Context as _;
use heapr_glibc_heap::{Error as HeapError, HeapMemory, Plan, Regions, regions};
use heapr_inject::StoppedProcess;
use heapr_proc::smaps::MappingPages;
use heapr_proc::{Mapping, PageMap, ResidentCounters, machine, smaps};
use heapr_resident::{Account, Beside, BlockWatcher, MallocFigures, Subject};

use super::heap_look::{self, BothStates, HeapLook};
use super::quiet_memory::QuietMemory;
use super::{Moment, Resident};

/// Reads everything known of a process. `is_deep`: glibc's heap is read, too, and shown to
/// `watcher`.
pub(super) fn read(pid: u32, is_deep: bool, watcher: &mut impl BlockWatcher) -> anyhow::Result<Resident> {
    let counters = ResidentCounters::of_process(pid);
    let mut limits = Vec::new();
    let mut mappings = match smaps::read(pid) {
        Ok(mappings) if !mappings.is_empty() => mappings,
        Ok(_) => return only_counters(pid, counters, "it has no memory of its own"),
        Err(error) => return only_counters(pid, counters, &format!("/proc/{pid}/smaps: {error}")),
    };
    let process = StoppedProcess::about_to_stop(pid);
    let page_map = PageMap::of_process(pid);
    if let Err(error) = &page_map {
        limits.push(format!("/proc/{pid}/pagemap: {error}: pages shared by several owners are estimated"));
    }
    let page_map = page_map.as_ref().ok();
    let is_readable = can_be_read(&process, &mappings);
    if !is_readable {
        limits.push(format!("its memory cannot be read{}: heaps are told by their places only", why_not()));
    }
    let addresses = addresses_of(&mappings);
    let memory = QuietMemory::new(&process, page_map, &addresses);
    let heap = heap_of(&memory, is_readable, &mut limits);
    let look = if is_deep { look_into(&heap, &process, page_map, &mut limits) } else { None };
    let mut stack_pointers = heapr_proc::stack_pointers(pid);
    let (mut malloc, mut allocator) = match heap {
        Heap::Glibc(_, regions) => (regions, None),
        Heap::Other(by) => (Regions::default(), Some(by)),
        Heap::None => (Regions::default(), None),
    };
    if let Some(look) = &look {
        malloc = look.regions.clone();
        mappings.clone_from(&look.mappings);
        stack_pointers.clone_from(&look.stack_pointers);
        allocator = None;
    }
    let executable = heapr_proc::executable(pid).map(|path| path.to_string_lossy().into_owned());
    let subject = Subject {
        executable: executable.unwrap_or_default(),
        stack_pointers,
        has_go: heapr_symbols::is_go_program(&heapr_proc::folder(pid).join("exe")),
        allocator,
        malloc,
        recorder_avma: recorder_memory(pid, &mappings),
        mappings,
    };
    let addresses = addresses_of(&subject.mappings);
    let memory = QuietMemory::new(&process, page_map, &addresses);
    let states = BothStates { kept: look.as_ref().map(|look| &look.states), pages: page_map };
    let mut account = Account::of(&subject, &memory, &states);
    if let Some(look) = &look {
        account.divide_heap(&look.rundown, &subject.malloc.regions, &states, watcher);
    }
    if account.estimated_mappings > 0 && page_map.is_some() {
        limits.push(format!(
            "the pages of {} mappings changed while they were read",
            account.estimated_mappings
        ));
    }
    let threads = heapr_proc::threads(pid).map_or(0, Iterator::count) as u64;
    let beside = Beside::of(&account.pages, counters.as_ref(), threads);
    let malloc_figures = look.as_ref().map(|look| MallocFigures::of(&look.rundown, &look.regions));
    let moment = look.map(|look| Moment { held: look.held, is_quiet: look.is_quiet });
    Ok(Resident {
        pid,
        executable: subject.executable,
        account,
        beside,
        moment,
        malloc_figures,
        v8: None,
        objects: None,
        pinned_by: Vec::new(),
        recorded: None,
        difference: None,
        group: None,
        limits,
    })
}

/// Returns heapr's own mappings in a process that it records. For an agent of another build only
/// files are known.
fn recorder_memory(pid: u32, mappings: &[MappingPages]) -> Vec<(u64, u64)> {
    let is_recorded = mappings.iter().any(|found| found.mapping.name.contains("memfd:heapr-pool"));
    if is_recorded { heapr_inject::agent_memory(pid).unwrap_or_default() } else { Vec::new() }
}

fn addresses_of(mappings: &[MappingPages]) -> Vec<Mapping> {
    mappings.iter().map(|found| found.mapping.clone()).collect()
}

/// Returns an answer from the kernel's counters alone, if nothing else can be read.
fn only_counters(pid: u32, counters: Option<ResidentCounters>, why: &str) -> anyhow::Result<Resident> {
    let counters = counters.with_context(|| {
        format!("process {pid} cannot be explained: {why}; it has ended, or it is a thread of the kernel")
    })?;
    let account = Account::of_counters(&counters);
    let threads = heapr_proc::threads(pid).map_or(0, Iterator::count) as u64;
    let beside = Beside::of(&account.pages, Some(&counters), threads);
    let limits = vec![format!(
        "{why}: only the kernel's counters can be told; run heapr as root, or as the user of the process"
    )];
    Ok(Resident {
        pid,
        executable: String::new(),
        account,
        beside,
        moment: None,
        malloc_figures: None,
        v8: None,
        objects: None,
        pinned_by: Vec::new(),
        recorded: None,
        difference: None,
        group: None,
        limits,
    })
}

/// Whether the process's memory can be read.
fn can_be_read(memory: &StoppedProcess, mappings: &[MappingPages]) -> bool {
    let readable = mappings.iter().filter(|found| found.mapping.is_readable && found.pages.rss_bytes > 0);
    readable.take(4).any(|found| memory.read(found.mapping.start_avma, &mut [0; 8]) == 8)
}

fn why_not() -> String {
    match machine::ptrace_scope().as_str() {
        "" | "0" => " (not permitted)".to_owned(),
        scope => format!(" (kernel.yama.ptrace_scope is {scope})"),
    }
}

/// Allocator that a process uses as its malloc.
enum Heap {
    /// glibc's malloc, and the regions of its heap.
    Glibc(Plan, Regions),
    /// Malloc of another module.
    Other(String),
    /// No malloc was found.
    None,
}

fn heap_of(memory: &impl HeapMemory, is_readable: bool, limits: &mut Vec<String>) -> Heap {
    if !is_readable {
        return Heap::None;
    }
    match plan_of(memory) {
        Ok(plan) => {
            let regions = regions(&plan, memory, &[]).unwrap_or_default();
            Heap::Glibc(plan, regions)
        }
        Err(HeapError::OtherAllocator { by }) => Heap::Other(by),
        Err(HeapError::NoLibc) => Heap::None,
        Err(error) => {
            limits.push(format!("glibc's heap is told by the names of mappings only: {error}"));
            Heap::None
        }
    }
}

/// Reads the blocks of glibc's heap; `None`, with a reason in `limits`, where that is not possible.
fn look_into(
    heap: &Heap,
    process: &StoppedProcess,
    page_map: Option<&PageMap>,
    limits: &mut Vec<String>,
) -> Option<HeapLook> {
    match (heap, page_map) {
        (Heap::Glibc(plan, _), Some(pages)) => {
            let look = heap_look::look(process.pid(), plan, process, pages);
            look.map_err(|error| limits.push(format!("malloc's heap was not looked into: {error:#}"))).ok()
        }
        (Heap::Glibc(..), None) => None,
        _ => {
            limits.push("only glibc's heap can be looked into, and this process has none".to_owned());
            None
        }
    }
}

/// Finds the heap of a process that runs. Retries, because a heap that is being changed is not
/// recognised.
fn plan_of(memory: &impl HeapMemory) -> Result<Plan, HeapError> {
    const TRIES: u32 = 4;
    for _ in 1..TRIES {
        match Plan::make(memory) {
            Err(HeapError::NoMainArena { .. }) => {}
            found => return found,
        }
    }
    Plan::make(memory)
}
