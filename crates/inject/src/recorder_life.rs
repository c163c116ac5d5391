//! Whether the recorder of a pool that a target has mapped still lives: it holds the target until
//! then, however busy or stopped it may be.
//!
//! Its process id and the time at which that process was started are in the control page. So
//! nothing has to be given back: the claim ends with the process. The target may have written
//! anything there; it harms only itself.

use std::mem::offset_of;
use std::time::{Duration, Instant};

use heapr_proc::{inner_pid, is_alive, namespace, own_pid, pids, start_ticks};
use heapr_wire::Control;

use crate::memory::{ProcessMemory, TargetMemory as _};

/// Whether the recorder lives whose control page the target has at `control_avma`.
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

/// Whether a process that we see by another number is the one.
fn is_seen_elsewhere(recorder_pid: u32, recorder_namespace: u32, started: u64) -> bool {
    pids().any(|pid| {
        is_started(pid, started)
            && namespace(pid, "pid") == Some(recorder_namespace)
            && inner_pid(pid) == recorder_pid
    })
}

/// Whether a process lives and was started at a time.
fn is_started(pid: u32, ticks: u64) -> bool {
    start_ticks(pid) == Some(ticks) && is_alive(pid)
}

/// The recorder counts its rounds, one in 20 ms at least. It may be in a namespace that we do not
/// see, and be held up.
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
