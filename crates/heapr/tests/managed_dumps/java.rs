//! Java's heaps: `victims/java/heaps/kinds` has one object of each kind, `sparse` has collections
//! with more room than contents.

use std::process::Command;

use heapr_testkit::{JavaProgram, Stage, cannot_run_here, java_kits, run};
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

/// `victims/java/heaps/sparse`, whose dump is large enough for an index.
#[test]
fn sparse_collections_are_added_up_by_their_owners_from_the_file_and_from_its_index() {
    let kits = java_kits();
    let Some(kit) = kits.first() else { return };
    let program = JavaProgram::start(kit, "sparse", "Sparse", &[]);
    let stage = Stage::new(HEAPR);
    program.dump(&stage.path("a.hprof"));

    let owners = |words: &[&str]| rows(&stage, &[&["collections", "--owners"], words, &["a.hprof"]].concat());
    let first = owners(&[]);
    let told = |owner: &str| {
        let found = row(&first, |row| row["owner"] == owner);
        let number = |name: &str| found[name].as_u64().unwrap_or_else(|| panic!("{name}: {found}"));
        ["collection_count", "empty_count", "slot_count", "used_count", "wasted_bytes"].map(number)
    };
    let notes = told("Sparse$Basket.notes (HashMap)");
    assert_eq!(notes, [20_000, 0, 1_280_000, 20_000, 1_260_000 * 4]);
    assert_eq!(told("Sparse$Basket.items (ArrayList)"), [20_000, 20_000, 0, 0, 0]);
    assert_eq!(told("class Sparse: BY_DAY[…] (ArrayList)"), [1_000, 0, 50_000, 1_000, 49_000 * 4]);
    assert_eq!(first[0]["owner"], "Sparse$Basket.notes (HashMap)", "{}", first[0]);

    // The first question has left an index; the same questions without one have the same answers.
    let with_index = |words: &[&str]| stage.heapr(&[&["snapshot"], words, &["a.hprof"]].concat());
    for words in [
        &["collections", "--owners", "--format", "json"][..],
        &["collections", "--format", "json"],
        &["collections", "--empty", "--top", "5"],
        &["suspects", "--format", "json"],
        &["suspects"],
        &["holders"],
    ] {
        let kept = with_index(words).ok().stdout;
        let words = [&["snapshot"], words, &["a.hprof"]].concat();
        let computed = run(stage.command(&words).env("HEAPR_INDEX_SIZE", "0")).ok().stdout;
        assert_eq!(kept, computed, "{words:?}");
    }
}

/// Two dumps' suspects are kept until one of the files changes.
#[test]
fn suspects_of_several_dumps_are_kept_until_a_file_changes() {
    let kits = java_kits();
    let Some(kit) = kits.first() else { return };
    let program = JavaProgram::start(kit, "sparse", "Sparse", &[]);
    let stage = Stage::new(HEAPR);
    program.dump(&stage.path("a.hprof"));
    program.dump(&stage.path("b.hprof"));
    let found = || stage.json(&["snapshot", "suspects", "a.hprof", "b.hprof"]);
    let first = found();
    assert_eq!(found(), first);
    let mut cut = std::fs::read(stage.path("a.hprof")).expect("the dump");
    cut.truncate(cut.len() - 100_000);
    std::fs::write(stage.path("a.hprof"), cut).expect("a shorter dump");
    let later = stage.heapr(&["snapshot", "suspects", "a.hprof", "b.hprof"]).ok();
    assert!(later.stderr.contains("is cut at offset"), "{}", later.stderr);
    // The kept answer has the warning, too.
    let again = stage.heapr(&["snapshot", "suspects", "a.hprof", "b.hprof"]).ok();
    assert_eq!((again.stdout, again.stderr), (later.stdout, later.stderr));
}

/// With little memory the columns lie in files without names, and the answer is the same.
#[test]
fn a_dump_that_needs_more_memory_than_is_free_is_read_by_way_of_files() {
    let kits = java_kits();
    let Some(kit) = kits.first() else { return };
    let stage = Stage::new(HEAPR);
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(stage.folder()).output();
    if kind.is_ok_and(|kind| kind.stdout.starts_with(b"tmpfs")) {
        cannot_run_here("the folder of temporary files is memory (tmpfs)");
        return;
    }
    let program = JavaProgram::start(kit, "sparse", "Sparse", &[]);
    program.dump(&stage.path("a.hprof"));
    let words = ["snapshot", "dominators", "a.hprof"];
    let without_index = || {
        let mut command = stage.command(&words);
        command.env("HEAPR_INDEX_SIZE", "0");
        command
    };
    let usual = run(&mut without_index()).ok();
    assert!(!usual.stderr.contains("lie in files"), "{}", usual.stderr);
    let scarce = run(without_index().env("HEAPR_MEMORY", "1M")).ok();
    assert!(scarce.stderr.contains("parts of it lie in files in "), "{}", scarce.stderr);
    assert_eq!(scarce.stdout, usual.stdout);
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
