//! Measures the CPU time that the agent adds to the program's own threads, with one thread and with
//! four.

use std::process::Command;

use anyhow::Context as _;

use super::inputs;
use super::table::markdown;

/// Measures and returns the table: medians of five interleaved rounds of two million pairs per
/// thread.
pub(crate) fn run() -> anyhow::Result<String> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    let folder = inputs::folder()?;
    let stress = inputs::build_stress(&folder)?.display().to_string();
    let heapr = crate::check_agent::target_folder()?.join("release/heapr").display().to_string();
    let output = folder.join("scaling.heapr").display().to_string();
    let traced = [&heapr, "run", "--quiet", "-f", "-o", &output, "--"].map(str::to_owned).to_vec();
    let cases = [(1, false), (1, true), (4, false), (4, true)];
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..5 {
        for (&(threads, is_traced), times) in cases.iter().zip(&mut times) {
            let prefix = if is_traced { traced.clone() } else { Vec::new() };
            let command = [prefix, vec![stress.clone(), "2000000".into(), threads.to_string()]].concat();
            let text = crate::output_of(Command::new(&command[0]).args(&command[1..]))?;
            let number =
                text.trim().strip_prefix("cpu_ns_per_pair ").context("the stress program's output")?;
            times.push(number.parse()?);
        }
    }
    let [one, one_traced, four, four_traced] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let row = |threads: &str, bare: f64, traced: f64| {
        let added = (traced - bare) / 2.0;
        vec![threads.to_owned(), format!("{bare:.1}"), format!("{traced:.1}"), format!("{added:.1}")]
    };
    let rows = [row("1", one, one_traced), row("4", four, four_traced)];
    let heading = ["threads", "bare ns per pair", "traced ns per pair", "added ns per event"];
    Ok(format!(
        "## Scaling\n\nCPU time of the program's own threads (CLOCK_THREAD_CPUTIME_ID), the stress program.\n\n{}\n\
         Four threads against one: {:.2} ×.\n",
        markdown(&heading, &rows),
        (four_traced - four) / (one_traced - one)
    ))
}
