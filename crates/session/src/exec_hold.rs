//! Handles programs that cannot find the session by themselves: in another root directory, with
//! other mounts, or as another user.
//!
//! ```text
//! agent: about to exec, waits --> seized here --> execs --> the new image's loader does its work
//!                                                 attached to before the program's own code runs
//! ```

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::time::Duration;

use heapr_inject::HeldExec;
use heapr_known::glibc;

use crate::Session;
use crate::attach::{AttachOutcome, Preload, attach_target};
use crate::bell::Letterbox;
use crate::exec_hold_threads::ExecHolds;
use crate::session::Task;

/// Longest time from the request to the new image; a file on a slow disk takes longest.
const EXEC_LIMIT: Duration = Duration::from_secs(5);
/// Longest time for a loader's work.
const LOAD_LIMIT: Duration = Duration::from_secs(10);
/// [`LOAD_LIMIT`] of a loader that is known to signal when it is done.
const GLIBC_LOAD_LIMIT: Duration = Duration::from_secs(60);

impl Session {
    /// Starts the search for embedded allocators, once.
    pub(crate) fn begin_looking(&mut self) {
        if !self.inside.as_ref().is_some_and(crate::recorder::inside::Watch::is_new) {
            return;
        }
        let (preload, tasks) = (self.preload_of_children(), self.tasks.0.clone());
        let holds = self.exec_holds.clone();
        if let Some(inside) = &mut self.inside {
            inside.begin(Box::new(move |key, whose| hold(&preload, key, whose, &tasks, &holds)));
        }
    }
}

/// Holds the exec that a thread of a process (slot and generation `key`) is about to call, and
/// handles the new program. Returns `false` if it cannot be held.
fn hold(
    preload: &Preload,
    key: (u32, u32),
    (pid, tid): (u32, u32),
    tasks: &Letterbox<Task>,
    holds: &ExecHolds,
) -> bool {
    let (tell, told) = channel();
    let (preload, tasks) = (preload.clone(), tasks.clone());
    let spawned = std::thread::Builder::new().name("exec-hold".to_owned()).spawn(move || {
        let held = HeldExec::seize(pid, tid).ok();
        let _ = tell.send(held.is_some());
        if let Some(held) = held {
            see_to(held, &preload, pid, Some(key), &tasks);
        }
    });
    let Ok(thread) = spawned else { return false };
    holds.add(thread);
    told.recv().unwrap_or(false)
}

/// Handles the program that a process execs. `before`: (slot, generation) of the process before.
fn see_to(
    mut held: HeldExec,
    preload: &Preload,
    pid: u32,
    before: Option<(u32, u32)>,
    tasks: &Letterbox<Task>,
) {
    // On `false` the exec has failed, and the process is unchanged.
    if !held.wait_for_exec(EXEC_LIMIT).unwrap_or(false) {
        return;
    }
    let program = heapr_proc::executable(pid).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Without the cache the attach comes only after the loader's last call. Reported before the
    // program runs, because it may end soon.
    let has_cache = std::path::Path::new(&format!("/proc/{pid}/root/etc/ld.so.cache")).exists();
    if let Some(before) = before.filter(|_| !has_cache && held.has_loader()) {
        let text = format!(
            "{program}, which it started, is reached late: what it allocates first is not recorded (in its root directory \
             the loader has no cache)"
        );
        let _ = tasks.send(Box::new(move |session| session.recorder.note(before, text)));
    }
    let outcome = attach(preload, pid, held);
    // If the session has ended, the result is dropped.
    let _ = tasks.send(Box::new(move |session| session.take_held(before, pid, &program, outcome)));
}

/// Whether the program's loader is glibc's.
fn has_glibcs_loader(pid: u32) -> bool {
    let mappings = heapr_proc::mappings::read(pid).unwrap_or_default();
    mappings.iter().any(|mapping| mapping.name.rsplit('/').next().is_some_and(glibc::is_loader))
}

fn attach(preload: &Preload, pid: u32, mut held: HeldExec) -> Result<AttachOutcome, String> {
    let has_loader = held.has_loader();
    // A glibc loader that waits for other processes takes long, but finishes.
    let is_glibcs = has_glibcs_loader(pid);
    let limit = if is_glibcs { GLIBC_LOAD_LIMIT } else { LOAD_LIMIT };
    match held.run_loader(limit) {
        Ok(true) => attach_target(preload, pid, Some(held), None).map_err(|error| error.to_string()),
        Ok(false) if is_glibcs => {
            Err(format!("its loader had not loaded its libraries after {} s", limit.as_secs()))
        }
        Ok(false) if has_loader => Err("it has another C library than glibc".to_owned()),
        Ok(false) => Err("it is statically linked, and sets up no thread as C libraries do".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Session {
    /// Starts a program without a loader, which can only be reached from outside. It is held before
    /// its own code runs. A reason for which it is not recorded is in the summary.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn_held(&mut self, command: &mut Command) -> io::Result<Child> {
        let mut waiting = heapr_inject::wait_before_exec(command)?;
        let (preload, tasks) = (self.preload_of_children(), self.tasks.0.clone());
        let thread = std::thread::Builder::new().name("exec-hold".to_owned()).spawn(move || {
            let Some(pid) = waiting.pid() else { return };
            let held = HeldExec::seize(pid, pid);
            waiting.go();
            match held {
                Ok(held) => see_to(held, &preload, pid, None, &tasks),
                Err(error) => {
                    let reason = format!("it cannot be held: {error}");
                    let _ = tasks.send(Box::new(move |session| session.not_held = Some(reason)));
                }
            }
        })?;
        self.exec_holds.add(thread);
        command.spawn()
    }

    fn take_held(
        &mut self,
        before: Option<(u32, u32)>,
        pid: u32,
        program: &str,
        outcome: Result<AttachOutcome, String>,
    ) {
        match (outcome, before) {
            (Ok(outcome), _) => {
                self.take_attached(pid, outcome);
                self.recorder.name_program(pid, program);
            }
            (Err(reason), Some(before)) => self.recorder.note_untraced(before, program, &reason),
            (Err(reason), None) => self.not_held = Some(reason),
        }
    }
}
