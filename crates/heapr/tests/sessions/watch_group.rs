//! A control group of little memory.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use heapr_testkit::{cannot_run_here, wait_until};

use crate::stage::Stage;

/// Limit of the groups in bytes.
pub(crate) const LIMIT_BYTES: u64 = 96 << 20;

/// Control group with a limit, of the version that the machine has.
pub(crate) struct Group {
    pub(crate) folder: PathBuf,
    pub(crate) path: String,
}

impl Group {
    /// Makes a group; `None`, with the reason in the list of tests that did not run, where no group
    /// can limit memory.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let name = format!("heapr-test-watch-{name}-{}", std::process::id());
        let roots = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let made = roots.iter().find_map(|(root, limit)| {
            let folder = Path::new(root).join(&name);
            // The folder above is the hierarchy's own: in version 2 it would be a group, too.
            fs::create_dir(&folder).ok()?;
            let is_limited = folder.join("cgroup.procs").exists()
                && fs::write(folder.join(limit), LIMIT_BYTES.to_string()).is_ok();
            // Memory that is swapped out meets no limit.
            for (file, value) in [("memory.swap.max", "0"), ("memory.swappiness", "0")] {
                let _ = fs::write(folder.join(file), value);
            }
            if !is_limited {
                let _ = fs::remove_dir(&folder);
            }
            is_limited.then(|| Self { folder, path: format!("/{name}") })
        });
        if made.is_none() {
            cannot_run_here("no control group can limit memory");
        }
        made
    }

    /// Starts a program in the group.
    pub(crate) fn start(&self, stage: &Stage, words: &[&str]) -> Child {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).args(words).current_dir(stage.folder()).stdin(Stdio::null());
        command.stdout(Stdio::null()).process_group(0).spawn().unwrap()
    }

    /// Whether a process is in the group.
    pub(crate) fn has(&self, pid: u32) -> bool {
        let pids = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        pids.lines().any(|line| line == pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group can be removed once its last process is gone.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        for pid in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
        }
        wait_until("the group is removed", || match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => None,
            _ => Some(()),
        });
    }
}
