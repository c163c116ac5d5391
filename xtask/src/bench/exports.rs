//! Compares processor time and memory of `heapr export` in each format with those of `heapr report`
//! on the same trace. An export may take twice the memory and four times the time at most.

use std::collections::BTreeMap;

use super::inputs;
use super::measured_run::{MeasuredRun, median};
use super::table::markdown;

/// Formats of one file, as `--to` names them.
const FORMATS: [&str; 5] = ["collapsed", "pprof", "otlp", "speedscope", "flamegraph"];

/// Measures and returns the table: medians of three rounds, symbols cached.
pub(crate) fn run() -> anyhow::Result<String> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    let heapr = crate::check_agent::target_folder()?.join("release/heapr").display().to_string();
    let folder = inputs::folder()?;
    let log = folder.join("log");
    let run = |command: &[&str], environment: &BTreeMap<String, String>| {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        MeasuredRun::start(&command, environment, &log)?.finish()
    };
    let mut rows = Vec::new();
    for program in inputs::programs()?.into_iter().filter(|program| program.client.is_none()) {
        let trace = folder.join(format!("{}.heapr", program.name)).display().to_string();
        let output = folder.join("exported").display().to_string();
        let words: Vec<&str> = program.command.iter().map(String::as_str).collect();
        let record = [&heapr, "run", "--quiet", "-f", "-o", &trace, "--"];
        run(&[&record[..], &words].concat(), &program.environment)?;
        let measure = |command: &[&str]| -> anyhow::Result<_> {
            let rounds = (0..3).map(|_| run(command, &BTreeMap::new()));
            Ok(median(&rounds.collect::<anyhow::Result<Vec<_>>>()?))
        };
        // The first report fills the symbol cache.
        run(&[&heapr, "report", &trace], &BTreeMap::new())?;
        let report = measure(&[&heapr, "report", &trace])?;
        for format in FORMATS {
            let export = measure(&[&heapr, "export", &trace, "--to", format, "-f", "-o", &output])?;
            rows.push(vec![
                program.name.to_owned(),
                format.to_owned(),
                format!("{:.0}", export.cpu_s * 1e3),
                format!("{:.1}", export.cpu_s / report.cpu_s),
                format!("{:.1}", export.peak_rss_kib as f64 / 1024.0),
                format!("{:.2}", export.peak_rss_kib as f64 / report.peak_rss_kib as f64),
            ]);
        }
    }
    let heading = ["program", "format", "CPU ms", "of report's", "MiB", "of report's"];
    Ok(format!("## Exports\n\nMedians of three, symbols cached.\n\n{}", markdown(&heading, &rows)))
}
