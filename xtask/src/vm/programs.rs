//! Disk with heapr, the trials and their programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::machine::seconds_max;
use super::own_tests;
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
    (
        "attach_vectors",
        include_str!("trials/attach_vectors.sh"),
        &[("vectors", include_str!("trials/vectors.c"))],
    ),
    ("attach_redis", include_str!("trials/attach_redis.sh"), &[]),
    ("graph_redis", include_str!("trials/graph_redis.sh"), &[]),
    (
        "files_of_here",
        include_str!("trials/files_of_here.sh"),
        &[("crashes", include_str!("trials/crashes.c"))],
    ),
    ("python_frames", include_str!("trials/python_frames.sh"), &[]),
    ("inside_exact", include_str!("trials/inside_exact.sh"), &[("counts", include_str!("trials/counts.c"))]),
    ("languages", include_str!("trials/languages.sh"), &[]),
    ("verified_languages", include_str!("trials/verified_languages.sh"), &[]),
    ("kills", include_str!("trials/kills.sh"), &[]),
    ("doctor", include_str!("trials/doctor.sh"), &[]),
    ("deaths_v2", include_str!("trials/deaths_v2.sh"), &[]),
    ("group_v2", include_str!("trials/group_v2.sh"), &[]),
    ("pod", include_str!("trials/pod.sh"), &[]),
    ("systemd_unit", include_str!("trials/systemd_unit.sh"), &[]),
];

/// Trials that read the repository's folders and run xtask; those that install the package.
const WITH_TREE: &[&str] = &["deaths_v2", "group_v2", "kills", "pod", "systemd_unit", "verified_languages"];
const WITH_PACKAGE: &[&str] = &["systemd_unit"];
/// Trials under systemd as the machine's first process.
const WITH_SYSTEMD: &[&str] = &["systemd_unit"];

/// Builds everything and makes the disk. A word with `::` names tests of a crate ([`own_tests`]).
/// Returns the names of the trials.
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
        names.extend(own_tests::make(processor, test, &work, names.len())?);
    }
    ensure!(!names.is_empty(), "no trial has such a name");
    let heapr = heapr(processor)?;
    let mut strip = Command::new(format!("{}-strip", processor.prefix));
    crate::run(strip.arg("-o").arg(work.join("bin/heapr")).arg(&heapr))?;
    let has_any = |of: &[&str]| names.iter().any(|name| of.contains(&name.as_str()));
    if has_any(WITH_TREE) {
        own_tests::tree(processor, &work)?;
        // This machine's own processor has this very program.
        let xtask = match processor.is_here() {
            true => std::env::current_exe()?,
            false => built(processor, "xtask", None)?,
        };
        fs::copy(&xtask, work.join("bin/xtask")).with_context(|| xtask.display().to_string())?;
    }
    if has_any(WITH_PACKAGE) {
        let package = crate::dist::deb_of(processor.target, &heapr)?;
        fs::copy(&package, work.join("heapr.deb")).with_context(|| package.display().to_string())?;
    }
    fs::write(work.join("trials.sh"), include_str!("trials.sh"))?;
    if has_any(WITH_SYSTEMD) {
        fs::create_dir_all(work.join("systemd"))?;
        fs::write(work.join("systemd/trials.service"), include_str!("trials.service"))?;
    }
    // The machine still has to bring the results of a trial that is ended.
    fs::write(work.join("seconds"), format!("{}\n", seconds_max() / 4 * 3))?;
    fs::write(work.join("list"), names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    disk(&work, &folder.join("work.img"), 2 << 30)?;
    Ok(names)
}

/// Builds heapr, or takes the one that `HEAPR_VM_PROGRAM` names.
fn heapr(processor: &Processor) -> anyhow::Result<std::path::PathBuf> {
    if let Some(program) = std::env::var_os("HEAPR_VM_PROGRAM") {
        return Ok(program.into());
    }
    built(processor, "heapr", Some("heapr"))
}

/// Builds a package's program. `bin`: its name, if the package has several.
fn built(processor: &Processor, package: &str, bin: Option<&str>) -> anyhow::Result<std::path::PathBuf> {
    let mut build = processor.cargo();
    build.args(["build", "--quiet", "-p", package]).args(processor.target_words());
    crate::run(build.args(bin.iter().flat_map(|bin| ["--bin", bin])))?;
    Ok(crate::root().join(processor.built()).join(package))
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
