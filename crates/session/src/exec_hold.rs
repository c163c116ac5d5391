//! Programs that cannot find the session by themselves: in another root directory, other mounts, or
//! as another user.
//!
//! ```text
//! agent: about to exec, waits --> seized here --> goes on --> the new image's loader does its work
//!                                                             attached to before the program's own code runs
//! ```

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use heapr_inject::HeldExec;

use crate::Session;
use crate::attach::{AttachOutcome, Preload, attach_target};
use crate::session::Task;

/// From the question to the new image; a file that must be read from a slow disk takes longest.
const EXEC_LIMIT: Duration = Duration::from_secs(5);
/// For a loader's work.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// The threads that see to programs, which a session's end waits for: what they have found belongs
/// into its file. Each has its limits, and comes to its end at once with that of its program.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecHolds(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl ExecHolds {
    fn add(&self, thread: JoinHandle<()>) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits until all have told what they found.
    pub(crate) fn finish(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic of its is told by its own message.
            let _ = thread.join();
        }
    }
}

impl Session {
    /// Begins to look into programs, once.
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

/// Holds the exec that a thread of a process (slot and generation `key`) is about to call, and sees
/// to the program. `false`: it cannot be held.
fn hold(
    preload: &Preload,
    key: (u32, u32),
    (pid, tid): (u32, u32),
    tasks: &Sender<Task>,
    holds: &ExecHolds,
) -> bool {
    let (tell, told) = channel();
    let (preload, tasks) = (preload.clone(), tasks.clone());
    let spawned = std::thread::Builder::new().name("exec-hold".to_owned()).spawn(move || {
        let held = HeldExec::seize(pid, tid).ok();
        let _ = tell.send(held.is_some());
        let Some(mut held) = held else { return };
        // Otherwise the exec has failed: the process is what it was.
        if held.wait_for_exec(EXEC_LIMIT).unwrap_or(false) {
            let program = heapr_proc::executable(pid).unwrap_or_default();
            let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The loader's last call gives it back. Told before the program runs: it may end soon.
            if !std::path::Path::new(&format!("/proc/{pid}/root/etc/ld.so.cache")).exists() {
                let text = format!(
                    "{program}, which it started, is reached late: what it allocates first is not recorded (in its root directory \
                     the loader has no cache)"
                );
                let _ = tasks.send(Box::new(move |session| session.recorder.note(key, text)));
            }
            let outcome = attach(&preload, pid, held);
            // Where the session has ended nobody is to be told.
            let _ = tasks
                .send(Box::new(move |session| session.take_held(key, pid, &program, outcome)));
        }
    });
    let Ok(thread) = spawned else { return false };
    holds.add(thread);
    told.recv().unwrap_or(false)
}

fn attach(preload: &Preload, pid: u32, mut held: HeldExec) -> Result<AttachOutcome, String> {
    match held.run_loader(LOAD_LIMIT) {
        Ok(true) => attach_target(preload, pid, Some(held), None).map_err(|error| error.to_string()),
        Ok(false) => Err("it has no loader, or another C library than glibc".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Session {
    fn take_held(
        &mut self,
        key: (u32, u32),
        pid: u32,
        program: &str,
        outcome: Result<AttachOutcome, String>,
    ) {
        match outcome {
            Ok(outcome) => {
                self.take_attached(pid, outcome);
                self.recorder.name_program(pid, program);
            }
            Err(reason) => self.recorder.note_untraced(key, program, &reason),
        }
    }
}
