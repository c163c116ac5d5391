//! Whether a child has ended, asked so that nothing is taken from who holds it still.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::session::Session;

/// As [`Child::try_wait`], for a child that a session of this process records.
///
/// A thread of the session stops such a child for moments, to look inside. `wait` and `try_wait`
/// would take the stop for themselves: as an end by a signal, and the session would wait for it in
/// vain.
///
/// # Errors
/// As of `try_wait`.
pub fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    if has_ended(child)? { child.try_wait() } else { Ok(None) }
}

/// Whether `try_wait` would tell an end; its status is left for it.
fn has_ended(child: &Child) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), options) {
        // It was waited for before, and knows its status.
        Err(Errno::CHILD) => Ok(true),
        Err(error) => Err(error.into()),
        Ok(status) => Ok(status.is_some_and(|status| status.exited() || status.killed() || status.dumped())),
    }
}

impl Session {
    /// Returns how the child has ended that the session records, as [`ended`] does, once all that
    /// registered before its end is found. The child is waited for afterwards: how a process has
    /// ended is read from it while it is there.
    ///
    /// # Errors
    /// As of `try_wait`.
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
