//! The commands of `heapr snapshot` that read files, on small snapshots whose numbers can be
//! counted by hand.
//!
//! ```text
//!  root @1 --shortcut--> global @3 --.cache--> Cache @5 --.items--> Array @7 --[0]..--> Item @101, @103, …
//! ```
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, run};
use serde_json::{Value, json};

/// Returns a snapshot with this many items.
fn snapshot(items: u64) -> String {
    let mut nodes: Vec<[u64; 6]> =
        vec![[2, 0, 1, 0, 1, 0], [0, 1, 3, 100, 1, 0], [0, 2, 5, 24, 1, 0], [0, 3, 7, 16, items, 0]];
    let mut edges: Vec<[u64; 3]> = vec![[2, 1, 6], [1, 5, 12], [1, 6, 18]];
    for item in 0..items {
        nodes.push([0, 4, 101 + 2 * item, 40, 0, 0]);
        edges.push([0, item, (4 + item) * 6]);
    }
    let nodes: Vec<u64> = nodes.concat();
    let edges: Vec<u64> = edges.concat();
    let whole = json!({
        "snapshot": {
            "meta": {
                "node_fields": ["type", "name", "id", "self_size", "edge_count", "detachedness"],
                "node_types": [["object", "string", "synthetic"], "string", "number", "number", "number", "number"],
                "edge_fields": ["type", "name_or_index", "to_node"],
                "edge_types": [["element", "property", "shortcut"], "string_or_number", "node"],
                "location_fields": ["object_index", "script_id", "line", "column"],
            },
            "node_count": 4 + items,
            "edge_count": 3 + items,
        },
        "nodes": nodes,
        "edges": edges,
        "locations": [12, 9, 4, 2],
        "strings": ["", "global", "Cache", "Array", "Item", "cache", "items"],
    });
    // The header has to come first if the text cannot be read twice.
    let header = whole["snapshot"].to_string();
    let rest = ["nodes", "edges", "locations", "strings"].map(|name| format!("\"{name}\":{}", whole[name]));
    format!("{{\"snapshot\":{header},{}}}", rest.join(","))
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, items: u64) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, snapshot(items)).unwrap();
        path
    }
}

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

fn command(verb: &str) -> Command {
    let mut command = Command::new(HEAPR);
    command.arg(verb);
    command
}

fn heapr(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Outcome {
    run(command("snapshot").args(arguments.iter().map(|argument| argument.as_ref())))
}

fn json_of(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.extend([&"--format" as &dyn AsRef<std::ffi::OsStr>, &"json"]);
    heapr(&arguments).json()
}

fn text_of(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> String {
    heapr(arguments).ok().stdout
}

fn row<'a>(sheet: &'a Value, key: &str, value: &str) -> &'a Value {
    sheet["rows"].as_array().unwrap().iter().find(|row| row[key] == value).unwrap()
}

#[test]
fn the_summary_counts_by_class() {
    let files = Files::new();
    let summary = json_of(&[&"summary", &files.write("a.heapsnapshot", 10)]);
    assert_eq!(summary["schema"], "heapr.snapshot.summary/1");
    assert_eq!(summary["total_bytes"], 540);
    let items = row(&summary, "class", "Item");
    assert_eq!((&items["object_count"], &items["distance"]), (&json!(10), &json!(4)));
    assert_eq!((&items["shallow_bytes"], &items["retained_bytes"]), (&json!(400), &json!(400)));
    let cache = row(&summary, "class", "Cache");
    assert_eq!((&cache["retained_bytes"], &cache["place"]), (&json!(440), &json!("script 9:5:3")));
}

