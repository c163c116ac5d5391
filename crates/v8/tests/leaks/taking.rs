//! Snapshots over the inspector.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use heapr_inspector::{Inspector, OpenOptions, Process, SnapshotOptions};

/// Takes a snapshot of the main thread, or of the page whose address contains `target`.
pub(crate) fn take(pid: u32, target: Option<&str>, file: &Path) {
    let never = AtomicBool::new(false);
    let process = Process::examine(pid).expect("the process is there");
    let options = OpenOptions { target: target.map(str::to_owned), ..OpenOptions::default() };
    let mut inspector = Inspector::open(&process, &options, &never).expect("it can be inspected");
    let mut sink = File::create(file).expect("a file for the snapshot");
    inspector
        .take_snapshot(None, SnapshotOptions::default(), &mut sink, &mut |_| {}, &never)
        .expect("a snapshot");
    inspector.close();
}
