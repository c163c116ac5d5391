//! Checks whether a child has ended without disturbing a thread that holds it stopped.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::session::Session;

/// Variant of [`Child::try_wait`] for a child that a session of this process records.
///
/// A thread of the session stops such a child for moments, to read it. `wait` and `try_wait` would
/// consume that stop and report an end by a signal. The session would then wait for the stop in
/// vain.
///
/// # Errors
/// See `try_wait`.
pub fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    if has_ended(child)? { child.try_wait() } else { Ok(None) }
}

/// Whether `try_wait` would report an end; the status stays available to it.
fn has_ended(child: &Child) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), options) {
        // The child was waited for before, and `Child` knows its status.
        Err(Errno::CHILD) => Ok(true),
        Err(error) => Err(error.into()),
        Ok(status) => Ok(status.is_some_and(|status| status.exited() || status.killed() || status.dumped())),
    }
}

impl Session {
    /// Returns the exit status of a child that the session records, as [`ended`] does, if it has
    /// ended. First everything that registered before its end is found. The child is waited for
    /// after that, because its exit status is read from the zombie.
    ///
    /// # Errors
    /// See `try_wait`.
    pub fn child_ended(&mut self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        if !has_ended(child)? {
            return Ok(None);
        }
        self.step_now();
        let status = child.try_wait()?;
        if let Some(status) = status {
            self.process_exited(child.id(), status.into_raw());
        }
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::ended;

    #[test]
    fn an_end_is_told_again_and_a_stop_is_none() {
        let mut child = Command::new("sh").args(["-c", "kill -STOP $$; exit 3"]).spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let is_stopped =
            || std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") T ")).then_some(());
        heapr_testkit::wait_until("the child stops", is_stopped);
        assert_eq!(ended(&mut child).unwrap(), None);
        Command::new("kill").args(["-CONT", &child.id().to_string()]).status().unwrap();
        let status = heapr_testkit::wait_until("the child ends", || ended(&mut child).unwrap());
        assert_eq!(status.code(), Some(3));
        assert_eq!(ended(&mut child).unwrap(), Some(status));
    }
}
