//! Times of an explorer on a trace: `cargo run --example explore_times FILE`.
use std::sync::Arc;
use std::time::Instant;

use heapr_query::*;
use heapr_trace::Trace;

fn main() {
    let file = std::env::args().nth(1).expect("a trace");
    let start = Instant::now();
    let trace = Arc::new(Trace::open(std::path::Path::new(&file)).unwrap());
    println!("open {:?} events {}", start.elapsed(), trace.event_count());
    let explorer = Explorer::new(trace.clone());
    let start = Instant::now();
    let all = explorer.select(&Filter::default(), Found::default(), &|| false).unwrap();
    println!("summary {:?}", start.elapsed());
    let start = Instant::now();
    explorer.name(&mut NoSymbols);
    println!("tree {:?}", start.elapsed());
    let start = Instant::now();
    explorer.read_events(TableLimit { memory_bytes: 8 << 30 }, &mut |_, _| {}, &|| false).unwrap();
    println!("table {:?} {} MB", start.elapsed(), explorer.table().unwrap().memory_bytes() >> 20);
    let d = trace.duration_ns();
    let cull = CullList::built_in();
    let show = |selection: &Selection, what: &str| {
        let start = Instant::now();
        let ranking = explorer.rank(selection, &cull, GroupBy::Stacks, SortKey::TotalBytes).unwrap();
        print!("  {what}: rank {:?} ({})", start.elapsed(), ranking.group_count);
        for is_bottom_up in [false, true] {
            let start = Instant::now();
            let query = FlameQuery {
                value: Value::TotalBytes,
                is_bottom_up,
                collapses_recursion: false,
                focus: None,
                root: None,
                least_share: 0.0005,
                nodes_max: 20000,
            };
            let tree = explorer.flame(selection, &cull, &query).unwrap();
            print!(" flame {:?} ({})", start.elapsed(), tree.nodes.len());
        }
        println!();
    };
    show(&all, "all");
    for (from, to) in [(0, d), (d / 4, d / 2), (d / 2, d / 2 + d / 100)] {
        for histograms in [false, true] {
            let filter = Filter { range: Some(Span { from, to }), ..Filter::default() };
            let start = Instant::now();
            let selection =
                explorer.select(&filter, Found { threads: false, histograms }, &|| false).unwrap();
            println!(
                "range {from} {to} histograms {histograms} {:?} {}",
                start.elapsed(),
                selection.totals.alloc_count
            );
            show(&selection, "range");
        }
    }
    for kind in [AllocationType::Aofo, AllocationType::Aofi] {
        let filter = Filter {
            range: Some(Span { from: d / 2, to: d }),
            allocation_type: Some(kind),
            ..Filter::default()
        };
        let start = Instant::now();
        let selection = explorer.select(&filter, Found::default(), &|| false).unwrap();
        println!("type {kind:?} {:?} {}", start.elapsed(), selection.totals.alloc_count);
    }
    let filter = Filter { at: Some(Moment::Peak), ..Filter::default() };
    let start = Instant::now();
    let selection = explorer.select(&filter, Found::default(), &|| false).unwrap();
    println!("peak {:?} {}", start.elapsed(), selection.totals.alloc_count);
    for by in [CourseBy::Nothing, CourseBy::Threads, CourseBy::Images, CourseBy::Stacks] {
        for time in [Span { from: 0, to: d }, Span { from: d / 2, to: d / 2 + d / 100 }] {
            let start = Instant::now();
            let query = CourseQuery {
                filter: Filter::default(),
                cull: cull.clone(),
                time,
                bins: 1000,
                by,
                series_max: 8,
                of: CourseOf::LiveBytes,
            };
            let course = explorer.course(&query, &|| false).unwrap().unwrap();
            println!("course {by:?} {:?} {:?}", start.elapsed(), course.peak);
        }
    }
}
