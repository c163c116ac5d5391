//! A program that is stopped in the middle of its work, and memory that lies.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use heapr_managed::{Contents, PythonRequest, RootKind, read_python};
use heapr_native::Memory;
use heapr_testkit::{not_run, wait_until};

use crate::memory::{heap_of, interpreters};

/// Number of moments at which the program is stopped; `HEAPR_STOPS` names another, as `cargo xtask
/// soak python-heap` does.
const STOPS: u32 = 40;
/// Number of different pauses between two stops.
const PAUSES: u32 = 40;

struct Churning(Child);

impl Drop for Churning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Churning {
    fn start(python: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/churn.py");
        let mut child = Command::new(python).arg("-I").arg(program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "READY\n");
        Self(child)
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }
}

#[test]
fn a_program_is_read_in_whatever_state_it_is_stopped() {
    if interpreters().is_empty() {
        not_run("no python3 is installed");
    }
    let stops = std::env::var("HEAPR_STOPS").ok().and_then(|stops| stops.parse().ok()).unwrap_or(STOPS);
    for python in interpreters() {
        let least = least_of_stops(&python, stops);
        println!("{}: {stops} stops, at least {least} objects", python.display());
    }
}

/// Reads the heap at so many moments; returns the least number of objects.
fn least_of_stops(python: &Path, stops: u32) -> usize {
    let churning = Churning::start(python);
    let mut least = usize::MAX;
    for stop in 0..stops {
        // The moments differ; none of them is waited for.
        std::thread::sleep(Duration::from_micros(u64::from(stop % PAUSES) * 777));
        churning.signal("-STOP");
        wait_until("the program stops", || churning.is_stopped().then_some(()));
        let heap = heap_of(churning.0.id()).unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        let main = heap.nodes.iter().position(|node| heap.name_of(node) == "module __main__").unwrap();
        let kept =
            heap.edges_of(main as u32).iter().find(|edge| heap.strings.get(edge.name.number()) == "KEPT");
        let kept = kept.unwrap_or_else(|| panic!("stop {stop}: no KEPT")).target;
        assert_eq!(heap.name_of(&heap.nodes[kept as usize]), "dict");
        least = least.min(heap.nodes.len());
        // All that the program holds is found in the pools, in the middle of a collection, too.
        let garbage: usize = heap
            .roots
            .iter()
            .filter(|root| root.kind == RootKind::Garbage)
            .map(|root| root.edges.len())
            .sum();
        assert!(garbage < 10_000, "stop {stop}: {garbage}");
        churning.signal("-CONT");
    }
    // The first stop may be before the first turn: then there are the interpreter's own objects.
    assert!(least > 5_000, "{least}");
    least
}

/// Memory of which some words are others.
struct Bent {
    file: File,
    /// State of the sequence by which words are bent.
    state: Cell<u64>,
    /// One word of so many is bent.
    rarity: u64,
}

impl Bent {
    fn next(&self) -> u64 {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        state
    }
}

impl Memory for Bent {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let count = self.file.read_at(into, address_avma).unwrap_or(0);
        for word in into[..count].chunks_exact_mut(8) {
            let random = self.next();
            if random.is_multiple_of(self.rarity) {
                let bent = match random >> 8 & 3 {
                    0 => random >> 16,
                    1 => u64::MAX,
                    2 => address_avma + (random >> 50),
                    _ => random >> 40,
                };
                word.copy_from_slice(&bent.to_le_bytes());
            }
        }
        count
    }
}

#[test]
fn memory_that_lies_ends_no_reading_badly() {
    let Some(python) = interpreters().into_iter().next() else { return not_run("no python3 is installed") };
    let churning = Churning::start(&python);
    churning.signal("-STOP");
    wait_until("the program stops", || churning.is_stopped().then_some(()));
    let pid = churning.0.id();
    let mappings = heapr_proc::mappings::read(pid).unwrap();
    let mut read_count = 0;
    for round in 0..30_u64 {
        let memory = Bent {
            file: File::open(format!("/proc/{pid}/mem")).unwrap(),
            state: Cell::new(0x9e37_79b9_7f4a_7c15 ^ (round + 1) << 32),
            rarity: [20, 200, 2_000, 20_000][round as usize % 4],
        };
        let request = PythonRequest {
            memory: &memory,
            mappings: &mappings,
            blocks: &[],
            contents: Contents::Strings,
            goes_on: &|| true,
        };
        // Bent anchors are refused; the rest is read.
        read_count += u32::from(read_python(&request).is_ok_and(|heap| heap.nodes.len() > 1000));
    }
    assert!(read_count > 5, "{read_count}");
}
