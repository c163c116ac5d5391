//! What the process has resident when it is about to end, for the recorder: a short program ends
//! between two of its looks.

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::hooks::look_inside;
use crate::process::own_files::{decimal, for_each_line};
use crate::state::AGENT;

/// With less of its own a process is not looked at before it ends.
const LOOKED_AT_BYTES: u64 = 3 << 20;

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
    let [anonymous_bytes, file_bytes, shared_bytes, most_bytes] =
        slot.resident_at_exit.each_ref().map(|place| place.load(Relaxed));
    let most_own_bytes = most_bytes.saturating_sub(file_bytes).saturating_sub(shared_bytes);
    if anonymous_bytes.max(most_own_bytes) >= LOOKED_AT_BYTES {
        look_inside::ask_for_memory();
    }
}
