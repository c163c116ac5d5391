//! Test whether the recorder of a target's mapped pool still lives. A living recorder owns the
//! target, however busy or stopped it may be.
//!
//! The control page holds the recorder's process id and start time. The ownership thus ends with
//! the process, without being given back. The target may have overwritten the page; it harms only
//! itself.

use std::mem::offset_of;
use std::time::{Duration, Instant};

use heapr_proc::{inner_pid, is_alive, namespace, own_pid, pids, start_ticks};
use heapr_wire::Control;

use crate::memory::{ProcessMemory, TargetMemory as _};

/// True if the recorder of the control page at `control_avma` in the target lives.
pub(crate) fn is_recorder_alive(memory: &ProcessMemory, control_avma: u64) -> bool {
    let word = |offset: usize| memory.read_u32(control_avma + offset as u64);
    let started = memory.read_u64(control_avma + offset_of!(Control, recorder_start_time) as u64);
    let (Ok(pid), Ok(recorder_namespace), Ok(started)) =
        (word(offset_of!(Control, recorder_pid)), word(offset_of!(Control, recorder_namespace)), started)
    else {
        return false;
    };
    match namespace(own_pid(), "pid") {
        Some(own) if own == recorder_namespace && started != 0 => is_started(pid, started),
        _ => is_seen_elsewhere(pid, recorder_namespace, started) || has_pulse(memory, control_avma),
    }
}

/// True if a process that has another id in this namespace is the recorder.
fn is_seen_elsewhere(recorder_pid: u32, recorder_namespace: u32, started: u64) -> bool {
    pids().any(|pid| {
        is_started(pid, started)
            && namespace(pid, "pid") == Some(recorder_namespace)
            && inner_pid(pid) == recorder_pid
    })
}

/// True if a process lives and was started at a time.
fn is_started(pid: u32, ticks: u64) -> bool {
    start_ticks(pid) == Some(ticks) && is_alive(pid)
}

/// True if the recorder's counter of rounds changes within 2 seconds; it should each 20 ms. For a
/// recorder in a namespace that is invisible here, which may be delayed.
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
