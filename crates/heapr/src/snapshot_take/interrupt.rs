//! Ctrl-C during an inspection: the first ends the work in good order, the second at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Returns a flag that the first SIGINT, SIGTERM or SIGHUP raises; the second signal ends heapr.
pub(crate) fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    const STATUS: i32 = 130;
    let is_cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the handler below arms the shutdown for the next signal.
        signal_hook::flag::register_conditional_shutdown(signal, STATUS, Arc::clone(&is_cancelled))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&is_cancelled)))
            .context("cannot watch for signals")?;
    }
    Ok(is_cancelled)
}
