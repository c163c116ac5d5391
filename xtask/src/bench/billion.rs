//! Measures the reports of a file with a billion events, made by the real writer.

use std::collections::BTreeMap;

use super::inputs;
use super::measured_run::{Cost, MeasuredRun};
use super::table::markdown;

/// Default number of events.
const EVENTS: u64 = 1_000_000_000;

/// Makes the file (some minutes, about 2 GiB), measures the reports, removes it, and returns the
/// table.
pub(crate) fn run(events: Option<&str>) -> anyhow::Result<String> {
    let events = events.map_or(Ok(EVENTS), str::parse)?;
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    crate::run(crate::cargo().args([
        "build",
        "--release",
        "--quiet",
        "--package",
        "heapr-ledger",
        "--example",
        "generate_trace",
    ]))?;
    let target = crate::check_agent::target_folder()?;
    let folder = inputs::folder()?;
    let file = folder.join("billion.heapr").display().to_string();
    let generator = target.join("release/examples/generate_trace").display().to_string();
    let run = |command: &[&str]| -> anyhow::Result<Cost> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        MeasuredRun::start(&command, &BTreeMap::new(), &folder.join("log"))?.finish()
    };
    let made = run(&[&generator, &file, &events.to_string()])?;
    let file_bytes = std::fs::metadata(&file)?.len();
    let heapr = target.join("release/heapr").display().to_string();
    // An event takes 49.5 ns of the simulated program's time on average.
    let part = |percent: u64| format!("{}us", events / 100 * percent * 495 / 10_000);
    let (ten, fifty, sixty) = (part(10), part(50), part(60));
    let reports: [(&str, Vec<&str>); 4] = [
        ("whole file, from its totals", vec![]),
        ("whole file, replayed (`--by-thread`)", vec!["--by-thread"]),
        ("its first tenth", vec!["--range", "0us", &ten]),
        ("a tenth in its middle", vec!["--range", &fifty, &sixty]),
    ];
    let mut rows = Vec::new();
    for (name, options) in reports {
        let cost = run(&[&[heapr.as_str(), "report", &file][..], &options].concat())?;
        rows.push(vec![
            name.to_owned(),
            format!("{:.2}", cost.wall_s),
            format!("{:.0}", cost.peak_rss_kib as f64 / 1024.0),
        ]);
    }
    std::fs::remove_file(&file)?;
    Ok(format!(
        "## A file of {events} events\n\n{file_bytes} bytes, {:.2} an event; made in {:.0} s with {:.0} MiB of memory.\n\n{}",
        file_bytes as f64 / events as f64,
        made.wall_s,
        made.peak_rss_kib as f64 / 1024.0,
        markdown(&["report of", "s", "MiB"], &rows)
    ))
}
