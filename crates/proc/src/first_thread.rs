//! Processes whose first thread has ended (`pthread_exit` in main) while others run.
//!
//! Such a process looks like a zombie. The kernel reports a process's memory and files by its first
//! thread, which has lost them.

use std::path::PathBuf;

use crate::ids::threads;
use crate::stat::Stat;

/// Returns a living thread, whose files in `/proc` describe the process: the first one if it lives,
/// else another. If no thread lives, returns the first one.
pub fn telling_thread(pid: u32) -> u32 {
    let lives = |tid: &u32| Stat::of_thread(pid, *tid).is_some_and(|stat| !stat.has_ended());
    if lives(&pid) {
        return pid;
    }
    threads(pid).into_iter().flatten().find(lives).unwrap_or(pid)
}

/// Returns the folder in `/proc` whose files describe the process.
pub fn folder(pid: u32) -> PathBuf {
    let tid = telling_thread(pid);
    PathBuf::from(if tid == pid { format!("/proc/{pid}") } else { format!("/proc/{pid}/task/{tid}") })
}

/// True if the process exists and is not a zombie: any of its threads lives.
pub fn is_alive(pid: u32) -> bool {
    Stat::of_thread(pid, telling_thread(pid)).is_some_and(|stat| !stat.has_ended())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_no_process_does_not() {
        let pid = std::process::id();
        assert_eq!(telling_thread(pid), pid);
        assert!(is_alive(pid));
        assert_eq!(telling_thread(u32::MAX), u32::MAX);
        assert!(!is_alive(u32::MAX));
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while is_alive(child.id()) {
            std::thread::yield_now();
        }
        assert!(Stat::of_process(child.id()).unwrap().has_ended());
        child.wait().unwrap();
    }
}
