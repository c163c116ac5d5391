//! What attaching leaves behind, and what it costs against starting a program under heapr.
//!
//! Four copies of a program, of which one runs at a time, in turn: one that is left alone, one that was attached to and let go, one
//! that heapr has started, one that heapr is attached to.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use super::table::markdown;
use crate::soak_attach::{Program, start};

const ROUNDS: usize = 11;
const MEASURE: Duration = Duration::from_secs(2);
/// For caches and the recorder to come to rest.
const SETTLE: Duration = Duration::from_millis(300);

/// The table.
pub(crate) fn run() -> anyhow::Result<String> {
    for package in [&["heapr"][..], &["heapr-session", "--example", "attach_soak"]] {
        crate::run(crate::cargo().args(["build", "--profile", "quick", "--quiet", "-p"]).args(package))?;
    }
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for name in ["redis", "thread"] {
        rows.push(measure(name, &folder)?);
    }
    let heading = [
        "program",
        "left alone, per s",
        "let go / alone",
        "started / alone",
        "attached / alone",
        "attached / started",
    ];
    Ok(format!(
        "Medians of {ROUNDS} rounds of {} s each, in turn.\n\n{}",
        MEASURE.as_secs(),
        markdown(&heading, &rows)
    ))
}

fn measure(name: &str, folder: &tempfile::TempDir) -> anyhow::Result<Vec<String>> {
    let quick = crate::check_agent::target_folder()?.join("quick");
    let heapr = quick.join("heapr").to_string_lossy().into_owned();
    let file = |of: &str| folder.path().join(of).to_string_lossy().into_owned();
    let session = format!("bench-attach-{}", std::process::id());

    let alone = start(name, &[])?;
    stop(&alone)?;
    let let_go = start(name, &[])?;
    let soak: PathBuf = quick.join("examples/attach_soak");
    crate::output_of(Command::new(soak).args([&let_go.pid.to_string(), "5", "100"]))?;
    stop(&let_go)?;
    let started_file = file("started.heapr");
    let started = start(name, &[&heapr, "run", "-q", "-f", "-o", &started_file, "--"])?;
    stop(&started)?;
    let attached = start(name, &[])?;
    let output = file("attached.heapr");
    let pid = attached.pid.to_string();
    crate::run(Command::new(&heapr).args(["start", &session, "-q", "-f", "-o", &output, "--pid", &pid]))?;
    stop(&attached)?;

    let programs = [&alone, &let_go, &started, &attached];
    let mut speeds = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (program, speeds) in programs.iter().zip(&mut speeds) {
            signal(program, "-CONT")?;
            std::thread::sleep(SETTLE);
            speeds.push(program.speed(MEASURE));
            stop(program)?;
        }
    }
    signal(&attached, "-CONT")?;
    crate::run(Command::new(&heapr).args(["cancel", &session]))?;
    let [alone, let_go, started, attached] = speeds.map(median);
    let ratio = |first: f64, second: f64| format!("{:.3}", first / second);
    Ok(vec![
        if name == "thread" { "C loop".to_owned() } else { name.to_owned() },
        format!("{alone:.0}"),
        ratio(let_go, alone),
        ratio(started, alone),
        ratio(attached, alone),
        ratio(attached, started),
    ])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn stop(program: &Program) -> anyhow::Result<()> {
    signal(program, "-STOP")
}

fn signal(program: &Program, signal: &str) -> anyhow::Result<()> {
    crate::run(Command::new("kill").args([signal, &program.pid.to_string()])).context("the program has ended")
}
