//! Checks whether a process lives by a pidfd: one system call per check, and never confused by a
//! reused process id.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Handle on a process.
#[derive(Debug)]
pub(crate) struct ProcessLife {
    pid: u32,
    /// pidfd; `None` on an old kernel, or if no descriptor is free.
    descriptor: Option<OwnedFd>,
    was_over: bool,
}

impl ProcessLife {
    pub(crate) fn of(pid: u32) -> Self {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let descriptor = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
        Self { pid, descriptor, was_over: false }
    }

    /// Descriptor, to be polled together with others.
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// Notes that the descriptor, polled together with others, tells no end.
    pub(crate) fn note_alive(&mut self) {
        self.was_over = false;
    }

    /// Whether the process has ended; a zombie has.
    pub(crate) fn has_ended(&mut self) -> bool {
        let Some(descriptor) = &self.descriptor else { return !heapr_proc::is_alive(self.pid) };
        let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
        let is_over = poll(&mut asked, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))
            .is_ok_and(|count| count > 0);
        // A thread that execs takes the place of the first thread, which seems over for a moment.
        let was_over = std::mem::replace(&mut self.was_over, is_over);
        is_over && (was_over || !heapr_proc::is_alive(self.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_when_it_is_a_zombie_and_when_it_is_gone() {
        assert!(!ProcessLife::of(std::process::id()).has_ended());
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut life = ProcessLife::of(child.id());
        assert!(!life.has_ended());
        child.kill().unwrap();
        heapr_testkit::wait_until("it has ended", || life.has_ended().then_some(()));
        child.wait().unwrap();
        assert!(life.has_ended());
        assert!(ProcessLife::of(u32::MAX).has_ended());
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_taken_for_it() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut life = ProcessLife::of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        // Simulates that the process id was given out again.
        life.pid = std::process::id();
        life.has_ended();
        assert!(life.has_ended());
    }
}
