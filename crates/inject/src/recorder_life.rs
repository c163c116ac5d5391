//! Whether the recorder of a pool that a target has mapped still lives: it holds the target until then, however busy or stopped
//! it may be.
//!
//! Its process id and the time at which that process was started are in the control page, so that nothing has to be given back:
//! the claim ends with the process. The target may have written anything there; it harms only itself.

use std::fs;
use std::mem::offset_of;
use std::time::{Duration, Instant};

use heapr_wire::Control;

use crate::memory::{ProcessMemory, TargetMemory as _};

/// Clock ticks since boot at which a process was started; `None` if there is none that runs.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    parse_start_time(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state …`, the time being field 22; the name may hold anything, so it is counted from the last parenthesis.
fn parse_start_time(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok()).flatten()
}

/// Inode of a process's process namespace.
fn namespace(process: &str) -> Option<u32> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether the recorder lives whose control page the target has at `control_avma`.
pub(crate) fn is_recorder_alive(memory: &ProcessMemory, control_avma: u64) -> bool {
    let word = |offset: usize| memory.read_u32(control_avma + offset as u64);
    let started = memory.read_u64(control_avma + offset_of!(Control, recorder_start_time) as u64);
    let (Ok(pid), Ok(recorder_namespace), Ok(started)) =
        (word(offset_of!(Control, recorder_pid)), word(offset_of!(Control, recorder_namespace)), started)
    else {
        return false;
    };
    match namespace("self") {
        Some(own) if own == recorder_namespace && started != 0 => start_time(pid) == Some(started),
        _ => is_seen_elsewhere(pid, recorder_namespace, started) || has_pulse(memory, control_avma),
    }
}

/// Whether a process that we see by another number is the one.
fn is_seen_elsewhere(inner_pid: u32, recorder_namespace: u32, started: u64) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.any(|pid| {
        start_time(pid) == Some(started)
            && namespace(&pid.to_string()) == Some(recorder_namespace)
            && crate::inner_pid(pid) == inner_pid
    })
}

/// The recorder counts its rounds, one in 20 ms at least. It may be in a namespace that we do not see, and be held up.
fn has_pulse(memory: &ProcessMemory, control_avma: u64) -> bool {
    const SILENCE: Duration = Duration::from_secs(2);
    let beat_avma = control_avma + offset_of!(Control, heartbeat) as u64;
    let Ok(first) = memory.read_u32(beat_avma) else { return false };
    let begin = Instant::now();
    while begin.elapsed() < SILENCE {
        match memory.read_u32(beat_avma) {
            Ok(now) if now == first => std::thread::sleep(Duration::from_millis(10)),
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_start_time() {
        let stat = b"7 (a) Z 1 (b) S 1 7 7 0 -1 4194304 93 0 0 0 1 2 3 4 20 0 1 0 123456 2490368 190 18446744073709551615";
        assert_eq!(parse_start_time(stat), Some(123_456));
        assert_eq!(parse_start_time(b"7 (a) Z 1 7 7 0 -1 4194304 93 0 0 0 1 2 3 4 20 0 1 0 123456 1"), None);
        assert_eq!(parse_start_time(b"7 (a"), None);
    }

    #[test]
    fn this_process_has_one_and_it_stays() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|time| time > 0));
        assert_eq!(own, start_time(std::process::id()));
    }
}
