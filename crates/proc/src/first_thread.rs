//! Processes whose first thread has ended (`pthread_exit` in main) and whose others go on. They look like zombies, and what the kernel tells of a
//! process's memory and files it tells of the first thread's, which has none any more.

use std::fs;

/// The thread of a process whose files in `/proc` tell of the process: its first one, or one of the others if that has ended. (The first, too,
/// if none lives.)
#[must_use]
pub fn telling_thread(pid: u32) -> u32 {
    let lives = |tid: &u32| !matches!(state(pid, *tid), None | Some(b'Z' | b'X'));
    if lives(&pid) {
        return pid;
    }
    let folder = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    threads.find(lives).unwrap_or(pid)
}

/// Whether the process exists and is no zombie: any of its threads lives.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    !matches!(state(pid, telling_thread(pid)), None | Some(b'Z' | b'X'))
}

/// State letter of a thread; `None` if it is gone.
fn state(pid: u32, tid: u32) -> Option<u8> {
    let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // `tid (name) state …`: the name may hold anything, so the state is behind the last parenthesis.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(end + 2).copied()
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
        assert_eq!(state(child.id(), child.id()), Some(b'Z'));
        child.wait().unwrap();
    }
}
