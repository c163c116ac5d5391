//! Java's heaps: `victims/java/heaps/kinds` has one object of each kind.

use heapr_testkit::{JavaProgram, Stage, java_kits};
use serde_json::Value;

use crate::{HEAPR, rows};

/// Text of which the program has copies, and their number.
const COPIES: (&str, u64) = ("a text that is in memory many times", 500);

/// Program with one of each kind, on the first of the installed kits.
fn kinds() -> Option<JavaProgram> {
    Some(JavaProgram::start(java_kits().first()?, "kinds", "Kinds", &[]))
}

fn row(rows: &[Value], is_one: impl Fn(&Value) -> bool) -> &Value {
    rows.iter().find(|row| is_one(row)).unwrap_or_else(|| panic!("{rows:#?}"))
}

fn has(value: &Value, part: &str) -> bool {
    value.as_str().is_some_and(|text| text.contains(part))
}

#[test]
fn a_running_virtual_machine_is_asked_for_its_objects() {
    let Some(mut program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    let pid = program.pid().to_string();
    let take =
        |words: &[&str]| stage.json(&[&["snapshot", "take", "--heap", "java"], words, &[&pid]].concat());
    let taken = &take(&["-o", "names.heapsnapshot"])["snapshots"][0];
    assert_eq!((&taken["heap"], &taken["contents"]), (&"java".into(), &"names".into()), "{taken}");
    assert!(taken["object_count"].as_u64() > Some(5_000) && taken["dump_bytes"].as_u64() > Some(500_000));
    assert_eq!(rows(&stage, &["strings", "names.heapsnapshot"]), Vec::<Value>::new());

    take(&["--contents", "strings", "-o", "texts.heapsnapshot"]);
    let texts = rows(&stage, &["strings", "texts.heapsnapshot"]);
    let copies = row(&texts, |row| row["text"] == COPIES.0);
    assert_eq!(copies["count"], COPIES.1, "{copies}");
    program.step();
}

#[test]
fn a_pause_that_is_not_allowed_is_refused_before_anything_stops() {
    let Some(mut program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    let pid = program.pid().to_string();
    let words = ["snapshot", "take", "--heap", "java", "--max-pause", "1", "-o", "a.heapsnapshot", &pid];
    stage.heapr(&words).fails_with(&["would stand still", "it did not stop", "--max-pause allows more"]);
    assert!(!stage.path("a.heapsnapshot").exists());
    let words = ["snapshot", "take", "--heap", "java", "-o", "a.heapr", &pid];
    stage.heapr(&words).fails_with(&["-o names a .heapr", "--heap native"]);
    program.step();
}

#[test]
fn dumps_are_read_by_all_commands() {
    let Some(program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    program.dump(&stage.path("a.hprof"));

    let emptiest = rows(&stage, &["collections", "--empty", "a.hprof"]);
    let emptied = row(&emptiest, |row| has(&row["name"], "Kinds: EMPTIED"));
    assert_eq!((&emptied["fill_percent"], &emptied["reference_count"]), (&0.into(), &0.into()), "{emptied}");
    assert!(emptied["store_bytes"].as_u64() >= Some(4 * 8192), "{emptied}");
    let largest = rows(&stage, &["collections", "a.hprof"]);
    let copies = row(&largest, |row| has(&row["name"], "Kinds: COPIES"));
    assert_eq!(copies["reference_count"], COPIES.1, "{copies}");

    assert_eq!(rows(&stage, &["strings", "a.hprof"]), Vec::<Value>::new());
    let texts = rows(&stage, &["strings", "--texts", "a.hprof"]);
    assert_eq!(row(&texts, |row| row["text"] == COPIES.0)["count"], COPIES.1);
}

#[test]
fn soft_and_weak_references_hold_nothing() {
    let Some(program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    program.dump(&stage.path("a.hprof"));
    let of_class = |class: &str| rows(&stage, &["query", "a.hprof", "--class", class]);
    let ways = |class: &str| {
        let found = of_class(class);
        let id = format!("@{}", found.first().unwrap_or_else(|| panic!("{class}"))["id"]);
        stage.heapr(&["snapshot", "retainers", "a.hprof", &id]).ok().stdout
    };
    let softly = ways(r"^Kinds\$Softly$");
    assert!(softly.contains("(held by soft references alone)"), "{softly}");
    let draft = ways(r"^Kinds\$Draft$");
    assert!(draft.contains("thread-local Kinds.DRAFTS") && draft.contains("thread main"), "{draft}");
    // The dump has live objects alone: what a weak reference refers to is gone.
    assert_eq!(of_class(r"^Kinds\$Weakly$"), Vec::<Value>::new());
}

#[test]
fn thread_local_values_that_grow_are_named_by_their_key() {
    let Some(mut program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    for number in 0..3 {
        program.dump(&stage.path(&format!("{number}.hprof")));
        program.step();
    }
    let found = stage.json(&["snapshot", "suspects", "0.hprof", "1.hprof", "2.hprof"]);
    let first = &found["suspects"][0];
    assert_eq!(first["name"], "thread-local Kinds.DRAFTS (ArrayList)", "{first:#}");
    assert_eq!(first["confidence"], "high", "{first:#}");
}

#[test]
fn native_memory_of_direct_buffers_counts_for_who_holds_them() {
    let Some(program) = kinds() else { return };
    let stage = Stage::new(HEAPR);
    program.dump(&stage.path("a.hprof"));
    let classes = rows(&stage, &["summary", "a.hprof"]);
    let native = row(&classes, |row| row["class"] == "native memory");
    // A view of a buffer shows the memory of the buffer.
    assert!(
        native["shallow_bytes"].as_u64().is_some_and(|bytes| (300_000..600_000).contains(&bytes)),
        "{native}"
    );
    let held = rows(
        &stage,
        &["query", "a.hprof", "--class", r"^java\.nio\.DirectByteBuffer$", "--min-retained", "300000"],
    );
    assert_eq!(held.len(), 1, "{held:?}");

    // The C library's heap has a block of that size at that address.
    let buffer = format!("@{}", held[0]["id"]);
    let references = stage.heapr(&["snapshot", "containment", "a.hprof", &buffer]).ok().stdout;
    let address = references.split("(memory at ").nth(1).and_then(|rest| rest.split(')').next());
    let address = address.unwrap_or_else(|| panic!("{references}"));
    let pid = program.pid().to_string();
    stage.heapr(&["snapshot", "take", "--graph", "-q", "-o", "a.heapr", &pid]).ok();
    let block = stage.json(&["snapshot", "object", "a.heapr", address]);
    // The C library rounds large blocks up to whole pages.
    let is_it = |bytes: u64| (300_000..300_000 + 2 * 4096).contains(&bytes);
    assert!(block["shallow_bytes"].as_u64().is_some_and(is_it), "{address}: {block}");
}
