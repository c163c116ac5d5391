//! Measures each step of a summary: `cargo run --release -p heapr-v8 --example summary_speed FILE`.

use std::path::Path;
use std::time::Instant;

use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};

fn main() {
    for path in std::env::args().skip(1) {
        let started = Instant::now();
        let mut last = started;
        let mut step = |what: &str| {
            println!("{what:24} {:.3} s", last.elapsed().as_secs_f64());
            last = Instant::now();
        };
        let snapshot = match Snapshot::open(Path::new(&path), &ReadOptions::default()) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        step("read");
        let heap = match std::env::var("STEPS") {
            Err(_) => Heap::with_summary(snapshot),
            Ok(_) => Heap::new(snapshot),
        };
        let Ok(heap) = heap else { continue };
        step("prepare");
        heap.page_objects();
        step("page objects");
        heap.dominators();
        step("dominators");
        heap.distances();
        step("distances");
        heap.classes();
        step("classes");
        heap.retained();
        step("retained");
        let aggregates = heap.aggregates(None);
        step("aggregates");
        println!("{path}: {:.3} s, {} classes", started.elapsed().as_secs_f64(), aggregates.len());
        for aggregate in aggregates.iter().take(5) {
            println!("  {:40} {aggregate:?}", heap.classes().get(aggregate.class).name_text());
        }
        println!("{:?}", heap.statistics());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    }
}
