//! Series of answers at intervals, a line of JSON each, until the process ends.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::reading;

/// Writes an answer for a process at each `interval`.
pub(super) fn write(pid: u32, interval: Duration, is_deep: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let start_ticks = heapr_proc::start_ticks(pid);
    // The pid may be reused by another process.
    while heapr_proc::is_alive(pid) && heapr_proc::start_ticks(pid) == start_ticks {
        let Ok(resident) = reading::read(pid, is_deep, &mut ()) else { break };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = json!({
            "schema": "heapr.explain/1",
            "time_unix_ns": time.as_nanos() as u64,
            "resident": super::json::value(&resident),
        });
        writeln!(out, "{line}")?;
        out.flush()?;
        std::thread::sleep(interval);
    }
    Ok(())
}
