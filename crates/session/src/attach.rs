//! Recording a process that runs already, and letting it go again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use heapr_allocators::Table;
use heapr_glibc_heap::{Error as RundownError, Rundown};
use heapr_inject::StoppedProcess;
use heapr_inject::{AttachReport, AttachRequest, DetachReport, HeldExec, LoadedModule};
use heapr_proc::inner_pid;
use heapr_wire::FLAG_HOOK_MMAP;

use crate::agent_file::AGENT;
use crate::recorder::go::GoTarget;
use crate::recorder::inside::{Finder, Inside, Looked, WantedFile, functions_of};
use crate::recorder::pool_growth;
use crate::recorder::target_view::sees_file;
use crate::{Error, Session};

/// What leads a target into the session.
#[derive(Debug, Clone)]
pub(crate) struct Preload {
    /// The agent's file.
    pub(crate) agent: PathBuf,
    /// Value of the session variable, without the root.
    pub(crate) session: String,
    /// Descriptor of the shared buffers.
    pub(crate) pool: i32,
    /// mmap and its kin count too.
    pub(crate) hooks_mmap: bool,
    /// Seccomp filters that cannot be read are taken to end nobody.
    pub(crate) despite_seccomp: bool,
    /// Texts with further allocators that may be inside.
    pub(crate) allocators: Vec<String>,
    /// Some allocations are recorded for all.
    pub(crate) is_sampled: bool,
}

/// An attach whose blocks are not in the trace yet.
#[derive(Debug)]
pub(crate) struct AttachOutcome {
    report: AttachReport,
    found: Option<Result<Rundown, String>>,
    inside: Inside,
    /// What of it was looked at.
    modules: Vec<LoadedModule>,
    /// Nothing can be loaded into it: what its runtime tells is read from outside.
    outside: Option<GoTarget>,
}

impl AttachOutcome {
    /// Of a program of Go without a loader. `is_new`: none of its code has run.
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

/// Attaches, from any thread. `held`: stopped before its own code has run.
pub(crate) fn attach_target(
    preload: &Preload,
    pid: u32,
    held: Option<HeldExec>,
    fail_at: Option<u32>,
) -> Result<AttachOutcome, Error> {
    let modules = heapr_inject::loaded_modules(pid);
    // (A loader alone is no C library.)
    let has_malloc = |module: &LoadedModule| module.exports_malloc && !module.name.contains("/ld-");
    if !modules.as_ref().is_ok_and(|modules| modules.iter().any(has_malloc))
        && let Some(outcome) = AttachOutcome::of_outside(pid, held.is_some())
    {
        return Ok(outcome);
    }
    // (A process that is held at its start has not taken anything yet, and it is not known what its
    // program needs.)
    if held.is_none() {
        pool_growth::check_target(pid)?;
    }
    let is_same_namespace = inner_pid(pid) == pid;
    let agent_path = Some(preload.agent.as_path()).filter(|path| sees_file(pid, path));
    // Finding the heap takes longer than reading it: while the target runs.
    let heap = StoppedProcess::about_to_stop(pid);
    let heap_plan = find_heap(&heap);
    let mut room = heap_plan.as_ref().map(|plan| plan.room(&heap)).unwrap_or_default();
    let mut room = Some(&mut room);
    // What was held before its own code ran, and has no heap by now, has allocated nothing.
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
        // There is one good moment only.
        let Some(room) = room.take().filter(|_| !has_no_heap) else { return };
        found = Some(match &heap_plan {
            Ok(plan) => heapr_glibc_heap::read(plan, &heap, &stopped.thread_pointers, room)
                .map_err(|error| error.to_string()),
            // It changed under our eyes each time: now it stands still.
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

/// The allocators inside of a process that is about to be attached to.
fn look_inside(preload: &Preload, pid: u32, modules: &[LoadedModule]) -> Inside {
    // (The texts were looked at when the session began.)
    let table = Table::with(&preload.allocators).unwrap_or_default();
    // As where a program starts: a language's own heap would be recorded in full.
    let table = if preload.is_sampled { table.of_main_heap() } else { table };
    let mut finder = Finder::new(table);
    let inside = finder.look(pid, modules);
    let wanted = finder.wanted(&inside);
    if wanted.is_empty() {
        return inside;
    }
    // It runs meanwhile.
    let remarks = WantedFile::fetch_all(&wanted);
    Inside { remarks, ..finder.look(pid, modules) }
}

/// Finds the heap of a process that runs: where it is just being changed it does not look like one.
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
    /// Records a running process from now on.
    ///
    /// It stands still for some milliseconds. What its heap holds at that moment (glibc's heap)
    /// becomes allocations under the one frame `allocated before attach`, each with the size
    /// that the block can hold. Programs that it starts are followed if they can see the agent's
    /// file and this process.
    ///
    /// # Errors
    /// There is no such process, it may not be traced, it cannot be hooked, or it gave no good
    /// moment. It runs on as it was.
    pub fn attach(&mut self, pid: u32) -> Result<AttachReport, Error> {
        self.attach_failing_at(pid, None)
    }

    /// For tests: as [`Self::attach`], but step `fail_at` fails.
    #[doc(hidden)]
    pub fn attach_failing_at(&mut self, pid: u32, fail_at: Option<u32>) -> Result<AttachReport, Error> {
        let outcome = attach_target(&self.preload(), pid, None, fail_at)
            .inspect_err(|_| self.recorder.hold_no_more())?;
        Ok(self.take_attached(pid, outcome))
    }

    /// What leads a target into this session.
    pub(crate) fn preload(&self) -> Preload {
        // Its control group may be another than the recorder's.
        self.recorder.pool().forbid_others();
        self.preload_of_children()
    }

    /// The same for what recorded programs start.
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

    /// Enters what an attach has found.
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
        let hooked_count = report.hooks.iter().filter(|name| name.contains(" in ")).count();
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

    /// An attach in another thread has failed.
    pub(crate) fn forget_attach(&mut self) {
        self.recorder.hold_no_more();
    }

    /// Lets a process go. One that was attached to is as it was before; one that was started with
    /// the agent in it records nothing more, and its calls go around the agent. What it did is
    /// in the trace.
    ///
    /// # Errors
    /// It is not recorded by this session, it has ended, or it may not be traced any more.
    pub fn detach(&mut self, pid: u32) -> Result<DetachReport, Error> {
        if !self.recorder.knows(pid) {
            return Err(heapr_inject::Error::NotAttached { pid }.into());
        }
        if self.let_go_outside(pid) {
            return Ok(DetachReport::default());
        }
        // Its threads may wait for a buffer.
        let report = heapr_inject::detach(pid, &mut || self.step_now())?;
        self.take_detached(pid, &report);
        Ok(report)
    }

    /// Lets go of a process in which nothing was done. `false`: it is none.
    pub(crate) fn let_go_outside(&mut self, pid: u32) -> bool {
        let is_one = self.recorder.let_go_outside(pid);
        if is_one {
            self.step_now();
        }
        is_one
    }

    /// Enters what a detach has found.
    pub(crate) fn take_detached(&mut self, pid: u32, report: &DetachReport) {
        if report.stays_loaded {
            self.recorder.process_let_go(pid);
        } else {
            self.recorder.process_detached(report.process_slot, report.process_generation);
        }
        self.step_now();
    }
}
