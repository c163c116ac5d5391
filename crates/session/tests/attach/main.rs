//! Tests of attaching to running programs, and of detaching.

mod failures;
mod filters;
mod memory_limits;
mod own_allocators;
mod programs;
mod refusals;
mod victim;

use heapr_session::{Session, SessionProperties};

/// Starts a session with a file in a separate folder.
pub(crate) fn session() -> (Session, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut properties = SessionProperties::new(folder.path().join("trace.heapr"));
    // Few enough for a recorder without optimisation to read in a moment.
    properties.max_buffers = 48;
    (Session::start(properties).unwrap(), folder)
}

/// Runs the recorder for a while.
pub(crate) fn record_for(session: &mut Session, milliseconds: u64) {
    let end = std::time::Instant::now() + std::time::Duration::from_millis(milliseconds);
    while std::time::Instant::now() < end {
        session.step();
    }
}
