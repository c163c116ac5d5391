//! Reads a snapshot and prints how long that took: `cargo run --release -p heapr-v8 --example
//! read_speed FILE`.

use std::path::Path;
use std::time::Instant;

use heapr_v8::{ReadOptions, Snapshot};

fn main() {
    for path in std::env::args().skip(1) {
        for thread_count in [1, 2, 2] {
            let started = Instant::now();
            let options = ReadOptions { thread_count, ..ReadOptions::default() };
            match Snapshot::open(Path::new(&path), &options) {
                Ok(snapshot) => println!(
                    "{path}: {thread_count} threads {:.3} s, {} nodes, {} edges, {} strings, {} locations, {:?}",
                    started.elapsed().as_secs_f64(),
                    snapshot.node_count(),
                    snapshot.edge_count(),
                    snapshot.strings().count(),
                    snapshot.locations().all().len(),
                    snapshot.problems(),
                ),
                Err(error) => println!("{path}: {error}"),
            }
        }
    }
}
