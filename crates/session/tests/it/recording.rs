//! Session under test, and the content of its file.

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

/// Result of a session.
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

/// Waits until the next round may read everything written so far.
pub(crate) fn pass_watermark() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Returns the shared buffers that this process has mapped, as `/proc/self/maps` lists them.
fn pools_mapped() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    maps.lines().filter(|line| line.contains("memfd:heapr-pool")).map(str::to_owned).collect()
}

#[test]
fn a_session_that_has_ended_leaves_no_buffers_mapped() {
    let (session, directory) = start(|_| ());
    // Other tests run at the same time, so only the mappings of this session are counted.
    let inode = std::os::unix::fs::MetadataExt::ino(
        &std::fs::metadata(format!("/proc/self/fd/{}", pool_descriptor(&session))).expect("the buffers"),
    );
    let is_mapped = || {
        let is_own = |line: &String| line.split_whitespace().nth(4) == Some(inode.to_string().as_str());
        pools_mapped().iter().any(is_own)
    };
    assert!(is_mapped());
    stop(session, directory);
    assert!(!is_mapped());
}

fn pool_descriptor(session: &Session) -> String {
    let environment = session.environment_for_target();
    let (_, value) =
        environment.iter().find(|(name, _)| name == "HEAPR_SESSION").expect("the session's variable");
    value.to_str().expect("ASCII").split(':').nth(1).expect("a descriptor").to_owned()
}
