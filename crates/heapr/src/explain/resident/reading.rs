//! Reading a process: nothing is attached, nothing stands still.

use anyhow::Context as _;
use heapr_glibc_heap::{Error as HeapError, HeapMemory, Plan, Regions, regions};
use heapr_inject::StoppedProcess;
use heapr_proc::smaps::MappingPages;
use heapr_proc::{Mapping, PageMap, ResidentCounters, machine, smaps};
use heapr_resident::{Account, Beside, Subject};

use super::Resident;
use super::quiet_memory::QuietMemory;

/// All that can be told of a process.
pub(super) fn read(pid: u32) -> anyhow::Result<Resident> {
    let counters = ResidentCounters::of_process(pid);
    let mut limits = Vec::new();
    let mappings = match smaps::read(pid) {
        Ok(mappings) if !mappings.is_empty() => mappings,
        Ok(_) => return only_counters(pid, counters, "it has no memory of its own"),
        Err(error) => return only_counters(pid, counters, &format!("/proc/{pid}/smaps: {error}")),
    };
    let process = StoppedProcess::of(pid);
    let states = PageMap::of_process(pid);
    let addresses: Vec<Mapping> = mappings.iter().map(|found| found.mapping.clone()).collect();
    let memory = QuietMemory::new(&process, states.as_ref().ok(), &addresses);
    let is_readable = can_be_read(&process, &mappings);
    if !is_readable {
        limits.push(format!("its memory cannot be read{}: heaps are told by their places only", why_not()));
    }
    if let Err(error) = &states {
        limits.push(format!("/proc/{pid}/pagemap: {error}: pages shared by several owners are estimated"));
    }
    let (malloc, allocator) = heap_of(&memory, is_readable, &mut limits);
    let subject = Subject {
        executable: heapr_proc::executable(pid)
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
        stack_pointers: heapr_proc::stack_pointers(pid),
        allocator,
        malloc,
        mappings,
    };
    let account = Account::of(&subject, &memory, &states.as_ref().ok());
    if account.estimated_mappings > 0 && states.is_ok() {
        limits.push(format!(
            "the pages of {} mappings changed while they were read",
            account.estimated_mappings
        ));
    }
    let threads = heapr_proc::threads(pid).map_or(0, Iterator::count) as u64;
    let beside = Beside::of(&account.pages, counters.as_ref(), threads);
    Ok(Resident { pid, executable: subject.executable, account, beside, limits })
}

/// Where nothing but the kernel's counters may be read.
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
    Ok(Resident { pid, executable: String::new(), account, beside, limits })
}

/// Whether any of its memory can be looked into.
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

/// Where glibc's heap lies, or whose malloc it is instead.
fn heap_of(
    memory: &impl HeapMemory,
    is_readable: bool,
    limits: &mut Vec<String>,
) -> (Regions, Option<String>) {
    if !is_readable {
        return (Regions::default(), None);
    }
    let plan = match plan_of(memory) {
        Ok(plan) => plan,
        Err(HeapError::OtherAllocator { by }) => return (Regions::default(), Some(by)),
        Err(HeapError::NoLibc) => return (Regions::default(), None),
        Err(error) => {
            limits.push(format!("glibc's heap is told by the names of mappings only: {error}"));
            return (Regions::default(), None);
        }
    };
    (regions(&plan, memory, &[]).unwrap_or_default(), None)
}

/// Finds the heap of a process that runs: where it is just being changed it does not look like one.
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
