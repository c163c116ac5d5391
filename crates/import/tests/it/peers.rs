//! Recordings by each tool: heapr's numbers equal the tool's own.

use std::path::Path;

use heapr_trace::Amounts;

use crate::program::{END_BYTES, KEPT_BYTES, PASSING_BYTES, build, run};
use crate::totals::{of_file, of_report};

/// Numbers in a text, without the commas of thousands.
fn numbers(text: &str) -> Vec<u64> {
    let plain = text.replace(',', "");
    plain.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn heaptrack_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return };
    let Some(recorded) = run("heaptrack", |command| {
        command.current_dir(folder.path()).arg("-o").arg(folder.path().join("seen")).arg(&program);
    }) else {
        return;
    };
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let file = ["seen.zst", "seen.gz"].map(|name| folder.path().join(name));
    let file = file.iter().find(|file| file.exists()).expect("heaptrack wrote a file");
    let sum = |cost: &str| {
        let stacks = folder.path().join(cost);
        let printed = run("heaptrack_print", |command| {
            command.arg("-f").arg(file).arg("-F").arg(&stacks).args(["--flamegraph-cost-type", cost]);
        });
        assert!(printed.unwrap().status.success());
        let lines = std::fs::read_to_string(&stacks).unwrap();
        let costs = lines.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        costs.sum::<u64>()
    };
    let amounts = of_file(file);
    assert_eq!(amounts.total_count, sum("allocations"));
    // heaptrack counts a free of allocation number 0 as temporary if the preceding call was a free.
    let temporary = sum("temporary");
    assert!((temporary.saturating_sub(1)..=temporary).contains(&amounts.temporary_count), "{amounts:?}");
    assert_eq!(amounts.outstanding_bytes, sum("leaked"));
    assert_eq!(amounts.peak_bytes, sum("peak"));
    assert!(amounts.temporary_count >= 1000 && amounts.outstanding_bytes >= END_BYTES, "{amounts:?}");
}

/// Version 0 has addresses, versions 1 and 2 texts without their lengths.
#[test]
fn older_files_of_heaptrack_are_read() {
    let old = "v 10000\nX ./old --flag\ns leaf\ns main\ns /bin/old\ni 1000 3 1 0 0\ni 2000 3 2 0 0\nt 2 0\nt 1 1\n+ 10 2 aa0\n\
               + 20 2 bb0\n- aa0\n- dead\nc a\n";
    let second = old
        .replace("v 10000", "v 10100 2")
        .replace("+ 10 2 aa0\n+ 20 2 bb0\n- aa0\n- dead", "a 10 2\na 20 2\n+ 0\n+ 1\n- 0");
    for text in [old.to_owned(), second] {
        let trace = heapr_import::from_bytes(text.as_bytes()).unwrap();
        let amounts = of_report(&trace);
        let expected = Amounts {
            total_count: 2,
            total_bytes: 0x30,
            outstanding_count: 1,
            outstanding_bytes: 0x20,
            peak_count: 2,
            peak_bytes: 0x30,
            ..Amounts::default()
        };
        assert_eq!(amounts, expected);
        assert_eq!(trace.processes()[0].name(), "old");
        assert_eq!(trace.duration_ns(), 10_000_000);
        assert!(trace.damage().is_empty() && trace.is_complete());
    }
}

#[test]
fn massif_holds_the_same_at_its_peak_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return };
    let file = folder.path().join("massif.out");
    let Some(_) = run("valgrind", |command| {
        let option = format!("--massif-out-file={}", file.display());
        command.args(["--tool=massif", "--peak-inaccuracy=0.0", &option]).arg(&program);
    }) else {
        return;
    };
    let text = std::fs::read_to_string(&file).unwrap();
    let peak = text.split("snapshot=").find(|part| part.contains("heap_tree=peak")).expect("a peak");
    let peak = peak.lines().find_map(|line| line.strip_prefix("mem_heap_B=")).unwrap();
    let amounts = of_file(&file);
    assert_eq!(amounts.peak_bytes, peak.parse::<u64>().unwrap());
    assert_eq!(amounts.peak_bytes, KEPT_BYTES + PASSING_BYTES);
    // The last snapshot is taken some time before the end.
    let last = text.lines().filter_map(|line| line.strip_prefix("mem_heap_B=")).next_back().unwrap();
    assert_eq!(amounts.outstanding_bytes, last.parse::<u64>().unwrap());
    assert!(amounts.outstanding_bytes >= END_BYTES && amounts.total_bytes == 0);
    let Some(printed) = run("ms_print", |command| {
        command.arg(&file);
    }) else {
        return;
    };
    let printed = String::from_utf8_lossy(&printed.stdout).replace(',', "");
    assert!(printed.contains(&amounts.peak_bytes.to_string()));
}

