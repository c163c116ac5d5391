//! Disk with heapr, the trials and their programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::processor::Processor;
use super::root::disk;

/// Program in C: name and source.
type Source = (&'static str, &'static str);

/// Trials of the machine: name, script, and the programs in C that it runs.
const TRIALS: &[(&str, &str, &[Source])] = &[
    (
        "run_exact",
        include_str!("trials/run_exact.sh"),
        &[("counts", include_str!("trials/counts.c")), ("forks", include_str!("trials/forks.c"))],
    ),
    ("leaf_signals", include_str!("trials/leaf_signals.sh"), &[("leaf", include_str!("trials/leaf.c"))]),
    ("attach_once", include_str!("trials/attach_once.sh"), &[("busy", include_str!("trials/busy.c"))]),
    ("attach_rounds", include_str!("trials/attach_rounds.sh"), &[("busy", include_str!("trials/busy.c"))]),
    ("attach_redis", include_str!("trials/attach_redis.sh"), &[]),
    ("graph_redis", include_str!("trials/graph_redis.sh"), &[]),
    ("python_frames", include_str!("trials/python_frames.sh"), &[]),
    ("doctor", include_str!("trials/doctor.sh"), &[]),
];

/// Builds everything and makes the disk. A word `CRATE::FILTER` stands for the crate's own tests
/// whose names have the filter. Returns the names of the trials.
pub(super) fn make(processor: &Processor, folder: &Path, words: &[&str]) -> anyhow::Result<Vec<String>> {
    let work = folder.join("work");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    }
    for name in ["bin", "trials"] {
        fs::create_dir_all(work.join(name)).with_context(|| work.display().to_string())?;
    }
    let mut names = Vec::new();
    let (tests, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.contains("::"));
    let is_wanted =
        |name: &str| words.is_empty() && tests.is_empty() || words.iter().any(|word| name.contains(word));
    for &(name, script, programs) in TRIALS.iter().filter(|trial| is_wanted(trial.0)) {
        fs::write(work.join("trials").join(format!("{name}.sh")), script)?;
        for &(program, source) in programs {
            compile(processor, program, source, &work)?;
        }
        names.push(name.to_owned());
    }
    for test in tests {
        names.extend(unit_tests(processor, test, &work)?);
    }
    ensure!(!names.is_empty(), "no trial has such a name");
    let heapr = heapr(processor)?;
    let mut strip = Command::new(format!("{}-strip", processor.prefix));
    crate::run(strip.arg("-o").arg(work.join("bin/heapr")).arg(&heapr))?;
    fs::write(work.join("trials.sh"), include_str!("trials.sh"))?;
    fs::write(work.join("list"), names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    disk(&work, &folder.join("work.img"), 1 << 30)?;
    Ok(names)
}

fn cargo(processor: &Processor) -> Command {
    let mut command = crate::cargo();
    let target = processor.target.replace('-', "_");
    command
        .env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()), format!("{}-gcc", processor.prefix));
    command.env(format!("CC_{target}"), format!("{}-gcc", processor.prefix));
    command
}

/// Builds heapr, or takes the one that `HEAPR_VM_PROGRAM` names.
fn heapr(processor: &Processor) -> anyhow::Result<std::path::PathBuf> {
    if let Some(program) = std::env::var_os("HEAPR_VM_PROGRAM") {
        return Ok(program.into());
    }
    let mut build = cargo(processor);
    crate::run(build.args([
        "build",
        "--quiet",
        "-p",
        "heapr",
        "--bin",
        "heapr",
        "--target",
        processor.target,
    ]))?;
    Ok(crate::root().join("target").join(processor.target).join("debug/heapr"))
}

fn compile(processor: &Processor, program: &str, source: &str, work: &Path) -> anyhow::Result<()> {
    let file = work.join("trials").join(format!("{program}.c"));
    fs::write(&file, source).with_context(|| file.display().to_string())?;
    let mut compile = Command::new(format!("{}-gcc", processor.prefix));
    compile
        .args(["-g", "-O1", "-fno-builtin", "-pthread", "-o"])
        .arg(work.join("bin").join(program))
        .arg(&file);
    crate::run(&mut compile)
}

/// Builds the tests of a crate; returns the names of their trials.
fn unit_tests(processor: &Processor, word: &str, work: &Path) -> anyhow::Result<Vec<String>> {
    let (name, filter) = word.split_once("::").context("CRATE::FILTER")?;
    let mut build = cargo(processor);
    build.args(["test", "--no-run", "--lib", "--message-format=json", "--quiet", "-p", name]);
    build.args(["--target", processor.target]);
    let messages = crate::output_of(&mut build)?;
    let programs = messages.lines().filter_map(|line| {
        let line = line.split_once("\"executable\":\"")?.1;
        Some(line.split_once('"')?.0)
    });
    let mut names = Vec::new();
    for (number, program) in programs.enumerate() {
        let trial = format!("{name}-{number}");
        let mut strip = Command::new(format!("{}-strip", processor.prefix));
        crate::run(strip.arg("-o").arg(work.join("bin").join(&trial)).arg(program))?;
        fs::write(work.join("trials").join(format!("{trial}.sh")), format!("{trial} {filter}\n"))?;
        names.push(trial);
    }
    Ok(names)
}
