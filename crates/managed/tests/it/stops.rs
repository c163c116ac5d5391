//! A program that is stopped in the middle of its work, and memory that lies.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use heapr_managed::{Interpreter, ManagedHeap, RootKind};
use heapr_testkit::{not_run, wait_until};
use tempfile::NamedTempFile;

use crate::lying_memory::lying_heaps;
use crate::memory::{heap_of, interpreters};

/// Number of moments at which the program is stopped; `HEAPR_STOPS` names another, as `cargo xtask
/// soak python-heap` does.
const STOPS: u32 = 40;
/// Number of different pauses between two stops.
const PAUSES: u32 = 40;

/// Number of nodes by which the program's counts may be behind: one is being made, one goes.
const COUNTED_LATE: u64 = 2;
/// Largest number of nodes that are gone for the program and still there: those of the circles and
/// chains that a collection is taking apart.
const GOING: u64 = 2_000;

/// Program that works without end, and the file with its counts.
struct Churning {
    child: Child,
    counts: NamedTempFile,
}

impl Drop for Churning {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Churning {
    fn start(python: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/churn.py");
        let counts = NamedTempFile::new().unwrap();
        counts.as_file().set_len(16).unwrap();
        let mut command = Command::new(python);
        command.arg("-I").arg(program).arg(counts.path()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "READY\n");
        Self { child, counts }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn stop(&self) {
        self.signal("-STOP");
        wait_until("the program stops", || self.is_stopped().then_some(()));
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Number of nodes that live, as the program has counted them.
    fn node_count(&self) -> u64 {
        let mut bytes = [0; 16];
        self.counts.as_file().read_exact_at(&mut bytes, 0).unwrap();
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        word(0) - word(8)
    }
}

#[test]
fn a_program_is_read_in_whatever_state_it_is_stopped() {
    if interpreters().is_empty() {
        not_run("no python3 is installed");
    }
    let stops = std::env::var("HEAPR_STOPS").ok().and_then(|stops| stops.parse().ok()).unwrap_or(STOPS);
    for python in interpreters() {
        let found = Found::of(&python, stops);
        println!("{}: {stops} stops, {found:?}", python.display());
        // The first stop may be before the first turn.
        assert!(found.least_objects > 5_000, "{found:?}");
        assert!(found.most_nodes > 1_000, "{found:?}");
    }
}

/// Numbers of all moments.
#[derive(Debug)]
struct Found {
    least_objects: usize,
    most_objects: usize,
    most_nodes: u64,
    /// Largest number of nodes beyond those that the program counts.
    most_going: u64,
    /// Longest reading.
    longest: Duration,
}

impl Found {
    /// Reads the heap at so many moments.
    fn of(python: &Path, stops: u32) -> Self {
        let churning = Churning::start(python);
        let mut found = Self {
            least_objects: usize::MAX,
            most_objects: 0,
            most_nodes: 0,
            most_going: 0,
            longest: Duration::ZERO,
        };
        for stop in 0..stops {
            // The moments differ; none of them is waited for.
            std::thread::sleep(Duration::from_micros(u64::from(stop % PAUSES) * 777));
            churning.stop();
            let begun = Instant::now();
            let heap = heap_of(churning.pid()).unwrap_or_else(|error| panic!("stop {stop}: {error}"));
            found.longest = found.longest.max(begun.elapsed());
            check(&heap, stop);
            found.add(&heap, churning.node_count(), stop);
            churning.signal("-CONT");
        }
        found
    }

    /// Compares the nodes with those that the program counts.
    fn add(&mut self, heap: &ManagedHeap, counted: u64, stop: u32) {
        let nodes = heap.nodes.iter().filter(|node| heap.name_of(node) == "__main__.Node").count() as u64;
        assert!(nodes + COUNTED_LATE >= counted, "stop {stop}: {nodes} nodes of {counted}");
        let going = nodes.saturating_sub(counted);
        assert!(going <= GOING, "stop {stop}: {nodes} nodes of {counted}");
        self.least_objects = self.least_objects.min(heap.nodes.len());
        self.most_objects = self.most_objects.max(heap.nodes.len());
        self.most_nodes = self.most_nodes.max(nodes);
        self.most_going = self.most_going.max(going);
    }
}

/// Checks what the program always holds.
fn check(heap: &ManagedHeap, stop: u32) {
    let main = heap.nodes.iter().position(|node| heap.name_of(node) == "module __main__").unwrap();
    let kept = heap.edges_of(main as u32).iter().find(|edge| heap.strings.get(edge.name.number()) == "KEPT");
    let kept = kept.unwrap_or_else(|| panic!("stop {stop}: no KEPT")).target;
    assert_eq!(heap.name_of(&heap.nodes[kept as usize]), "dict");
    // All that the program holds is found in the pools, in the middle of a collection, too.
    let garbage: usize =
        heap.roots.iter().filter(|root| root.kind == RootKind::Garbage).map(|root| root.edges.len()).sum();
    assert!(garbage < 10_000, "stop {stop}: {garbage}");
}

#[test]
fn memory_that_lies_ends_no_reading_badly() {
    let Some(python) = interpreters().into_iter().next() else { return not_run("no python3 is installed") };
    let churning = Churning::start(&python);
    churning.stop();
    let heaps = lying_heaps(Interpreter::Python, churning.pid(), 30, [20, 200, 2_000, 20_000]);
    let read_count = heaps.filter(|heap| heap.nodes.len() > 1000).count();
    assert!(read_count > 5, "{read_count}");
}
