//! Recording a process that runs already, and letting it go again.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use heapr_inject::{AttachReport, AttachRequest, DetachReport, inner_pid};
use heapr_wire::FLAG_HOOK_MMAP;

use crate::agent_file::AGENT;
use crate::{Error, Session};

impl Session {
    /// Records a running process from now on.
    ///
    /// It stands still for some milliseconds. Programs that it starts are followed if they can see the agent's file and this
    /// process.
    ///
    /// # Errors
    /// There is no such process, it may not be traced, it cannot be hooked, or it gave no good moment. It runs on as it was.
    pub fn attach(&mut self, pid: u32) -> Result<AttachReport, Error> {
        let is_same_namespace = inner_pid(pid) == pid;
        let session = format!("{}:{}", std::process::id(), self.descriptor.number());
        let agent_path = Some(self.agent.as_path()).filter(|path| sees_file(pid, path));
        let flags = self.recorder.pool().control().flags.load(Relaxed);
        let report = heapr_inject::attach(
            &AttachRequest {
                pid,
                agent: AGENT,
                pool: self.descriptor.number(),
                session: if is_same_namespace { &session } else { "" },
                agent_path,
                hooks_mmap: flags & FLAG_HOOK_MMAP != 0,
                fail_at: None,
            },
            &mut |_memory, _is_quiet| {},
        )?;
        self.recorder.process_attached(report.process_slot, report.process_generation, pid);
        Ok(report)
    }

    /// Lets a process go that was attached to. It is as it was before, and what it did is in the trace.
    ///
    /// # Errors
    /// It is not attached to, it has ended, or it may not be traced any more.
    pub fn detach(&mut self, pid: u32) -> Result<DetachReport, Error> {
        // Its threads may wait for a buffer.
        let report = heapr_inject::detach(pid, &mut || self.step_now())?;
        self.recorder.process_detached(report.process_slot, report.process_generation);
        self.step_now();
        Ok(report)
    }
}

/// Whether the process sees, under this path, the file that we see.
fn sees_file(pid: u32, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix("/") else { return false };
    let theirs = std::fs::metadata(Path::new(&format!("/proc/{pid}/root")).join(relative));
    let ours = std::fs::metadata(path);
    matches!((theirs, ours), (Ok(theirs), Ok(ours)) if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}
