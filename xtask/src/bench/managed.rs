//! Measures snapshots of CPython's heaps: time and memory of heapr, and the time for which the
//! program stands still. guppy3 is measured beside it, if `HEAPR_PYTHON` has it (default
//! `python3`), and memlab on the file.
//!
//! `HEAPR` names a program to use instead of a new build.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::measured_run::MeasuredRun;
use super::table::markdown;
use super::waiting_python::Waiting;

/// Numbers of objects that are made, and the bars for a snapshot: seconds and MiB.
const SIZES: [(&str, f64, f64); 2] = [("1000000", 1.0, 100.0), ("5000000", 5.0, 400.0)];
const ROUNDS: usize = 3;

/// Name of the file that is written.
const FILE: &str = "x.heapsnapshot";
/// Program that makes objects.
const OBJECTS: &str = "benches/managed_objects.py";

/// Measures and returns the tables: made objects, the best of three rounds, and real packages.
/// `only`: names of real programs, which are measured alone.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<String> {
    let heapr = crate::soak_graph_kills::heapr()?.display().to_string();
    let python = std::env::var("HEAPR_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_guppy = crate::output_of(Command::new(&python).args(["-c", "import guppy"])).is_ok();
    let folder = tempfile::tempdir()?;
    let programs = super::managed_programs::run(&heapr, &python, folder.path(), only)?;
    if !only.is_empty() {
        return Ok(programs);
    }
    let (mut rows, mut questions) = (Vec::new(), String::new());
    for (objects, bar_s, bar_mib) in SIZES {
        rows.push(measure_heapr(&heapr, &python, objects, folder.path(), (bar_s, bar_mib))?);
        if questions.is_empty() {
            questions = super::managed_questions::run(&heapr, &folder.path().join(FILE), folder.path())?;
        }
        if has_guppy {
            rows.push(measure_guppy(&python, objects)?);
        }
    }
    let heading = ["snapshot of", "objects", "seconds", "CPU s", "MiB", "stands still ms", "bars"];
    Ok(format!(
        "## Heaps of Python\n\nBest of {ROUNDS}.{}\n\n{}\n{questions}\n{programs}",
        if has_guppy { "" } else { " guppy3 is not installed." },
        markdown(&heading, &rows)
    ))
}

fn measure_heapr(
    heapr: &str,
    python: &str,
    objects: &str,
    folder: &Path,
    (bar_s, bar_mib): (f64, f64),
) -> anyhow::Result<Vec<String>> {
    let program = Waiting::start(python, OBJECTS, &[objects])?;
    let (pid, file) = (program.pid().to_string(), folder.join(FILE).display().to_string());
    let command = ["snapshot", "take", "--heap", "python", "--format", "json", "-f", "-o", &file, &pid];
    let command: Vec<String> = [heapr].iter().chain(&command).map(|word| (*word).to_owned()).collect();
    let log = folder.join("log");
    let mut best: Option<(super::measured_run::Cost, Value)> = None;
    for _ in 0..ROUNDS {
        let cost = MeasuredRun::start(&command, &BTreeMap::new(), &log)?.finish()?;
        let text = std::fs::read_to_string(&log)?;
        let told = serde_json::from_str(&text).with_context(|| text.clone())?;
        if best.as_ref().is_none_or(|(known, _)| cost.wall_s < known.wall_s) {
            best = Some((cost, told));
        }
    }
    let (cost, told) = best.context("no round")?;
    let snapshot = &told["snapshots"][0];
    Ok(vec![
        "heapr".to_owned(),
        snapshot["object_count"].to_string(),
        format!("{:.2}", cost.wall_s),
        format!("{:.2}", cost.cpu_s),
        format!("{:.0}", cost.peak_rss_kib as f64 / 1024.0),
        format!("{:.1}", snapshot["pause_ns"].as_f64().unwrap_or(f64::NAN) / 1e6),
        format!("{bar_s} s, {bar_mib} MiB"),
    ])
}

/// guppy3 runs in the program, which stands still for all of its time.
fn measure_guppy(python: &str, objects: &str) -> anyhow::Result<Vec<String>> {
    let mut program = Waiting::start(python, OBJECTS, &[objects, "guppy"])?;
    let mut best = [f64::INFINITY, 0.0, 0.0, 0.0];
    for _ in 0..ROUNDS {
        program.ask()?;
        let line = program.line()?;
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[seconds, cpu_s, kib, count] = &numbers[..] else { anyhow::bail!("guppy3 said {line:?}") };
        if seconds < best[0] {
            best = [seconds, cpu_s, kib.max(best[2]), count];
        }
    }
    let [seconds, cpu_s, kib, count] = best;
    Ok(vec![
        "guppy3, in the program".to_owned(),
        format!("{count}"),
        format!("{seconds:.2}"),
        format!("{cpu_s:.2}"),
        format!("{:.0}", kib / 1024.0),
        format!("{:.1}", seconds * 1e3),
        String::new(),
    ])
}