#[test]
fn text_shows_the_largest_first_and_csv_has_a_head_line() {
    let files = Files::new();
    let file = files.write("a.heapsnapshot", 3);
    let text = text_of(&[&"summary", &file, &"--top", &"2"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("7 nodes, 6 edges, 260 B in all"), "{text}");
    assert!(lines[3].starts_with("global") && lines[4].starts_with("Cache"), "{text}");
    assert!(lines[5].contains("2 more lines"), "{text}");
    let csv = text_of(&[&"summary", &file, &"--class", &"Item", &"--format", &"csv"]);
    assert_eq!(csv.lines().next().unwrap(), "id,name,class,distance,shallow_bytes,retained_bytes");
    assert_eq!(csv.lines().nth(1).unwrap(), "101,Item,Item,4,40,40");
}

#[test]
fn a_comparison_tells_what_is_new() {
    let files = Files::new();
    let (a, b, c) = (
        files.write("a.heapsnapshot", 3),
        files.write("b.heapsnapshot", 5),
        files.write("c.heapsnapshot", 9),
    );
    let diff = json_of(&[&"diff", &a, &b]);
    let items = row(&diff, "class", "Item");
    assert_eq!((&items["new_count"], &items["bytes_delta"]), (&json!(2), &json!(80)));
    assert_eq!(diff["rows"].as_array().unwrap().len(), 1);
    let objects = json_of(&[&"diff", &a, &b, &"--class", &"Item"]);
    assert_eq!(
        objects["rows"][0],
        json!({ "change": "new", "id": 107, "name": "Item", "shallow_bytes": 40 })
    );
    let trend = json_of(&[&"diff", &a, &b, &c]);
    let items = row(&trend, "class", "Item");
    assert_eq!((&items["object_counts"], &items["course"]), (&json!("3 5 9"), &json!("grows each time")));
}

#[test]
fn limits_decide_the_exit_status() {
    let files = Files::new();
    let (a, b) = (files.write("a.heapsnapshot", 3), files.write("b.heapsnapshot", 5));
    let status = |limit: &str| heapr(&[&"diff", &a, &b, &"--fail-if-growth", &limit]).status;
    assert_eq!([status("Item=2"), status("Item=1"), status("Item=80B"), status("Item=79B")], [0, 1, 0, 1]);
    assert_eq!([status("(total)=1K"), status("(total)=1")], [0, 1]);
    let status = |limit: &str| heapr(&[&"summary", &a, &"--fail-if-retained", &limit]).status;
    assert_eq!([status("Cache=160B"), status("Cache=159B"), status("Cache=159")], [0, 1, 1]);
}

#[test]
fn an_object_its_holders_and_its_dominators_are_found() {
    let files = Files::new();
    let file = files.write("a.heapsnapshot", 2);
    let object = json_of(&[&"object", &file, &"@5"]);
    assert_eq!((&object["class"], &object["retained_bytes"]), (&json!("Cache"), &json!(120)));
    assert_eq!(object["rows"][0]["field"], ".items");
    let retainers = json_of(&[&"retainers", &file, &"@103"]);
    assert_eq!(retainers["rows"][0]["edge"], "[1]");
    let path: Vec<&Value> =
        retainers["paths"][0].as_array().unwrap().iter().map(|step| &step["id"]).collect();
    assert_eq!(path, [&json!(1), &json!(3), &json!(5), &json!(7), &json!(103)]);
    let dominators = json_of(&[&"dominators", &file, &"7"]);
    assert_eq!(dominators["dominated_count"], 2);
    assert_eq!(dominators["chain"].as_array().unwrap().len(), 4);
    let contained = json_of(&[&"containment", &file]);
    assert_eq!(contained["rows"][0]["name"], "global");
    let found = json_of(&[&"query", &file, &"--class", &"^item$", &"--max-shallow", &"40"]);
    assert_eq!(found["object_count"], 2);
    heapr(&[&"object", &file, &"@4711"]).fails_with(&["no object @4711"]);
}

#[test]
fn exported_and_anonymous_snapshots_can_be_read_again() {
    let files = Files::new();
    let file = files.write("a.heapsnapshot", 4);
    let part = files.path("part.heapsnapshot");
    text_of(&[&"export", &file, &"@7", &"-o", &part]);
    assert!(text_of(&[&"check", &part]).contains("no problem found"));
    let summary = json_of(&[&"summary", &part]);
    assert_eq!((&summary["node_count"], &summary["total_bytes"]), (&json!(6), &json!(176)));
    let anonymous = files.path("anonymous.heapsnapshot");
    text_of(&[&"anonymize", &file, &"--names", &"-o", &anonymous]);
    let text = std::fs::read_to_string(&anonymous).unwrap();
    assert!(!text.contains("items") && !text.contains("Cache"), "{text}");
    assert_eq!(json_of(&[&"summary", &anonymous])["total_bytes"], 300);
    // Neither command overwrites a file.
    assert_eq!(heapr(&[&"export", &file, &"@7", &"-o", &part]).status, 2);
}

#[test]
fn check_finds_what_is_wrong_and_where() {
    let files = Files::new();
    let file = files.write("a.heapsnapshot", 4);
    assert!(text_of(&[&"check", &file]).contains("no problem found"));
    let text = snapshot(4);
    let broken = |name: &str, text: &str| -> String {
        let path = files.path(name);
        std::fs::write(&path, text).unwrap();
        let outcome = heapr(&[&"check", &path]);
        assert_eq!(outcome.status, 1, "{name}");
        outcome.stdout
    };
    let cut = text.find("\"locations\"").unwrap() - 10;
    assert!(broken("cut", &text[..cut]).contains(&format!("the file ends at offset {cut} inside \"edges\"")));
    let at = text.find("\"nodes\":[2").unwrap() + 9;
    assert!(
        broken("byte", &text.replacen("\"nodes\":[2", "\"nodes\":[#", 1))
            .contains(&format!("'#' at offset {at}"))
    );
    assert!(broken("empty", "").contains("the file is empty"));
    assert_eq!(heapr(&[&"check", &files.path("none")]).status, 2);
}

#[test]
fn standard_input_is_read() {
    let mut child = command("snapshot")
        .args(["statistics", "-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(snapshot(2).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("total,220,100.0 %"));
}

#[test]
fn the_summary_of_a_large_file_is_kept_until_the_file_changes() {
    let files = Files::new();
    let summary = |file: &Path| {
        let mut command = command("snapshot");
        command.args(["summary", "--format", "json"]).arg(file);
        run(command.env("XDG_CACHE_HOME", files.path("cache"))).json()
    };
    let small = files.write("small.heapsnapshot", 3);
    summary(&small);
    assert!(!files.path("cache").exists());
    let large = files.write("large.heapsnapshot", 500_000);
    let first = summary(&large);
    // The summary and the index.
    assert_eq!(std::fs::read_dir(files.path("cache/heapr/snapshots")).unwrap().count(), 2);
    assert_eq!(summary(&large), first);
    std::fs::write(&large, snapshot(500_001)).unwrap();
    assert_ne!(summary(&large), first);
}

#[test]
fn the_second_answer_about_a_large_file_is_the_same_from_its_index() {
    let files = Files::new();
    let file = files.write("large.heapsnapshot", 250_000);
    let asked = |index_size: &str, question: &[&str]| {
        let mut command = command("snapshot");
        command.args(&question[..1]).arg(&file).args(&question[1..]);
        command.env("XDG_CACHE_HOME", files.path("cache")).env("HEAPR_INDEX_SIZE", index_size);
        run(&mut command)
    };
    let questions: [&[&str]; 10] = [
        &["object", "@5"],
        &["containment", "@7", "--top", "4"],
        &["containment", "--sort", "object", "--format", "json"],
        &["retainers", "@103", "--format", "json"],
        &["retainers", "@103", "--ignore", "@5"],
        &["dominators", "@7", "--top", "3", "--format", "csv"],
        &["query", "--class", "item", "--top", "3", "--sort", "count"],
        &["query", "--property", "^(cache|7)$", "--min-retained", "1"],
        &["summary", "--class", "Item", "--top", "5"],
        &["object", "@4"],
    ];
    let without: Vec<_> = questions.iter().map(|question| asked("0", question)).collect();
    assert!(!files.path("cache/heapr/snapshots").exists(), "no index where none is wanted");
    assert_eq!(without[9].status, 2, "there is no object @4");
    assert_eq!(asked("1G", questions[0]), without[0], "the first time");
    let entry =
        std::fs::read_dir(files.path("cache/heapr/snapshots")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&entry).unwrap();
    for (question, without) in questions.iter().zip(&without) {
        assert_eq!(&asked("1G", question), without, "{question:?}");
    }
    assert_eq!(std::fs::read(&entry).unwrap(), whole, "nothing was written again");
    // A block of each column is damaged: the answer comes from the file, and a new index is made.
    let mut damaged = whole.clone();
    for at in (20_000..damaged.len() - 100_000).step_by(8_000) {
        damaged[at] ^= 1;
    }
    std::fs::write(&entry, &damaged).unwrap();
    assert_eq!(asked("1G", questions[3]), without[3]);
    assert!(std::fs::read(&entry).unwrap() == whole);
    // Analyses of the whole graph load it from the index, too.
    let strings = asked("1G", &["shapes"]);
    assert_eq!(strings, asked("0", &["shapes"]));
    assert!(strings.stdout.contains("Cache"), "{strings:?}");
}

/// Returns the snapshot with other ids; the root keeps its own.
fn renumbered(text: &str, shift: u64) -> String {
    let mut whole: Value = serde_json::from_str(text).unwrap();
    for row in whole["nodes"].as_array_mut().unwrap().chunks_mut(6).skip(1) {
        row[2] = json!(row[2].as_u64().unwrap() + shift);
    }
    let header = whole["snapshot"].to_string();
    let rest = ["nodes", "edges", "locations", "strings"].map(|name| format!("\"{name}\":{}", whole[name]));
    format!("{{\"snapshot\":{header},{}}}", rest.join(","))
}

#[test]
fn objects_are_matched_by_place_where_ids_are_of_another_numbering() {
    let files = Files::new();
    let b = files.path("b.heapsnapshot");
    // Each id is that of the object before, as after another inspector session; or all are new, as
    // in Bun.
    for (items, shift) in [(10, 2), (500, 1_000_000)] {
        let a = files.write("a.heapsnapshot", items);
        std::fs::write(&b, renumbered(&snapshot(items + 2), shift)).unwrap();
        let diff = json_of(&[&"diff", &a, &b]);
        assert_eq!((&diff["matched_by"], &diff["kept_count"]), (&json!("place"), &json!(items + 3)));
        assert!(diff["warnings"][0].as_str().unwrap().contains("by their places"), "{diff}");
        let found = row(&diff, "class", "Item");
        assert_eq!((&found["new_count"], &found["deleted_count"]), (&json!(2), &json!(0)));
        assert_eq!(diff["rows"].as_array().unwrap().len(), 1);
        let objects = json_of(&[&"diff", &a, &b, &"--class", &"Item"]);
        assert_eq!(objects["rows"].as_array().unwrap().len(), 2);
        assert_eq!(objects["rows"][0]["change"], "new");
        let same = json_of(&[&"diff", &a, &a]);
        assert_eq!((&same["matched_by"], &same["kept_count"]), (&json!("id"), &json!(items + 3)));
    }
}

/// Returns a doubly linked list of `length` entries, and a log of as many lines that is one string.
fn chains(length: u64) -> String {
    let strings = ["", "global", "Entry", "line\\n", "next", "previous", "log", "first", "second"];
    let (mut nodes, mut edges) = (vec![[2, 0, 1, 0, 1], [0, 1, 3, 40, 3]], vec![[2, 0, 1]]);
    let node_at = |first: u64, number: u64| first + number;
    let (first_entry, first_text) = (2, 2 + length);
    edges.push([1, 4, first_entry]);
    edges.push([1, 5, first_entry + length - 1]);
    edges.push([1, 6, first_text + 2 * (length - 1)]);
    for number in 0..length {
        let others = u64::from(number > 0) + u64::from(number + 1 < length);
        nodes.push([0, 2, 101 + 2 * number, 48, others]);
        if number + 1 < length {
            edges.push([1, 4, node_at(first_entry, number + 1)]);
        }
        if number > 0 {
            edges.push([1, 5, node_at(first_entry, number - 1)]);
        }
    }
    // A line, then a string of all before it and the next line, and so on.
    for number in 0..2 * length - 1 {
        let is_text = number % 2 == 1 || number == 0;
        let id = 10_000_001 + 2 * number;
        nodes.push(if is_text { [1, 3, id, 24, 0] } else { [3, 0, id, 32, 2] });
        if !is_text {
            edges.push([3, 7, first_text + number.saturating_sub(2)]);
            edges.push([3, 8, first_text + number - 1]);
        }
    }
    let nodes: Vec<String> = nodes.concat().iter().map(u64::to_string).collect();
    let edges: Vec<[u64; 3]> = edges.into_iter().map(|[kind, name, to]| [kind, name, to * 5]).collect();
    let edges: Vec<String> = edges.concat().iter().map(u64::to_string).collect();
    let strings: Vec<String> = strings.iter().map(|text| format!("\"{text}\"")).collect();
    format!(
        r#"{{"snapshot":{{"meta":{{"node_fields":["type","name","id","self_size","edge_count"],
        "node_types":[["object","string","synthetic","concatenated string"],"string","number","number","number"],
        "edge_fields":["type","name_or_index","to_node"],
        "edge_types":[["element","property","shortcut","internal"],"string_or_number","node"]}},
        "node_count":{},"edge_count":{}}},"nodes":[{}],"edges":[{}],"strings":[{}]}}"#,
        2 + length + 2 * length - 1,
        edges.len() / 3,
        nodes.join(","),
        edges.join(","),
        strings.join(",")
    )
}

