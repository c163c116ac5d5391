//! Tests of features that DevTools lacks: how a snapshot was captured, paths of scripts, derived
//! snapshots.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use heapr_v8::devtools::{CaptureMode, ScriptPaths};
use heapr_v8::{NodeKind, ReadOptions, Secrecy, Snapshot};

use crate::devtools_oracle::assert_same;
use crate::node_program::{exercise, has_node};
use crate::oracle_lines::open;

fn snapshots(name: &str, options: &[&str]) -> [PathBuf; 2] {
    exercise(Path::new("node"), name, options)
}

#[test]
fn a_snapshot_tells_how_it_was_captured() {
    if !has_node() {
        return;
    }
    let plain = open(&snapshots("captured", &[])[0]);
    let internal = open(&snapshots("captured-internals", &["--expose-internals"])[0]);
    assert_eq!((plain.mode(), internal.mode()), (CaptureMode::Default, CaptureMode::ExposeInternals));
}

#[test]
fn a_constructor_has_the_path_of_its_script() {
    if !has_node() {
        return;
    }
    for (name, options) in [("paths", &[][..]), ("paths-internals", &["--expose-internals"])] {
        let heap = open(&snapshots(name, options)[0]);
        let snapshot = heap.snapshot();
        let is_point =
            |node: &u32| snapshot.kind(*node) == NodeKind::OBJECT && snapshot.name(*node) == b"Point";
        let place_of = |node| snapshot.locations().of(node);
        let place = (0..snapshot.node_count()).filter(is_point).find_map(place_of).unwrap();
        let text = ScriptPaths::of(snapshot).place(place);
        let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/exercise.js");
        assert!(text.starts_with(&format!("{}:", wanted.display())), "{text}");
        // Line and column of the constructor, from 1.
        let source = std::fs::read_to_string(wanted).unwrap();
        let line = text.rsplit(':').nth(1).unwrap().parse::<usize>().unwrap();
        assert!(source.lines().nth(line - 1).unwrap().contains("constructor("), "{text}");
    }
}

#[test]
fn anonymous_snapshots_and_parts_of_snapshots_open_in_devtools() {
    if !has_node() {
        return;
    }
    let files = snapshots("rewritten", &[]);
    let directory = tempfile::tempdir().unwrap();
    let rewritten = |name: &str, rewrite: &dyn Fn(&Snapshot, &mut Vec<u8>)| {
        let files = files.clone().map(|file| {
            let snapshot = Snapshot::open(&file, &ReadOptions::default()).unwrap();
            let mut text = Vec::new();
            rewrite(&snapshot, &mut text);
            let path =
                directory.path().join(format!("{name}.{}", file.file_name().unwrap().to_string_lossy()));
            std::fs::File::create(&path).unwrap().write_all(&text).unwrap();
            path
        });
        assert_same(name, &files);
        files
    };
    let anonymous = rewritten("anonymous", &|snapshot, text| {
        snapshot.write_anonymous(Secrecy::TextsAndNames, text).unwrap();
    });
    let text = std::fs::read_to_string(&anonymous[0]).unwrap();
    for secret in ["exercise.js", "left 1000", "odd, name", "\"Point\"", "for Point", "weakly 5", "weakly 9"]
    {
        assert!(!text.contains(secret), "{secret}");
    }
    rewritten("part", &|snapshot, text| {
        // The global object dominates nearly everything.
        let mut held = snapshot.graph().targets_of(snapshot.root());
        let global = held.find(|&node| snapshot.kind(node) == NodeKind::OBJECT).unwrap();
        snapshot.write_retained_by(global, text).unwrap();
    });
}

#[test]
fn keys_of_dictionaries_do_not_leave_and_names_of_the_program_stay() {
    if !has_node() {
        return;
    }
    const SCRIPT: &str = "
        class Visit { constructor(page) { this.pageShown = page; this.visitNumber = {}; } }
        const tokens = {}, people = Object.create(null);
        for (let i = 0; i < 300; i++) tokens['token-secret-' + i * 7919] = new Visit('p' + i);
        for (const a of 'abcdefgh') for (const b of 'klmnopqr') people['person' + a + b] = new Visit(a);
        const few = { 'someone@private.example': new Visit('x') };
        globalThis.store = { tokens, people, few, byName: new Map([['mapsecret', new Visit('y')]]) };
        globalThis.store[['mine', 'name'].join('')] = () => 1;
        require('v8').writeHeapSnapshot(process.argv[1]);";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.heapsnapshot");
    let status = std::process::Command::new("node").arg("-e").arg(SCRIPT).arg(&file).status().unwrap();
    assert!(status.success());
    let mut text = Vec::new();
    let snapshot = Snapshot::open(&file, &ReadOptions::default()).unwrap();
    snapshot.write_anonymous(Secrecy::Texts, &mut text).unwrap();
    let text = String::from_utf8_lossy(&text);
    for secret in ["token-secret", "personak", "private.example", "mapsecret"] {
        assert!(!text.contains(secret), "{secret}");
    }
    for name in ["Visit", "pageShown", "visitNumber", "tokens", "people", "byName"] {
        assert!(text.contains(&format!("\"{name}\"")), "{name}");
    }
}
