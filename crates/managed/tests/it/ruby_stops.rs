//! A Ruby that is stopped in the middle of its work, and memory that lies.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use heapr_managed::{Interpreter, ManagedHeap, RootKind, write_snapshot};
use heapr_testkit::{not_run, wait_until};

use crate::lying_memory::lying_heaps;
use crate::memory::ruby_heap_of;
use crate::ruby::rubies;

/// Number of moments at which the program is stopped; `HEAPR_STOPS` names another.
const STOPS: u32 = 40;
/// Objects that the program holds all the time.
const KEPT: usize = 5_000;

/// Program that works without end.
struct Churning(Child);

impl Drop for Churning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Churning {
    fn start(ruby: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ruby_churn.rb");
        let mut command = Command::new(ruby);
        let mut child = command.arg(program).env_remove("RUBYOPT").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "READY\n");
        Self(child)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(name).arg(self.0.id().to_string()).status().unwrap();
        assert!(status.success());
        let is_stopped = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && line.contains('T')).then_some(())
        };
        if name == "-STOP" {
            wait_until("it stands still", is_stopped);
        }
    }
}

fn kept(heap: &ManagedHeap) -> usize {
    heap.nodes.iter().filter(|node| heap.name_of(node) == "Kept").count()
}

#[test]
fn a_ruby_stopped_at_any_moment_has_what_it_holds() {
    let Some(ruby) = rubies().into_iter().next() else { return not_run("no ruby is installed") };
    let stops = std::env::var("HEAPR_STOPS").ok().and_then(|stops| stops.parse().ok()).unwrap_or(STOPS);
    let churning = Churning::start(&ruby);
    for stop in 0..stops {
        std::thread::sleep(Duration::from_millis(3 + u64::from(stop * 37 % 29)));
        churning.signal("-STOP");
        let heap = ruby_heap_of(churning.0.id()).unwrap_or_else(|error| panic!("stop {stop}: {error}"));
        churning.signal("-CONT");
        assert_eq!(kept(&heap), KEPT, "stop {stop}");
        let garbage = heap.roots.iter().filter(|root| root.kind == RootKind::Garbage);
        let targets = garbage.flat_map(|root| &root.edges).map(|edge| &heap.nodes[edge.target as usize]);
        assert!(!targets.into_iter().any(|node| heap.name_of(node) == "Kept"), "stop {stop}");
    }
}

#[test]
fn memory_of_ruby_that_lies_ends_no_reading_badly() {
    let Some(ruby) = rubies().into_iter().next() else { return not_run("no ruby is installed") };
    let churning = Churning::start(&ruby);
    churning.signal("-STOP");
    let mut read_count = 0;
    for mut heap in lying_heaps(Interpreter::Ruby, churning.0.id(), 12, [200, 2_000, 20_000, 200_000]) {
        read_count += u32::from(kept(&heap) > 1_000);
        let mut file = Vec::new();
        write_snapshot(&mut heap, &mut file).unwrap();
    }
    assert!(read_count > 3, "{read_count}");
}
