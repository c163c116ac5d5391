//! Ruby's heaps: `victims/ruby/heaps/class-variable` writes its dumps itself, and is read while it
//! waits.

use std::path::Path;
use std::process::Command;

use heapr_testkit::{Growing, Stage, not_run};
use serde_json::Value;

use crate::{HEAPR, rows};

/// Starts the program, which writes `0.json` into the stage's folder, and one more dump for each
/// step. `None`: no Ruby is installed.
fn events(stage: &Stage) -> Option<Growing> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/ruby/heaps/class-variable/main.rb");
    if Command::new("ruby").arg("--version").output().is_err() {
        not_run("no Ruby is installed");
        return None;
    }
    let mut command = Command::new("ruby");
    command.arg(source.canonicalize().unwrap()).current_dir(stage.folder()).env_remove("RUBYOPT");
    Some(Growing::of(command).expect("the program is ready"))
}

#[test]
fn the_class_that_holds_a_growing_hash_is_named() {
    let stage = Stage::new(HEAPR);
    let Some(mut program) = events(&stage) else { return };
    program.step();
    program.step();
    let found = stage.json(&["snapshot", "suspects", "0.json", "1.json", "2.json"]);
    let first = &found["suspects"][0];
    assert_eq!(first["name"], "class Event: (Hash)", "{first:#}");
    assert_eq!(first["confidence"], "high", "{first:#}");
    let collects = first["collects"].as_array().unwrap();
    let events = collects.iter().find(|it| it["class"] == "Event").unwrap_or_else(|| panic!("{first:#}"));
    assert_eq!(events["count"], 20_000, "{first:#}");
}

#[test]
fn counts_are_those_of_the_interpreter_and_texts_shown_on_demand() {
    let stage = Stage::new(HEAPR);
    let Some(_program) = events(&stage) else { return };
    let counts = std::fs::read_to_string(stage.path("counts.txt")).unwrap();
    let classes = rows(&stage, &["summary", "0.json"]);
    for line in counts.lines() {
        let (class, count) = line.split_once(' ').unwrap();
        let row = classes.iter().find(|row| row["class"] == class).unwrap_or_else(|| panic!("{class}"));
        assert_eq!(row["object_count"].as_u64(), count.parse().ok(), "{class}");
    }
    let has_text = |words: &[&str]| {
        let rows = rows(&stage, words);
        rows.iter().any(|row| row["text"].as_str().is_some_and(|text| text == "a text that is there twice"))
    };
    assert!(!has_text(&["strings", "0.json"]));
    assert!(has_text(&["strings", "--texts", "0.json"]));
    let largest: Vec<Value> = rows(&stage, &["collections", "0.json"]);
    let first = &largest[0];
    assert_eq!((&first["class"], &first["reference_count"]), (&"Hash".into(), &20_000.into()), "{first}");
}

#[test]
fn a_running_ruby_is_taken_with_the_names_of_its_variables() {
    let stage = Stage::new(HEAPR);
    let Some(mut program) = events(&stage) else { return };
    let pid = program.pid().to_string();
    let mut taken = Vec::new();
    for file in ["0.heapsnapshot", "1.heapsnapshot", "2.heapsnapshot"] {
        if !taken.is_empty() {
            program.step();
        }
        taken.push(stage.json(&["snapshot", "take", "--heap", "ruby", "-o", file, &pid]));
    }
    let first = &taken[0]["snapshots"][0];
    let is_known = |version: &str| ["3.1", "3.3"].iter().any(|known| version.starts_with(known));
    let runtime = first["runtime"].as_str().and_then(|runtime| runtime.strip_prefix("Ruby "));
    assert!(first["heap"] == "ruby" && runtime.is_some_and(is_known), "{first:#}");
    let words = ["snapshot", "suspects", "0.heapsnapshot", "1.heapsnapshot", "2.heapsnapshot"];
    let found = stage.json(&words);
    let first = &found["suspects"][0];
    assert_eq!(first["name"], "class Event: @@seen (Hash)", "{first:#}");
    assert_eq!(first["confidence"], "high", "{first:#}");
    let collects = first["collects"].as_array().unwrap();
    let events = collects.iter().find(|it| it["class"] == "Event").unwrap_or_else(|| panic!("{first:#}"));
    assert_eq!(events["count"], 20_000, "{first:#}");
}

#[test]
fn all_memory_of_a_ruby_is_one_sum_with_its_objects() {
    let stage = Stage::new(HEAPR);
    let Some(program) = events(&stage) else { return };
    let explained = stage.json(&["explain", &program.pid().to_string(), "--objects"]);
    let sum = &explained["resident"]["objects"];
    let of = |key: &str| sum[key].as_i64().unwrap_or_else(|| panic!("{key}: {explained}"));
    assert!(of("object_count") > 20_000, "{sum}");
    let parts = ["object_bytes", "native_bytes", "rounding_bytes", "kept_bytes", "other_bytes"];
    let explained_bytes: i64 = parts.iter().map(|key| of(key)).sum();
    assert_eq!(explained_bytes + of("unexplained_bytes"), of("rss_bytes"), "{sum}");
    assert!(of("unexplained_bytes").abs() * 50 <= of("rss_bytes"), "more than 2 % of all: {sum}");
}