/// Work that is quadratic in the length would take hours for the longer one.
#[test]
fn long_chains_are_read_in_one_go_by_each_command() {
    let files = Files::new();
    for length in [100, 30_000] {
        let file = files.path("chains.heapsnapshot");
        std::fs::write(&file, chains(length)).unwrap();
        let middle = format!("@{}", 101 + 2 * (length / 2));
        let retainers = json_of(&[&"retainers", &file, &middle]);
        let ways = retainers["paths"].as_array().unwrap();
        // The path leads from the root over the global object and all entries on one side.
        assert_eq!(ways[0].as_array().unwrap().len() as u64, 2 + length / 2);
        assert!(heapr(&[&"retainers", &file, &middle, &"--paths", &"20"]).status == 0);
        let strings = json_of(&[&"strings", &file]);
        assert!(strings["rows"].as_array().unwrap().len() > 1 || length == 100, "{strings}");
        assert_eq!(json_of(&[&"query", &file, &"--text", &"none of that"])["object_count"], 0);
        assert_eq!(json_of(&[&"query", &file, &"--name", &"none of that"])["object_count"], 0);
        let duplicates = json_of(&[&"summary", &file, &"--filter", &"duplicated-strings"]);
        assert!(row(&duplicates, "class", "(string)")["object_count"].as_u64().unwrap() >= length);
        for list in ["collections", "shapes", "fanout", "detached", "unreachable", "closures", "suspects"] {
            assert!(heapr(&[&list, &file]).status == 0, "{list}");
        }
        for (command, id) in [("object", &middle), ("dominators", &middle), ("containment", &middle)] {
            assert!(heapr(&[&command, &file, id]).status == 0, "{command}");
        }
        let longer = files.path("longer.heapsnapshot");
        std::fs::write(&longer, chains(length + 50)).unwrap();
        for command in ["diff", "suspects"] {
            assert!(heapr(&[&command, &file, &longer]).status == 0, "{command}");
        }
    }
}