#[test]
fn dhat_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return };
    let file = folder.path().join("dhat.out");
    let Some(ran) = run("valgrind", |command| {
        let option = format!("--dhat-out-file={}", file.display());
        command.args(["--tool=dhat", &option]).arg(&program);
    }) else {
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let line = |what: &str| {
        let line = said.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {said}"));
        let [bytes, blocks, ..] = numbers(line.split_once(':').unwrap().1)[..] else { panic!("{line}") };
        (bytes, blocks)
    };
    let amounts = of_file(&file);
    assert_eq!((amounts.total_bytes, amounts.total_count), line("Total:"));
    assert_eq!((amounts.peak_bytes, amounts.peak_count), line("At t-gmax:"));
    assert_eq!((amounts.outstanding_bytes, amounts.outstanding_count), line("At t-end:"));
    assert_eq!(amounts.outstanding_bytes, END_BYTES);
    assert_eq!(heapr_import::open(&file).unwrap().processes()[0].name(), "heap");
}

/// jemalloc with profiling is rarely installed: the file is synthetic, and jeprof reads it too.
#[test]
fn samples_of_jemalloc_stand_for_what_jeprof_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jeprof.heap");
    let text = "heap_v2/524288\n  t*: 28: 9000000 [40: 12000000]\n  t0: 28: 9000000 [40: 12000000]\n\
                @ 0x401000 0x402000\n  t*: 20: 1000000 [30: 2000000]\n  t0: 20: 1000000 [30: 2000000]\n\
                @ 0x403000 0x402000\n  t*: 8: 8000000 [10: 10000000]\n  t0: 8: 8000000 [10: 10000000]\n\n\
                MAPPED_LIBRARIES:\n00400000-00500000 r-xp 00000000 08:01 12 /nowhere/service\n";
    std::fs::write(&file, text).unwrap();
    let trace = heapr_import::open(&file).unwrap();
    let amounts = of_report(&trace);
    assert_eq!(trace.locate(heapr_trace::ProcessIndex(0), 0x40_1000, 0).map(|found| found.1), Some(0x1000));
    for (option, expected) in [
        ("--inuse_space", amounts.outstanding_bytes),
        ("--inuse_objects", amounts.outstanding_count),
        ("--alloc_space", amounts.total_bytes),
        ("--alloc_objects", amounts.total_count),
    ] {
        let Some(printed) = run("jeprof", |command| {
            command.args(["--text", "--show_bytes", option, "/bin/true"]).arg(&file);
        }) else {
            return;
        };
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        let total = printed.lines().find_map(|line| line.strip_prefix("Total: ")).expect("a total");
        // jeprof truncates where heapr rounds, for each stack.
        let total: u64 = total.split(' ').next().unwrap().parse().unwrap();
        assert!(total.abs_diff(expected) <= 2, "{option}: jeprof {total}, heapr {expected}");
    }
}

#[test]
fn profiles_of_go_count_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = r#"package main
import ("os"; "runtime"; "runtime/pprof")
var kept [][]byte
func hold(n int) { for i := 0; i < n; i++ { kept = append(kept, make([]byte, 1000)) } }
func drop(n int) { for i := 0; i < n; i++ { kept[0] = make([]byte, 3000) } }
func init() { runtime.MemProfileRate = 1 }
func main() { hold(500); drop(100); runtime.GC(); f, _ := os.Create(os.Args[1]); pprof.Lookup("allocs").WriteTo(f, 0); f.Close() }
"#;
    let (source, file) = (folder.path().join("heap.go"), folder.path().join("heap.pb.gz"));
    std::fs::write(&source, program).unwrap();
    let Some(ran) = run("go", |command| {
        command.current_dir(folder.path()).env("GOFLAGS", "-mod=mod").arg("run").arg(&source).arg(&file);
    }) else {
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let amounts = of_file(&file);
    assert_eq!(
        go_totals(&file),
        [amounts.outstanding_bytes, amounts.outstanding_count, amounts.total_bytes, amounts.total_count]
    );
    assert!(amounts.outstanding_bytes >= 500 * 1000 && amounts.total_bytes >= 800_000, "{amounts:?}");
}

