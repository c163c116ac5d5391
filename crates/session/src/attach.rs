//! Attaches to running processes, and detaches from them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use heapr_allocators::Sought;
use heapr_glibc_heap::{Error as RundownError, Rundown};
use heapr_inject::StoppedProcess;
use heapr_inject::{AttachReport, AttachRequest, DetachReport, HeldExec, LoadedModule};
use heapr_proc::inner_pid;
use heapr_wire::FLAG_HOOK_MMAP;

use crate::agent_file::AGENT;
use crate::recorder::facts::target_view::sees_file;
use crate::recorder::go::GoTarget;
use crate::recorder::inside::{Finder, Inside, Looked, WantedFile, functions_of};
use crate::recorder::intake::pool_growth;
use crate::recorder::memory::mebibytes;
use crate::{Error, Session};

/// Facts that lead a target into the session.
#[derive(Debug, Clone)]
pub(crate) struct Preload {
    /// Path of the agent's file.
    pub(crate) agent: PathBuf,
    /// Value of the session variable, without the root.
    pub(crate) session: String,
    /// Descriptor of the shared buffers.
    pub(crate) pool: i32,
    /// True if mmap and related calls are hooked.
    pub(crate) hooks_mmap: bool,
    /// True if seccomp filters that cannot be read are assumed not to kill the process.
    pub(crate) despite_seccomp: bool,
    /// Texts that describe further embedded allocators.
    pub(crate) allocators: Vec<String>,
    /// True if allocations are sampled.
    pub(crate) is_sampled: bool,
}

/// Result of an attach whose blocks are not in the trace yet.
#[derive(Debug)]
pub(crate) struct AttachOutcome {
    report: AttachReport,
    found: Option<Result<Rundown, String>>,
    inside: Inside,
    /// Modules that were searched.
    modules: Vec<LoadedModule>,
    /// Go's runtime, if nothing can be loaded into the process and it is read from outside.
    outside: Option<GoTarget>,
}

impl AttachOutcome {
    /// Result for a Go program without a loader. `is_new`: none of its code has run.
    fn of_outside(pid: u32, is_new: bool) -> Option<Self> {
        let go = GoTarget::of_program(pid)?;
        if is_new {
            go.switch_on(pid);
        }
        let report = AttachReport { is_from_outside: true, ..AttachReport::default() };
        let (inside, modules) = (Inside::default(), Vec::new());
        Some(Self { report, found: None, inside, modules, outside: Some(go) })
    }
}

