//! Heaps of Java and .NET by `heapr snapshot take --heap`, and heap dumps of these and Ruby, by the
//! commands that read snapshots.
#![forbid(unsafe_code)]

mod dotnet;
mod java;
mod ruby;

use heapr_testkit::Stage;

/// Path of the heapr under test.
const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

/// Rows of a table that the command line prints.
fn rows(stage: &Stage, words: &[&str]) -> Vec<serde_json::Value> {
    let words = [&["snapshot"], words].concat();
    let answer = stage.json(&words);
    let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{words:?}: {answer}"));
    rows.clone()
}
