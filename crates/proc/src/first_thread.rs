//! Processes whose first thread has ended (`pthread_exit` in main) and whose others go on.
//!
//! They look like zombies. What the kernel tells of a process's memory and files it tells of the
//! first thread's, which has none any more.

use std::path::PathBuf;

use crate::ids::threads;
use crate::stat::Stat;

/// The thread of a process whose files in `/proc` tell of the process: its first one, or one of the
/// others if that has ended. (The first, too, if none lives.)
pub fn telling_thread(pid: u32) -> u32 {
    let lives = |tid: &u32| Stat::of_thread(pid, *tid).is_some_and(|stat| !stat.has_ended());
    if lives(&pid) {
        return pid;
    }
    threads(pid).into_iter().flatten().find(lives).unwrap_or(pid)
}

/// The folder of files that tell of a process.
pub fn folder(pid: u32) -> PathBuf {
    let tid = telling_thread(pid);
    PathBuf::from(if tid == pid { format!("/proc/{pid}") } else { format!("/proc/{pid}/task/{tid}") })
}

/// Whether the process exists and is no zombie: any of its threads lives.
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
