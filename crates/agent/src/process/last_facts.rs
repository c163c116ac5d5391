//! What the process has resident when it is about to end, for the recorder: a short program ends
//! between two of its looks.

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::process::own_files::{decimal, for_each_line};
use crate::state::AGENT;

const NAMES: [&[u8]; 4] = [b"RssAnon:", b"RssFile:", b"RssShmem:", b"VmHWM:"];

/// At the end of `exit`; whoever ends otherwise is not asked.
pub(crate) extern "C" fn note() {
    if !AGENT.is_active() {
        return;
    }
    let Some(slot) = AGENT.slot() else { return };
    for_each_line(b"/proc/self/status\0", &mut |line| {
        for (name, place) in NAMES.iter().zip(&slot.resident_at_exit) {
            if let Some(rest) = line.strip_prefix(*name) {
                place.store(decimal(rest.trim_ascii_start()).wrapping_mul(1024), Relaxed);
            }
        }
    });
    // Release: the four are there.
    slot.exits_noted.fetch_add(1, Release);
}
