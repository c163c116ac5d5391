//! Snapshots of real Python packages under load (`benches/managed_programs.py`): their cost, and
//! whether the first suspect of three snapshots is the leak that each program has.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::measured_run::MeasuredRun;
use super::table::markdown;
use super::waiting_python::Waiting;

const PROGRAM: &str = "benches/managed_programs.py";
const SNAPSHOTS: usize = 3;

/// Measures all programs whose packages a Python has, and returns the table. `only`: names of
/// programs; empty for all.
pub(super) fn run(heapr: &str, python: &str, folder: &Path, only: &[&str]) -> anyhow::Result<String> {
    let listed = crate::output_of(Command::new(python).arg(crate::root().join(PROGRAM)))?;
    let mut rows = Vec::new();
    let mut right_count = 0;
    for line in listed.lines() {
        let (name, owner) = line.split_once('\t').with_context(|| line.to_owned())?;
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let (row, is_right) =
            measure(heapr, python, folder, (name, owner)).with_context(|| name.to_owned())?;
        right_count += usize::from(is_right);
        rows.push(row);
    }
    let heading =
        ["program", "objects", "references", "CPU s", "MiB", "stands still ms", "first suspect", ""];
    Ok(format!(
        "## Real packages\n\nThe first suspect of {right_count} of {} programs is their leak.\n\n{}",
        rows.len(),
        markdown(&heading, &rows)
    ))
}

fn measure(
    heapr: &str,
    python: &str,
    folder: &Path,
    (name, owner): (&str, &str),
) -> anyhow::Result<(Vec<String>, bool)> {
    let mut program = Waiting::start(python, PROGRAM, &[name])?;
    let pid = program.pid().to_string();
    let log = folder.join("log");
    let mut files = Vec::new();
    let mut last = None;
    for number in 0..SNAPSHOTS {
        if number > 0 {
            program.step()?;
        }
        let file = folder.join(format!("{number}.heapsnapshot")).display().to_string();
        let words = ["snapshot", "take", "--heap", "python", "--format", "json", "-f", "-o", &file, &pid];
        let command: Vec<String> = [heapr].iter().chain(&words).map(|word| (*word).to_owned()).collect();
        let cost = MeasuredRun::start(&command, &BTreeMap::new(), &log)?.finish()?;
        let text = std::fs::read_to_string(&log)?;
        let told: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        last = Some((cost, told));
        files.push(file);
    }
    let (cost, told) = last.context("no snapshot")?;
    let found = Command::new(heapr)
        .args(["snapshot", "suspects", "--format", "json"])
        .args(&files)
        .output()
        .with_context(|| heapr.to_owned())?;
    let found: Value = serde_json::from_slice(&found.stdout)
        .with_context(|| String::from_utf8_lossy(&found.stderr).into_owned())?;
    let first = &found["suspects"][0];
    let suspect = first["name"].as_str().unwrap_or("none").to_owned();
    let is_right = suspect.starts_with(owner) && first["confidence"] == "high";
    let snapshot = &told["snapshots"][0];
    let row = vec![
        name.to_owned(),
        snapshot["object_count"].to_string(),
        snapshot["reference_count"].to_string(),
        format!("{:.2}", cost.cpu_s),
        format!("{:.0}", cost.peak_rss_kib as f64 / 1024.0),
        format!("{:.1}", snapshot["pause_ns"].as_f64().unwrap_or(f64::NAN) / 1e6),
        format!("{suspect}, {}", first["confidence"].as_str().unwrap_or("-")),
        if is_right { "right".to_owned() } else { format!("wanted {owner}") },
    ];
    Ok((row, is_right))
}
