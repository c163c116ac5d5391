//! Whether a process still lives, by a descriptor of it: one system call for each look, and no
//! other process is meant when its number is given to another one.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What is known of it.
#[derive(Debug)]
pub(crate) struct ProcessLife {
    pid: u32,
    /// `None`: an old kernel, or no descriptor is left.
    descriptor: Option<OwnedFd>,
    was_over: bool,
}

impl ProcessLife {
    pub(crate) fn of(pid: u32) -> Self {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let descriptor = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
        Self { pid, descriptor, was_over: false }
    }

    /// By which it can be asked for together with others.
    pub(crate) fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// Whether it has ended; a process that nobody has waited for yet has.
    pub(crate) fn has_ended(&mut self) -> bool {
        let Some(descriptor) = &self.descriptor else { return !heapr_proc::is_alive(self.pid) };
        let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
        let is_over = poll(&mut asked, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))
            .is_ok_and(|count| count > 0);
        // (A thread that goes on to another program takes the place of the first one, which is over
        // for a moment.)
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
        // As if the number had been given out again.
        life.pid = std::process::id();
        life.has_ended();
        assert!(life.has_ended());
    }
}
