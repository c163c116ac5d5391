//! Whether a child has ended, asked so that nothing is taken from who holds it still.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// As [`Child::try_wait`], for a child that a session of this process records.
///
/// A thread of the session stops such a child for moments, to look inside. `wait` and `try_wait`
/// would take the stop for themselves: as an end by a signal, and the session would wait for it in
/// vain.
///
/// # Errors
/// As of `try_wait`.
pub fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return child.try_wait() };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), options) {
        // It was waited for before, and knows its status.
        Err(Errno::CHILD) => child.try_wait(),
        Err(error) => Err(error.into()),
        Ok(Some(status)) if status.exited() || status.killed() || status.dumped() => child.try_wait(),
        Ok(_) => Ok(None),
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
