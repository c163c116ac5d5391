//! A session under test, and what came to be in its file.

use std::time::Duration;

use heapr_session::{Session, SessionProperties, SessionSummary};
use heapr_trace::{Event, Trace};

/// Starts a session into a temporary directory.
pub(crate) fn start(change: impl FnOnce(&mut SessionProperties)) -> (Session, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut properties = SessionProperties::new(directory.path().join("t.heapr"));
    properties.buffer_bytes = 4096;
    properties.max_buffers = 64;
    properties.min_buffers = 1;
    change(&mut properties);
    (Session::start(properties).expect("the session starts"), directory)
}

/// What a session left.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) summary: SessionSummary,
    pub(crate) trace: Trace,
    pub(crate) events: Vec<Event>,
    _directory: tempfile::TempDir,
}

/// Stops the session and reads its file.
pub(crate) fn stop(session: Session, directory: tempfile::TempDir) -> Recorded {
    let summary = session.stop();
    assert!(summary.write_error.is_none(), "{:?}", summary.write_error);
    let trace = Trace::open(&directory.path().join("t.heapr")).expect("the file opens");
    assert!(trace.damage().is_empty() && trace.is_complete(), "{:?}", trace.damage());
    let mut events = Vec::new();
    let mut reader = trace.events(0, u64::MAX);
    while let Some(batch) = reader.next_batch().expect("the events are sound") {
        events.extend_from_slice(batch);
    }
    Recorded { summary, trace, events, _directory: directory }
}

/// Lets so much time pass that the next round may take everything written so far.
pub(crate) fn pass_watermark() {
    std::thread::sleep(Duration::from_millis(1));
}
