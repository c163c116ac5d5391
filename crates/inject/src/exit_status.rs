//! Exit status of a process that is no child of this one.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};

/// Facts about a process that the kernel writes for a pidfd: `struct pidfd_info` in its first
/// version.
#[repr(C)]
#[derive(Debug, Default)]
struct PidfdInfo {
    mask: u64,
    group_id: u64,
    /// Process ids, user and group ids.
    ids: [u32; 11],
    exit_code: i32,
}

/// Part of the facts that has the exit status (Linux 6.15).
const INFO_EXIT: u64 = 1 << 3;
/// Number of the request: `_IOWR(0xFF, 11, struct pidfd_info)`.
const GET_INFO: libc::Ioctl =
    (3 << 30 | (size_of::<PidfdInfo>() as u32) << 16 | 0xFF << 8 | 11) as libc::Ioctl;

/// Status in the form of wait(2) of a process that has ended, by a pidfd that was opened before.
/// `None`: its parent has not waited for it yet, or the kernel does not tell it.
pub fn exit_status(process: impl AsFd) -> Option<i32> {
    const { assert!(size_of::<PidfdInfo>() == 64) };
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most the size that is part of the request's number, which is the
    // structure's (asserted above). All its fields may have any bits.
    let answer = unsafe { libc::ioctl(process.as_fd().as_raw_fd(), GET_INFO, &raw mut info) };
    (answer == 0 && info.mask & INFO_EXIT != 0).then_some(info.exit_code)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{FromRawFd as _, OwnedFd};
    use std::process::Command;

    use super::*;

    #[test]
    fn the_status_of_a_process_that_was_waited_for_is_told_where_the_kernel_has_it() {
        let mut child = Command::new("sh")
            .args(["-c", "read line; exit 3"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // SAFETY: the call has no preconditions.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        assert!(descriptor >= 0);
        // SAFETY: the descriptor is new, and owned by no other value.
        let process = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        assert_eq!(exit_status(&process), None);
        drop(child.stdin.take());
        child.wait().unwrap();
        match exit_status(&process) {
            Some(status) => assert_eq!(status, 0x300),
            None => heapr_testkit::cannot_run_here(
                "the kernel does not tell an exit status by a pidfd (Linux 6.15)",
            ),
        }
        assert_eq!(exit_status(std::io::stdin()), None);
    }
}
