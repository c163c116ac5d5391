//! Files that change while they are shown.

use crate::made::{Running, write_trace};

const REPORT: &str = "{\"file\":0}";
const RANGE: &str = "{\"file\":0,\"filter\":{\"range\":[\"0ns\",\"95ns\"]}}";

#[test]
fn a_file_that_vanishes_or_is_replaced_is_shown_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.heapr");
    write_trace(&path, 10);
    let server = Running::start(std::slice::from_ref(&path));
    assert_eq!(server.ask("report", RANGE).json()["totals"]["alloc_count"], 9);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(server.file()["state"], "gone");
    assert_eq!(server.ask("report", REPORT).json()["totals"]["alloc_count"], 10);
    write_trace(&path, 20);
    let file = server.file();
    assert_eq!(file["state"], "changed");
    assert!(file["error"].as_str().unwrap().contains("another file"));
    assert_eq!(server.ask("report", REPORT).json()["totals"]["alloc_count"], 10);
    assert_eq!(server.ask("reopen", REPORT).json()["files"][0]["state"], "ready");
    assert_eq!(server.ask("report", REPORT).json()["totals"]["alloc_count"], 20);
}

#[test]
fn a_file_that_shrinks_gets_a_clear_error_until_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.heapr");
    write_trace(&path, 10);
    let server = Running::start(std::slice::from_ref(&path));
    assert_eq!(server.ask("report", RANGE).status, 200);
    let bytes = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(bytes / 2).unwrap();
    let reply = server.ask("report", REPORT);
    assert_eq!(reply.status, 410);
    assert!(reply.json()["error"].as_str().unwrap().contains("has shrunk"), "{reply:?}");
    assert_eq!(server.file()["state"], "changed");
    assert_eq!(server.ask("reopen", REPORT).status, 200);
    // Half a trace is shown like one whose recording was cut off.
    let file = server.file();
    assert!(file["state"] == "ready" && !file["warnings"].as_array().unwrap().is_empty(), "{file}");
}

#[test]
fn a_file_that_grows_goes_on_answering() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.heapr");
    write_trace(&path, 10);
    let server = Running::start(std::slice::from_ref(&path));
    assert_eq!(server.ask("report", RANGE).status, 200);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([0; 100]);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    assert_eq!(server.file()["state"], "grown");
    assert_eq!(server.ask("report", REPORT).json()["totals"]["alloc_count"], 10);
}

#[test]
fn what_is_no_trace_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.heapr", "empty.heapr", "b.heapsnapshot"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], "no trace at all").unwrap();
    std::fs::write(&paths[1], "").unwrap();
    std::fs::write(&paths[2], "{\"snapshot\":[").unwrap();
    let server = Running::start(&paths);
    assert_eq!(server.file()["state"], "failed");
    let reply = server.ask("report", REPORT);
    assert_eq!(reply.status, 422);
    assert!(reply.json()["error"].as_str().unwrap().contains("not a heapr trace"), "{reply:?}");
    assert!(server.ask("report", "{\"file\":1}").json()["error"].as_str().unwrap().contains("empty"));
    // A snapshot is opened on its own thread.
    let reply = heapr_testkit::wait_until("it was tried", || {
        Some(server.ask("snapshot/summary", "{\"file\":2}")).filter(|reply| reply.status != 409)
    });
    assert_eq!(reply.status, 422, "{reply:?}");
    assert!(reply.json()["offset"].is_u64(), "{reply:?}");
}
