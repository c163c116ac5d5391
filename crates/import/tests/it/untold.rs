//! Facts that a tool does not record are unknown, and never 0.

use std::io::Write as _;

use heapr_import::Error;
use heapr_query::Metric;
use heapr_trace::{Amounts, Trace};

use crate::totals::of_report;

fn read(text: &str) -> Trace {
    heapr_import::from_bytes(text.as_bytes()).unwrap()
}

fn unknown(amounts: &Amounts) -> Vec<&'static str> {
    Metric::all().filter(|metric| metric.is_unknown(amounts)).map(Metric::name).collect()
}

/// A massif file with the bytes of each snapshot, all without stacks.
fn massif(bytes: &[u64]) -> String {
    let head = "desc: (none)\ncmd: ./srv\ntime_unit: ms\n";
    bytes.iter().enumerate().fold(head.to_owned(), |text, (number, bytes)| {
        text + &format!(
            "#-----------\nsnapshot={number}\n#-----------\ntime={}\nmem_heap_B={bytes}\nmem_heap_extra_B=20\n\
             mem_stacks_B=0\nheap_tree=empty\n",
            number * 10
        )
    })
}

#[test]
fn the_highest_snapshot_of_massif_is_the_peak_where_it_marks_none() {
    for (bytes, peak, live) in [
        (&[0, 7000, 5000][..], 7000, 5000),
        (&[5_021_305_210][..], 5_021_305_210, 5_021_305_210),
        (&[9, 0][..], 9, 0),
        (&[0][..], 0, 0),
    ] {
        let trace = read(&massif(bytes));
        let amounts = of_report(&trace);
        assert_eq!((amounts.peak_bytes, amounts.outstanding_bytes), (peak, live), "{bytes:?}");
    }
    // A smaller snapshot's stacks must not be used for the peak.
    let tree = massif(&[10, 900, 400]).replacen(
        "mem_heap_B=10\nmem_heap_extra_B=20\nmem_stacks_B=0\nheap_tree=empty",
        "mem_heap_B=10\nmem_heap_extra_B=20\nmem_stacks_B=0\nheap_tree=detailed\nn1: 10 (heap)\n n0: 10 0x1: f (a.c:1)",
        1,
    );
    assert_eq!(of_report(&read(&tree)).peak_bytes, 900);
}

#[test]
fn each_format_says_what_it_does_not_tell() {
    let counts = ["outstanding_count", "total_count", "peak_count"];
    let massif = unknown(&of_report(&read(&massif(&[0, 7000, 5000]))));
    assert!(counts.iter().all(|name| massif.contains(name)), "{massif:?}");
    assert!(massif.contains(&"total_bytes") && !massif.contains(&"peak_bytes"), "{massif:?}");
    let gperftools = "heap profile: 2: 2000 [0: 0] @ heapprofile\n2: 2000 [0: 0] @ 0x401136\n";
    let told = unknown(&of_report(&read(gperftools)));
    assert_eq!(
        told,
        ["total_bytes", "total_count", "realloc_count", "peak_bytes", "peak_count", "temporary_count"]
    );
    let told = unknown(&of_report(&read(&gperftools.replace("[0: 0]", "[5: 5000]"))));
    assert_eq!(told, ["realloc_count", "peak_bytes", "peak_count", "temporary_count"]);
}

#[test]
fn heads_of_gperftools_and_go_are_read_and_others_named() {
    let of = |way: &str| {
        format!("heap profile: 2: 2000 [ 5: 5000] @ {way}\n 2: 2000 [ 5: 5000] @ 0x401136 0x401156\n")
    };
    for way in ["growth", "growthz", "heap", "heapprofile"] {
        assert_eq!(of_report(&read(&of(way))).outstanding_bytes, 2000, "{way}");
    }
    for way in ["heapz_v2/524288", "heap_v2/524288", "heap/1048576"] {
        assert_eq!(of_report(&read(&of(way))).outstanding_bytes, 1_049_576, "{way}");
    }
    let refused = |way: &str| heapr_import::from_bytes(of(way).as_bytes()).unwrap_err().to_string();
    assert!(
        refused("contention/100").starts_with("gperftools: at offset 0"),
        "{}",
        refused("contention/100")
    );
    assert!(refused("fragmentationz").contains("fragmentation"), "{}", refused("fragmentationz"));
}

/// Go's text (`/debug/pprof/heap?debug=1`) has names behind each stack.
#[test]
fn gos_text_has_its_names() {
    let text = "heap profile: 1: 100 [2: 200] @ heap/2\n1: 100 [2: 200] @ 0x45d2c8 0x45d1b1\n\
                #\t0x45d2c7\tmain.keep+0x47\t/src/main.go:12\n#\t0x45d1b0\tmain.main+0x10\t/src/main.go:5\n\n\
                # runtime.MemStats\n# Alloc = 1234\n";
    let trace = read(text);
    assert!(trace.losses().is_empty(), "{:?}", trace.losses());
    assert_eq!(of_report(&trace).outstanding_bytes, 100);
    let symbols = trace.embedded_symbols().unwrap().unwrap();
    for name in ["main.keep", "main.main", "/src/main.go"] {
        assert!(symbols.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A few kilobytes must not cost gigabytes or minutes.
#[test]
fn small_files_that_would_take_much_memory_are_refused() {
    let chain = |depth: usize| {
        let nodes: String = (0..depth)
            .map(|depth| format!("{}n1: {} 0x1: f{depth} (a.c:1)\n", " ".repeat(depth), 1_000_000 - depth))
            .collect();
        massif(&[9]).replace("heap_tree=empty\n", &format!("heap_tree=peak\n{nodes}"))
    };
    let deep = heapr_import::from_bytes(chain(3000).as_bytes()).unwrap_err();
    assert!(deep.to_string().contains("deeper"), "{deep}");
    // Stacks that share no node: each sample has another outermost caller.
    let samples: String = (0..3000)
        .map(|number| {
            let calls: String = (0..200).map(|depth| format!(" 0x{:x}", 0x1000 + depth)).collect();
            format!("1: 8 [1: 8] @{calls} 0x{number:x}0000\n")
        })
        .collect();
    let text = format!("heap profile: 1: 8 [1: 8] @ heapprofile\n{samples}");
    let refused = heapr_import::from_bytes(&packed(text.as_bytes())).unwrap_err();
    assert!(matches!(refused, Error::Swells { .. }), "{refused}");
}
