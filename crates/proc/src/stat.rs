//! `/proc/PID/stat`: `pid (name) state parent …`.

use crate::whole_file;

/// Fields behind the name.
#[derive(Debug, Clone)]
pub struct Stat(String);

impl Stat {
    /// Reads the fields of a process, with the state of its first thread; `None` if it is gone.
    pub fn of_process(pid: u32) -> Option<Self> {
        Self::parse(&whole_file::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads the fields of a thread; `None` if it is gone.
    pub fn of_thread(pid: u32, tid: u32) -> Option<Self> {
        Self::parse(&whole_file::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
    }

    /// Parses the file. The name may contain any bytes, so that the fields begin behind the last
    /// parenthesis.
    fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let fields = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        (!fields.trim().is_empty()).then(|| Self(fields.to_owned()))
    }

    /// State letter.
    pub fn state(&self) -> char {
        self.0.trim_start().chars().next().unwrap_or('?')
    }

    /// True if the process or thread has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), 'Z' | 'X')
    }

    /// Field by its number in proc(5), from 4 on.
    pub fn number(&self, field: usize) -> Option<u64> {
        self.0.split_ascii_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
    }
}

/// Wait status of a zombie, in the format of wait(2). `None` if unknown: the process lives, is
/// gone, or the kernel writes 0. The kernel also writes 0 for readers without permission (proc(5),
/// `exit_code`).
pub fn wait_status_of_zombie(pid: u32) -> Option<i32> {
    let stat = Stat::of_process(pid).filter(Stat::has_ended)?;
    stat.number(52)?.try_into().ok().filter(|&status| status != 0)
}

/// Id of the parent process.
pub fn parent(pid: u32) -> Option<u32> {
    Stat::of_process(pid)?.number(4)?.try_into().ok()
}

/// Start time of a process in clock ticks since boot. With the process id it identifies the process
/// uniquely.
pub fn start_ticks(pid: u32) -> Option<u64> {
    Stat::of_process(pid)?.number(22)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_hides_no_field() {
        let text = b"7 (a) Z 1 (b) S 1 7 7 0 -1 4194304 93 0 0 0 1 2 3 4 20 0 1 0 123456 2490368 190 18446744073709551615";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state(), stat.has_ended()), ('S', false));
        assert_eq!((stat.number(4), stat.number(22), stat.number(99)), (Some(1), Some(123_456), None));
        assert!(Stat::parse(b"7 (a) Z 1").unwrap().has_ended());
        assert!(Stat::parse(b"7 (a").is_none() && Stat::parse(b"7 (a)").is_none());
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_tells_how_it_has_ended() {
        let mut child = std::process::Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        while crate::is_alive(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!(wait_status_of_zombie(child.id()), Some(9));
        child.wait().unwrap();
        assert_eq!(wait_status_of_zombie(child.id()), None);
        assert_eq!(wait_status_of_zombie(std::process::id()), None);
    }

    #[test]
    fn this_process_has_a_start_and_it_stays() {
        let own = start_ticks(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0));
        assert_eq!(own, start_ticks(std::process::id()));
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
