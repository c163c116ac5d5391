//! Measures each step of a summary of a heap dump of Java:
//! `cargo run --release -p heapr-managed --example dump_speed FILE`.

use std::path::Path;
use std::time::Instant;

use heapr_managed::{Contents, read_hprof};
use heapr_v8::devtools::Heap;
use heapr_v8::{Fingerprint, IndexStore, StoredSummary, open_unpacked_at};

fn main() {
    for path in std::env::args().skip(1) {
        let path = Path::new(&path);
        let started = Instant::now();
        let mut last = started;
        let mut step = |what: &str| {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
            let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
            let ticks = stat.split(' ').skip(13).take(2).collect::<Vec<_>>().join(" + ");
            println!("{what:24} {:.3} s  {peak}, {ticks} ticks", last.elapsed().as_secs_f64());
            last = Instant::now();
        };
        let fingerprint = Fingerprint::of(path).unwrap();
        let dumped = match read_hprof(&|offset| open_unpacked_at(path, offset), Contents::Names) {
            Ok(dumped) => dumped,
            Err(error) => {
                println!("{}: {error}", path.display());
                continue;
            }
        };
        step("read");
        let Ok(heap) = Heap::with_summary(dumped.snapshot) else { continue };
        step("dominators and others");
        let summary = StoredSummary::of(&heap);
        step("summary");
        println!("{} nodes, {} edges", summary.node_count, summary.edge_count);
        for class in summary.classes.iter().take(3) {
            println!("  {:40} {:>10} {:>12}", class.name, class.object_count, class.retained_bytes);
        }
        if let Ok(folder) = std::env::var("INDEX") {
            let store = IndexStore::new(folder);
            let stored = store.store(path, &fingerprint, &heap, &summary);
            step("index");
            let again = store.view(path).and_then(|view| Some(view.summary().ok()?.classes.len()));
            step("second question");
            println!("stored: {stored:?}, {again:?} classes of {}", summary.classes.len());
        }
        println!("{}: {:.3} s", path.display(), started.elapsed().as_secs_f64());
    }
}
