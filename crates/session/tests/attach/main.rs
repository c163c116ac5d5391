//! Attaching to running programs, and detaching.

mod failures;
mod filters;
mod memory_limits;
mod own_allocators;
mod programs;
mod refusals;
mod victim;

use heapr_session::{Session, SessionProperties};

/// A session with a file in a folder of its own.
pub(crate) fn session() -> (Session, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut properties = SessionProperties::new(folder.path().join("trace.heapr"));
    // What a recorder without optimisation reads in a moment.
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