/// Totals by `go tool pprof`: space and objects of inuse and alloc.
fn go_totals(file: &Path) -> [u64; 4] {
    ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects"].map(|index| {
        let printed = run("go", |command| {
            let index = format!("-sample_index={index}");
            command.args(["tool", "pprof", "-raw", &index]).arg(file);
        });
        let printed = String::from_utf8_lossy(&printed.unwrap().stdout).into_owned();
        let mut lines = printed.lines().skip_while(|line| *line != "Samples:").skip(1);
        let types: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let column = types.iter().position(|name| name.starts_with(index)).unwrap();
        let samples = lines.take_while(|line| *line != "Locations");
        samples.filter_map(|line| numbers(line.split_once(':')?.0).get(column).copied()).sum()
    })
}

#[test]
fn profiles_of_v8_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = "const kept = []; function hold() { for (let i = 0; i < 20000; i++) kept.push({ i, text: 'x' + i }) } hold()";
    let source = folder.path().join("heap.js");
    std::fs::write(&source, program).unwrap();
    let file = folder.path().join("seen.heapprofile");
    let Some(ran) = run("node", |command| {
        command.current_dir(folder.path()).args(["--heap-prof", "--heap-prof-interval=1024"]);
        command.arg("--heap-prof-name=seen.heapprofile").arg(&source);
    }) else {
        return;
    };
    assert!(ran.status.success() && file.exists(), "{}", String::from_utf8_lossy(&ran.stderr));
    fn sum(node: &serde_json::Value) -> u64 {
        let children = node["children"].as_array().into_iter().flatten();
        node["selfSize"].as_u64().unwrap() + children.map(sum).sum::<u64>()
    }
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let amounts = of_file(&file);
    assert_eq!(amounts.outstanding_bytes, sum(&told["head"]));
    assert!(amounts.outstanding_bytes > 0);
}

/// heaptrack counts a block as temporary only if no event lies between its two events.
#[test]
fn a_free_behind_a_free_ends_no_temporary_block() {
    let text =
        "v 10300 3\nX 5 ./new\ns 4 leaf\ni 1000 0 1\nt 1 0\na 10 1\na 20 1\n+ 0\n+ 1\n- 0\n- 1\n+ 0\n- 0\n";
    let trace = heapr_import::from_bytes(text.as_bytes()).unwrap();
    let amounts = of_report(&trace);
    assert_eq!((amounts.total_count, amounts.outstanding_count), (3, 0), "{amounts:?}");
    // Only the last block is temporary. Of the first two, the second was allocated last, but freed
    // behind a free.
    assert_eq!(amounts.temporary_count, 1, "{amounts:?}");
}

#[test]
fn each_snapshot_of_massif_is_a_moment_of_the_course() {
    let head = "desc: --time-unit=B\ncmd: ./a\ntime_unit: B\n";
    let snapshot = |number: u32, time: u32, bytes: u32, tree: &str| {
        format!(
            "#-----------\nsnapshot={number}\n#-----------\ntime={time}\nmem_heap_B={bytes}\nmem_heap_extra_B=8\n\
             mem_stacks_B=0\nheap_tree={tree}\n"
        )
    };
    let text = [
        head.to_owned(),
        snapshot(0, 0, 0, "empty"),
        snapshot(1, 10, 100, "detailed\nn1: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n0: 100 0x1: f (a.c:1)"),
        snapshot(2, 20, 300, "peak\nn1: 300 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n n0: 300 0x1: f (a.c:1)"),
        snapshot(3, 30, 50, "empty"),
    ]
    .concat();
    let trace = heapr_import::from_bytes(text.as_bytes()).unwrap();
    let course = trace.course().unwrap().unwrap();
    let moments: Vec<_> =
        course.moments.iter().map(|moment| (moment.time_ns, moment.live_bytes, moment.rows.len())).collect();
    assert_eq!(moments, [(0, 0, 0), (10, 100, 1), (20, 300, 1), (30, 50, 0)]);
    assert_eq!(course.moments[1].rows[0].stack, course.moments[2].rows[0].stack);
    // massif can write more snapshots than a course has moments.
    let many: String = (0..1000).map(|number| snapshot(number, number, number, "empty")).collect();
    let trace = heapr_import::from_bytes([head, &many].concat().as_bytes()).unwrap();
    let moments = trace.course().unwrap().unwrap().moments;
    assert!((64..=128).contains(&moments.len()));
    assert_eq!((moments[0].time_ns, moments.last().unwrap().time_ns), (0, 999));
}