/// Attaches to a process, from any thread. `held`: the process is stopped before its own code has
/// run.
pub(crate) fn attach_target(
    preload: &Preload,
    pid: u32,
    held: Option<HeldExec>,
    fail_at: Option<u32>,
) -> Result<AttachOutcome, Error> {
    let modules = heapr_inject::loaded_modules(pid);
    // The loader alone is not a C library.
    let has_malloc = |module: &LoadedModule| module.exports_malloc && !module.name.contains("/ld-");
    if !modules.as_ref().is_ok_and(|modules| modules.iter().any(has_malloc))
        && let Some(outcome) = AttachOutcome::of_outside(pid, held.is_some())
    {
        return Ok(outcome);
    }
    // A process held at its start has no memory yet, and its program's need is unknown.
    if held.is_none() {
        pool_growth::check_target(pid)?;
    }
    let is_same_namespace = inner_pid(pid) == pid;
    let agent_path = Some(preload.agent.as_path()).filter(|path| sees_file(pid, path));
    // Finding the heap takes longer than reading it, so it is done while the target runs.
    let heap = StoppedProcess::about_to_stop(pid);
    let heap_plan = find_heap(&heap);
    let mut room = heap_plan.as_ref().map(|plan| plan.room(&heap)).unwrap_or_default();
    let mut room = Some(&mut room);
    // A process held before its own code ran, and without a heap, has allocated nothing.
    let has_no_heap = held.is_some() && heap_plan.is_err();
    let mut found = None;
    let modules = modules.unwrap_or_default();
    let inside = look_inside(preload, pid, &modules);
    if let Some(go) = inside.go.as_ref().filter(|_| held.is_some()) {
        go.switch_on(pid);
    }
    let request = AttachRequest {
        pid,
        agent: &AGENT,
        pool: preload.pool,
        session: if is_same_namespace { &preload.session } else { "" },
        agent_path,
        inside: &functions_of(&inside),
        hooks_mmap: preload.hooks_mmap,
        is_sampled: preload.is_sampled,
        despite_seccomp: preload.despite_seccomp,
        fail_at,
    };
    let report = heapr_inject::attach_held(&request, held, &mut |stopped| {
        // The stop is the only moment at which the heap can be read.
        let Some(room) = room.take().filter(|_| !has_no_heap) else { return };
        found = Some(match &heap_plan {
            Ok(plan) => heapr_glibc_heap::read(plan, &heap, &stopped.thread_pointers, room)
                .map_err(|error| error.to_string()),
            // The heap changed during each try; the process is stopped now.
            Err(RundownError::NoMainArena { .. }) => heapr_glibc_heap::Plan::make(&heap)
                .and_then(|plan| heapr_glibc_heap::read(&plan, &heap, &stopped.thread_pointers, room))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
    })?;
    // The target runs again.
    let found = found.map(|found| found.map(heapr_glibc_heap::Reading::finish));
    Ok(AttachOutcome { report, found, inside, modules, outside: None })
}

/// Finds the embedded allocators of a process that is about to be attached to.
fn look_inside(preload: &Preload, pid: u32, modules: &[LoadedModule]) -> Inside {
    // The texts were checked when the session began.
    let sought = Sought::new(&preload.allocators);
    // As in started programs: separate heaps would be recorded in full.
    let sought = if preload.is_sampled { sought.of_main_heap() } else { sought };
    let mut finder = Finder::new(sought);
    let inside = finder.look(pid, modules);
    let wanted = finder.wanted(&inside);
    if wanted.is_empty() {
        return inside;
    }
    // The process runs while the files are fetched.
    let remarks = WantedFile::fetch_all(&wanted);
    Inside { remarks, ..finder.look(pid, modules) }
}

/// Finds the heap of a running process. The search is repeated, because a heap that is just being
/// changed is not recognised.
fn find_heap(heap: &StoppedProcess) -> Result<heapr_glibc_heap::Plan, RundownError> {
    const TRIES: u32 = 4;
    for _ in 1..TRIES {
        match heapr_glibc_heap::Plan::make(heap) {
            Err(RundownError::NoMainArena { .. }) => {}
            found => return found,
        }
    }
    heapr_glibc_heap::Plan::make(heap)
}

impl Session {
    /// Attaches to a running process and records it.
    ///
    /// The process stands still for some milliseconds. The blocks of its glibc heap at that moment
    /// become allocations under the single frame `allocated before attach`. Each has the size that
    /// the block can hold. Programs that the process starts are followed if they can see the
    /// agent's file and this process.
    ///
    /// # Errors
    /// The process does not exist, may not be traced, cannot be hooked, or offered no suitable
    /// moment. It then runs on unchanged.
    pub fn attach(&mut self, pid: u32) -> Result<AttachReport, Error> {
        self.attach_failing_at(pid, None)
    }

    /// Variant of [`Self::attach`] for tests, in which step `fail_at` fails.
    #[doc(hidden)]
    pub fn attach_failing_at(&mut self, pid: u32, fail_at: Option<u32>) -> Result<AttachReport, Error> {
        let outcome = attach_target(&self.preload(), pid, None, fail_at)
            .inspect_err(|_| self.recorder.hold_no_more())?;
        Ok(self.take_attached(pid, outcome))
    }

    /// Facts that lead an attached process into this session.
    pub(crate) fn preload(&self) -> Preload {
        // The target's control group may be another than the recorder's.
        self.recorder.pool().forbid_others();
        self.preload_of_children()
    }

    /// Facts that lead children of recorded programs into this session.
    pub(crate) fn preload_of_children(&self) -> Preload {
        let flags = self.recorder.pool().control().flags.load(Relaxed);
        Preload {
            agent: self.agent.clone(),
            session: format!("{}:{}", std::process::id(), self.recorder.growth.descriptor.number()),
            pool: self.recorder.growth.descriptor.number(),
            hooks_mmap: flags & FLAG_HOOK_MMAP != 0,
            despite_seccomp: self.properties().despite_seccomp,
            allocators: self.properties().allocators.clone(),
            is_sampled: self.properties().sample.is_some(),
        }
    }

    /// Enters the result of an attach into the recording.
    pub(crate) fn take_attached(&mut self, pid: u32, outcome: AttachOutcome) -> AttachReport {
        let AttachOutcome { mut report, found, inside, modules, outside } = outcome;
        if let Some(go) = outside {
            self.recorder.add_outside(pid, go);
            return report;
        }
        self.recorder.process_attached(report.process_slot, report.process_generation, pid);
        if let Some(watch) = &self.inside {
            watch.add_known((report.process_slot, report.process_generation), modules);
        }
        match found {
            Some(Ok(found)) => {
                let blocks = found.blocks().map(|block| (block.address_avma, block.usable_bytes));
                report.blocks_before =
                    self.recorder.add_blocks_before(report.process_slot, report.process_generation, blocks);
            }
            Some(Err(reason)) => {
                self.recorder.note_unread_heap(report.process_slot, report.process_generation, &reason);
                report.heap_unread = Some(reason);
            }
            None => {}
        }
        let allocators = inside.modules.iter().flat_map(|module| &module.allocators);
        let heaps: BTreeSet<&str> = allocators.map(|allocator| allocator.heap.as_str()).collect();
        report.other_heaps = heaps.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        // Hooks of further C libraries are left out.
        let functions: BTreeSet<String> =
            functions_of(&inside).into_iter().map(|function| function.name).collect();
        let hooked_count = report.hooks.iter().filter(|&name| functions.contains(name)).count();
        self.recorder.looked.push(Looked {
            key: (report.process_slot, report.process_generation),
            inside,
            memory: None,
            not_hooked: Vec::new(),
            hooked_count,
            failure: None,
        });
        report
    }

    /// Releases what a failed attach in another thread held back.
    pub(crate) fn forget_attach(&mut self) {
        self.recorder.hold_no_more();
    }

    /// Lets a process go; its recording stays in the trace. An attached process is restored to its
    /// former state. In a process started with the agent, the agent stays loaded, and calls bypass
    /// it.
    ///
    /// # Errors
    /// The process is not recorded by this session, has ended, or may not be traced any more.
    pub fn detach(&mut self, pid: u32) -> Result<DetachReport, Error> {
        if !self.recorder.knows(pid) {
            return Err(heapr_inject::Error::NotAttached { pid }.into());
        }
        if self.let_go_outside(pid) {
            return Ok(DetachReport::default());
        }
        // Threads of the process may wait for a buffer.
        let report = heapr_inject::detach(pid, &mut || self.step_now())?;
        self.take_detached(pid, &report);
        Ok(report)
    }

    /// Lets go of a process without an agent. Returns `false` if there is no such process.
    pub(crate) fn let_go_outside(&mut self, pid: u32) -> bool {
        let is_one = self.recorder.let_go_outside(pid);
        if is_one {
            self.step_now();
        }
        is_one
    }

    /// Enters the result of a detach into the recording.
    pub(crate) fn take_detached(&mut self, pid: u32, report: &DetachReport) {
        if report.stays_loaded {
            self.recorder.process_let_go(pid);
        } else {
            let key = (report.process_slot, report.process_generation);
            if report.bytes_left > 0 {
                self.recorder.note(key, left_notice(report.bytes_left));
            }
            self.recorder.process_detached(key.0, key.1);
        }
        self.step_now();
    }
}

/// Reason for which an agent's memory stays mapped.
pub(crate) const STAYS: &str =
    "a thread may still return into the agent's code, or a filter forbids to unmap it";

/// Says of a process that a detach has left the agent in it.
pub(crate) fn left_notice(bytes_left: u64) -> String {
    format!("it keeps {} of heapr's agent mapped, without use: {STAYS}", mebibytes(bytes_left))
}
