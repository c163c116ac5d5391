//! Ids of processes and threads.

use std::path::Path;
use std::{fs, io};

use crate::whole_file;

/// Ids of all processes.
pub fn pids() -> impl Iterator<Item = u32> {
    numbers(Path::new("/proc")).into_iter().flatten()
}

/// Ids of a process's threads.
///
/// # Errors
/// Returns an error if the process is gone.
pub fn threads(pid: u32) -> io::Result<impl Iterator<Item = u32>> {
    numbers(Path::new(&format!("/proc/{pid}/task")))
}

/// Stack pointers of a process's threads that wait in the kernel, as far as they may be read.
pub fn stack_pointers(pid: u32) -> Vec<u64> {
    let pointer = |tid| {
        let text = whole_file::text(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
        // The file of a running thread contains only `running`.
        let pointer = text.split_ascii_whitespace().rev().nth(1)?;
        u64::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
    };
    threads(pid).into_iter().flatten().filter_map(pointer).collect()
}

fn numbers(folder: &Path) -> io::Result<impl Iterator<Item = u32> + use<>> {
    Ok(fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Id of this process in the namespace of `/proc`. It differs from the process's own id if `/proc`
/// belongs to an outer namespace.
pub fn own_pid() -> u32 {
    let link = fs::read_link("/proc/self").ok();
    link.and_then(|link| link.to_str()?.parse().ok()).unwrap_or_else(std::process::id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_them() {
        let pid = std::process::id();
        assert_eq!(own_pid(), pid);
        assert!(pids().any(|other| other == pid) && threads(pid).unwrap().any(|tid| tid == pid));
        assert!(threads(u32::MAX).is_err());
    }
}
