//! Ctrl-C while a process is being looked into: the first ends the work in good order, the second
//! at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that is raised by the first SIGINT, SIGTERM or SIGHUP; the second one ends heapr.
pub(crate) fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    const STATUS: i32 = 130;
    let is_cancelled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the shutdown is armed by what the line below it does.
        signal_hook::flag::register_conditional_shutdown(signal, STATUS, Arc::clone(&is_cancelled))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&is_cancelled)))
            .context("cannot watch for signals")?;
    }
    Ok(is_cancelled)
}
