//! Requests that come while names are looked for.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use heapr_query::SymbolSource;
use heapr_server::{Files, Host, Limits, answer_json};
use heapr_trace::{SnapshotTrigger, Trace};
use heapr_v8::IndexStore;
use serde_json::Value;

use crate::made::{PlainHost, write_trace};

/// Host whose names are found once its gate is open.
#[derive(Debug, Default)]
struct GatedHost {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl GatedHost {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Host for GatedHost {
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send> {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        PlainHost.names(trace)
    }

    fn snapshot_indexes(&self, _path: &Path) -> Option<IndexStore> {
        None
    }

    fn trigger(&self, trigger: SnapshotTrigger) -> String {
        PlainHost.trigger(trigger)
    }

    fn version(&self) -> &str {
        "0"
    }
}

#[test]
fn a_request_for_the_files_before_the_names_are_found_does_not_leave_stacks_without_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.heapr");
    write_trace(&path, 100);
    let host = Arc::new(GatedHost::default());
    let files = Files::open(&[path], Arc::clone(&host) as Arc<dyn Host>, Limits::default());
    let ask = |name: &str, body: &[u8]| -> Value {
        serde_json::from_slice(&answer_json(&files, name, body).unwrap()).unwrap()
    };
    let is_told = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        ask("files", b"")["files"][0]["trace"].is_object()
    });
    host.open();
    assert!(is_told, "the facts of the trace need no names");
    let report = ask("report", br#"{"file": 0}"#);
    let symbols: Vec<&Value> =
        report["groups"].as_array().unwrap().iter().map(|group| &group["frames"][0]["symbol"]).collect();
    assert!(!symbols.is_empty() && symbols.iter().all(|symbol| symbol.is_string()), "{report}");
}
