//! Measures how long the longest lists of a snapshot take to open: `cargo run --release -p heapr-v8
//! --example lists_speed FILE CACHE`.
//!
//! `CACHE` is a directory for the index. The index is written first if it does not exist.

use std::path::Path;
use std::time::Instant;

use heapr_v8::view::{FieldOrder, Objects, Page, SnapshotView};
use heapr_v8::{IndexStore, ReadOptions};

const PAGE: usize = 100;
const RUNS: usize = 5;

/// Returns the node for which `number` is greatest.
fn most(objects: &dyn Objects, number: impl Fn(u32) -> usize) -> u32 {
    (0..objects.node_count()).max_by_key(|&node| number(node)).unwrap_or(0)
}

/// Reads one page of a node's list and returns the length of the whole list.
type List<'a> = &'a dyn Fn(u32, Page) -> heapr_v8::Result<u64>;

fn times(list: List<'_>, node: u32, page: Page) -> heapr_v8::Result<String> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        list(node, page)?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times.iter().map(|time| format!("{time:8.1}")).collect())
}

fn main() -> heapr_v8::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, cache] = &words[..] else {
        println!("lists_speed FILE CACHE");
        return Ok(());
    };
    let store = IndexStore::new(cache);
    let started = Instant::now();
    let view: SnapshotView = store.view_or_read(Path::new(file), &ReadOptions::default())?;
    println!("opened in {:.2} s", started.elapsed().as_secs_f64());
    let objects = view.objects();
    let held = most(objects, |node| objects.edges_into(node, usize::MAX).len());
    let array = most(objects, |node| objects.edges(node).len());
    let owner = most(objects, |node| objects.dominated_by_count(node) as usize);
    let lists: [(&str, u32, List<'_>); 4] = [
        ("retainers", held, &|node, page| Ok(view.retainers(node, page)?.total_count)),
        ("children", array, &|node, page| Ok(view.children(node, FieldOrder::Object, page)?.total_count)),
        ("children, retained", array, &|node, page| {
            Ok(view.children(node, FieldOrder::Retained, page)?.total_count)
        }),
        ("dominated", owner, &|node, page| Ok(view.dominated(node, page)?.total_count)),
    ];
    for (what, node, list) in lists {
        let count = list(node, Page::top(0))? as usize;
        let pages = [
            ("first", 0),
            ("second", PAGE),
            ("tenth", 9 * PAGE),
            ("middle", count / 2),
            ("last", count.saturating_sub(PAGE)),
        ];
        for (which, first) in pages {
            let times = times(list, node, Page { first, count: PAGE })?;
            println!("{what:20} {count:9} lines, {which:7} page, ms:{times}");
        }
    }
    Ok(())
}
