//! Tests of the crates as trials. `CRATE::FILTER` names those in a crate's sources, and
//! `CRATE/TEST::FILTER` those of a folder `tests/TEST`, with the sources and victims that they
//! read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::processor::Processor;

/// Folders of the repository that tests read.
const READ: &[&str] = &["crates", "docs", "victims"];

/// Builds the tests that a word names; returns the names of their trials. `known_count`: trials
/// that have a name already, so that words of one crate get names of their own.
pub(super) fn make(
    processor: &Processor,
    word: &str,
    work: &Path,
    known_count: usize,
) -> anyhow::Result<Vec<String>> {
    let (place, filter) = word.split_once("::").context("CRATE::FILTER")?;
    let (name, test) = place.split_once('/').map_or((place, None), |(name, test)| (name, Some(test)));
    let mut build = processor.cargo();
    build.args(["test", "--no-run", "--message-format=json", "--quiet", "-p", name]);
    build.args(processor.target_words());
    match test {
        Some(test) => build.args(["--test", test]),
        None => build.arg("--lib"),
    };
    let messages = crate::output_of(&mut build)?;
    let mut names = Vec::new();
    for program in messages.lines().filter_map(executable) {
        let file = Path::new(program).file_stem().and_then(|stem| stem.to_str()).context("a test")?;
        // Cargo runs a crate's own program for its tests, too.
        if test.is_some_and(|test| !file.starts_with(&format!("{test}-"))) {
            continue;
        }
        let trial = format!("{}-{}", place.replace('/', "-"), known_count + names.len());
        let mut strip = Command::new(format!("{}-strip", processor.prefix));
        // Some tests look for their own symbols.
        crate::run(strip.arg("--strip-debug").arg("-o").arg(work.join("bin").join(&trial)).arg(program))?;
        let folder = crate::root().join("crates").join(name.trim_start_matches("heapr-"));
        // Without a test of such a name a program of tests succeeds.
        let run = format!(
            "{trial} --list {filter} | grep -q ': test$' || {{ echo 'no test is named so'; exit 1; }}\n\
             {trial} {filter}\n"
        );
        let script = if test.is_some() { format!("cd {}\n{run}", folder.display()) } else { run };
        fs::write(work.join("trials").join(format!("{trial}.sh")), script)?;
        names.push(trial);
    }
    if (name, test) == ("heapr", Some("it")) && filter.starts_with("victims") {
        build_victims(processor, filter)?;
    }
    if test.is_some() {
        tree(processor, work)?;
        let built = work.join("tree").join(processor.built()).join("heapr");
        if !built.is_symlink() {
            std::os::unix::fs::symlink("/work/bin/heapr", built)?;
        }
    }
    Ok(names)
}

fn executable(message: &str) -> Option<&str> {
    let rest = message.split_once("\"executable\":\"")?.1;
    Some(rest.split_once('"')?.0)
}

/// Copies the repository's folders and the built victims. The tests have the paths of this machine:
/// the file `place` tells the other one where it must show them.
pub(super) fn tree(processor: &Processor, work: &Path) -> anyhow::Result<()> {
    let tree = work.join("tree");
    if tree.exists() {
        return Ok(());
    }
    let built = processor.built();
    for folder in [built.clone(), "target/tmp".into()] {
        fs::create_dir_all(tree.join(&folder)).with_context(|| folder.display().to_string())?;
    }
    let root = crate::root();
    let copy = |from: &Path, to: &Path| crate::run(Command::new("cp").arg("-a").arg(from).arg(to));
    for folder in READ {
        copy(&root.join(folder), &tree.join(folder))?;
    }
    let name =
        if processor.is_here() { "victims".to_owned() } else { format!("victims-{}", processor.prefix) };
    let victims = root.join("target/tmp").join(name);
    if victims.exists() {
        copy(&victims, &tree.join("target/tmp/victims"))?;
    }
    if let Some(target) = built.parent().filter(|_| !processor.is_here()) {
        std::os::unix::fs::symlink("../tmp", tree.join(target).join("tmp"))?;
    }
    fs::write(work.join("place"), format!("{}\n", root.display()))?;
    Ok(())
}

/// Builds the victims for the processor with this machine's compilers, which are faster than the
/// emulated ones. A victim that cannot be built here is built in the machine, if that has its
/// compiler.
fn build_victims(processor: &Processor, filter: &str) -> anyhow::Result<()> {
    let mut tests = crate::cargo();
    tests.args(["test", "--quiet", "-p", "heapr", "--test", "it", "--", filter]);
    tests.env("HEAPR_TEST_PROCESSOR", processor.prefix).env("HEAPR_TEST_BUILDS", "1");
    // Go and Debian have the same names.
    tests.env("GOARCH", processor.debian);
    let status = tests.status().context("cargo test")?;
    if !status.success() {
        println!("vm {}: some victims were not built here", processor.name);
    }
    Ok(())
}
