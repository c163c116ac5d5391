//! Compares time and memory of `heapr report` with those of `heaptrack_print` on traces of the same
//! runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::bail;

use super::inputs;
use super::measured_run::{MeasuredRun, median};
use super::table::markdown;

/// Measures and returns the table: medians of five rounds, symbols cached.
pub(crate) fn run() -> anyhow::Result<String> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    let heapr = crate::check_agent::target_folder()?.join("release/heapr").display().to_string();
    let folder = inputs::folder()?;
    let log = folder.join("log");
    let mut rows = Vec::new();
    for program in inputs::programs()?.into_iter().filter(|program| program.client.is_none()) {
        let trace = folder.join(format!("{}.heapr", program.name)).display().to_string();
        let other = folder.join(format!("{}.heaptrack", program.name)).display().to_string();
        let run = |command: &[&str], environment: &BTreeMap<String, String>| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            MeasuredRun::start(&command, environment, &log)?.finish()
        };
        let words: Vec<&str> = program.command.iter().map(String::as_str).collect();
        run(
            &[&[&heapr, "run", "--quiet", "-f", "-o", &trace, "--"][..], &words].concat(),
            &program.environment,
        )?;
        run(&[&["heaptrack", "-o", &other][..], &words].concat(), &program.environment)?;
        let other = compressed(&other)?.display().to_string();
        let report = [heapr.as_str(), "report", &trace];
        // The first report fills the symbol cache.
        run(&report, &BTreeMap::new())?;
        let mut costs = [Vec::new(), Vec::new()];
        for _ in 0..5 {
            costs[0].push(run(&report, &BTreeMap::new())?);
            costs[1].push(run(&["heaptrack_print", &other], &BTreeMap::new())?);
        }
        let [ours, theirs] = costs.map(|costs| median(&costs));
        rows.push(vec![
            program.name.to_owned(),
            format!("{:.0}", ours.wall_s * 1e3),
            format!("{:.0}", theirs.wall_s * 1e3),
            format!("{:.2}", ours.wall_s / theirs.wall_s),
            format!("{:.1}", ours.peak_rss_kib as f64 / 1024.0),
            format!("{:.1}", theirs.peak_rss_kib as f64 / 1024.0),
            format!("{:.2}", ours.peak_rss_kib as f64 / theirs.peak_rss_kib as f64),
        ]);
    }
    let heading = [
        "program",
        "heapr ms",
        "heaptrack_print ms",
        "time ratio",
        "heapr MiB",
        "heaptrack_print MiB",
        "memory ratio",
    ];
    Ok(format!("## Report\n\nMedians of five, symbols cached.\n\n{}", markdown(&heading, &rows)))
}

/// Finds heaptrack's file, because heaptrack chooses the compressor's suffix.
fn compressed(path: &str) -> anyhow::Result<PathBuf> {
    for suffix in ["zst", "gz"] {
        let candidate = PathBuf::from(format!("{path}.{suffix}"));
        if candidate.metadata().is_ok_and(|data| data.len() > 0) {
            return Ok(candidate);
        }
    }
    bail!("heaptrack left no file {path}.zst or .gz")
}
