//! Measures what attaching leaves behind, and its cost against starting a program under heapr.
//!
//! Five copies of a program are used, of which one runs at a time, in a rotating order. Two are
//! left alone; their difference is the resolution of the measurement. One was attached to and let
//! go, one was started by heapr, and heapr is attached to one. Copies differ by where their memory
//! happens to lie. So the first three are compared with themselves before, and with how the first
//! changed meanwhile.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use super::table::markdown;
use crate::soak_attach::{Program, start};

const ROUNDS: usize = 21;
const MEASURE: Duration = Duration::from_secs(1);
/// Time for caches and the recorder to come to rest.
const SETTLE: Duration = Duration::from_millis(300);

/// Programs that are also started by heapr.
const STARTED: [&str; 2] = ["redis", "thread"];
/// Programs for which only the remains of a detach are measured.
const ATTACHED: [&str; 5] = ["python", "node", "threads", "forks", "plugins"];

/// Measures and returns the table, of all programs or `only` some.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<String> {
    for package in [&["heapr"][..], &["heapr-session", "--example", "attach_soak"]] {
        crate::run(crate::cargo().args(["build", "--release", "--quiet", "-p"]).args(package))?;
    }
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    let names = STARTED.into_iter().chain(ATTACHED);
    for name in names.filter(|name| only.is_empty() || only.contains(name)) {
        rows.push(measure(name, &folder)?);
    }
    let heading = [
        "program",
        "left alone, per s",
        "another left alone, now / before",
        "let go, now / before",
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
    let built = crate::check_agent::target_folder()?.join("release");
    let heapr = built.join("heapr").to_string_lossy().into_owned();
    let file = |of: &str| folder.path().join(of).to_string_lossy().into_owned();
    let session = format!("bench-attach-{}", std::process::id());
    let start = |before: &[&str]| -> anyhow::Result<Program> {
        let program = start(name, before)?;
        // On one processor, because the choice of the processor changes a server's speed by a
        // tenth. Its client, started before, stays free.
        let pid = program.pid.to_string();
        crate::output_of(Command::new("taskset").args(["-a", "-c", "-p", "0", &pid]))?;
        stop(&program)?;
        Ok(program)
    };

    let [alone, also_alone, let_go] = [start(&[])?, start(&[])?, start(&[])?];
    let [alone_before, also_before, let_go_before] = speeds([&alone, &also_alone, &let_go])?;
    signal(&let_go, "-CONT")?;
    let soak: PathBuf = built.join("examples/attach_soak");
    crate::output_of(Command::new(soak).args([&let_go.pid.to_string(), "5", "100"]))?;
    stop(&let_go)?;
    let ratio = |first: f64, second: f64| format!("{:.3}", first / second);
    let shown = if name == "thread" { "C loop".to_owned() } else { name.to_owned() };
    if ATTACHED.contains(&name) {
        let [alone_now, also_now, let_go_now] = speeds([&alone, &also_alone, &let_go])?;
        let drift = alone_now / alone_before;
        return Ok(vec![
            shown,
            format!("{alone_now:.0}"),
            ratio(also_now / also_before, drift),
            ratio(let_go_now / let_go_before, drift),
            "-".into(),
            "-".into(),
            "-".into(),
        ]);
    }
    let started_file = file("started.heapr");
    let started = start(&[&heapr, "run", "-q", "-f", "-o", &started_file, "--"])?;
    let attached = start(&[])?;
    signal(&attached, "-CONT")?;
    let output = file("attached.heapr");
    let pid = attached.pid.to_string();
    crate::run(Command::new(&heapr).args(["start", &session, "-q", "-f", "-o", &output, "--pid", &pid]))?;
    stop(&attached)?;

    let [alone_now, also_now, let_go_now, started_now, attached_now] =
        speeds([&alone, &also_alone, &let_go, &started, &attached])?;
    signal(&attached, "-CONT")?;
    crate::run(Command::new(&heapr).args(["cancel", &session]))?;
    let drift = alone_now / alone_before;
    Ok(vec![
        shown,
        format!("{alone_now:.0}"),
        ratio(also_now / also_before, drift),
        ratio(let_go_now / let_go_before, drift),
        ratio(started_now, alone_now),
        ratio(attached_now, alone_now),
        ratio(attached_now, started_now),
    ])
}

/// Median speed of each program.
fn speeds<const COUNT: usize>(programs: [&Program; COUNT]) -> anyhow::Result<[f64; COUNT]> {
    let mut speeds = [const { Vec::new() }; COUNT];
    for round in 0..ROUNDS {
        for step in 0..COUNT {
            let place = (round + step) % COUNT;
            signal(programs[place], "-CONT")?;
            std::thread::sleep(SETTLE);
            speeds[place].push(programs[place].speed(MEASURE));
            stop(programs[place])?;
        }
    }
    Ok(speeds.map(median))
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
