//! Measurements; docs/performance.md has the machine and the results.

mod attach;
mod billion;
mod callgrind;
mod counts;
mod disabled;
mod exports;
mod graphs;
mod hprof;
mod inputs;
mod instructions;
mod languages;
mod live_blocks;
mod made_dump;
mod managed;
mod managed_programs;
mod managed_questions;
mod measured_run;
mod memory;
mod overhead;
mod reports;
mod sampling;
mod scaling;
mod snapshots;
mod spread;
mod table;
mod view;
mod waiting_python;

use anyhow::{Context as _, bail};

pub(crate) use measured_run::measure;

/// Runs `cargo xtask bench …`.
pub(crate) fn run(what: &[&str]) -> anyhow::Result<()> {
    match what {
        ["overhead", options @ ..] => print(&overhead::run(&overhead::Options::parse(options)?)?),
        ["disabled", options @ ..] => print(&disabled::run(&overhead::Options::parse(options)?)?),
        ["sampling", options @ ..] => print(&sampling::run(&overhead::Options::parse(options)?)?),
        ["languages", options @ ..] => print(&languages::run(&overhead::Options::parse(options)?)?),
        ["attach", only @ ..] => print(&attach::run(only)?),
        ["instructions"] => print(&instructions::run()?),
        ["counts", options @ ..] => print(&counts::run(&counts::Options::parse(options))?),
        ["scaling"] => print(&scaling::run()?),
        ["report"] => print(&reports::run()?),
        ["export"] => print(&exports::run()?),
        ["billion"] => print(&billion::run(None)?),
        ["billion", events] => print(&billion::run(Some(events))?),
        ["managed", only @ ..] => print(&managed::run(only)?),
        ["hprof", only @ ..] => print(&hprof::run(only)?),
        ["live"] => print(&live_blocks::run()?),
        ["memory", only @ ..] => print(&memory::run(only)?),
        ["snapshots"] => print(&snapshots::run()?),
        ["graphs", only @ ..] => print(&graphs::run(only)?),
        ["view", options @ ..] => print(&view::run(&view::Options::parse(options)?)?),
        ["all"] => write_all(),
        _ => bail!("{}", crate::USAGE),
    }
}

/// Writes a heap dump of Java with a few customers: a seed of the fuzzer.
pub(crate) fn write_small_hprof(path: &std::path::Path) -> anyhow::Result<()> {
    made_dump::write(path, 12, 40).map(drop)
}

/// Returns the path of the program that is measured: that of `HEAPR`, or else a release build.
fn measured_heapr() -> anyhow::Result<String> {
    if let Ok(heapr) = std::env::var("HEAPR") {
        return Ok(heapr);
    }
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", "heapr"]))?;
    Ok(crate::check_agent::target_folder()?.join("release/heapr").display().to_string())
}

fn print(text: &str) -> anyhow::Result<()> {
    println!("{text}");
    Ok(())
}

/// Writes all results into the part of docs/performance.md below its marker line.
fn write_all() -> anyhow::Result<()> {
    const MARKER: &str = "<!-- below: written by `cargo xtask bench all` -->\n";
    let path = crate::root().join("docs/performance.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (kept, _) = text.split_once(MARKER).context("docs/performance.md has lost its marker line")?;
    let parts = [
        machine()?,
        overhead::run(&overhead::Options::default())?,
        disabled::run(&overhead::Options::default())?,
        scaling::run()?,
        reports::run()?,
        exports::run()?,
        snapshots::run()?,
        memory::run(&[])?,
    ];
    std::fs::write(&path, format!("{kept}{MARKER}\n{}", parts.join("\n"))).context("docs/performance.md")
}

/// Describes processor, kernel and versions, so that the numbers can be judged.
fn machine() -> anyhow::Result<String> {
    let script = "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1; nproc; uname -sr; heaptrack --version; \
                  . /etc/os-release; echo $PRETTY_NAME; date -u +%F";
    let text = crate::output_of(std::process::Command::new("sh").args(["-c", script]))?;
    let lines: Vec<_> = text.lines().collect();
    match lines[..] {
        [model, count, kernel, heaptrack, system, day] => {
            Ok(format!("Measured on {day}: {model}, {count} processors, {kernel}, {system}, {heaptrack}.\n"))
        }
        _ => Ok(format!("Measured on: {}\n", lines.join(", "))),
    }
}
