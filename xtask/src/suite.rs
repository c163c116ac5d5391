//! All tests of the workspace (`cargo xtask test`), in two streams side by side.
//!
//! ```text
//! build of all ──> stream 1: libraries, programs, all others ──> output as it comes ─┐
//!              └─> stream 2: BESIDE, which wait for browsers ──> output at the end  ─┴─> examples
//! ```

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// Targets of tests that wait for browsers and recorded programs for most of their time. Their
/// names are of one crate each.
const BESIDE: &[&str] = &["book", "findings", "sessions", "suspects", "view"];

/// Runs all tests whose name has a word of the filter, then lists those that did not run.
pub(crate) fn run(filter: &[&str]) -> anyhow::Result<()> {
    let list = crate::root().join("target/not-run.txt");
    std::fs::create_dir_all(crate::root().join("target")).context("target")?;
    std::fs::write(&list, "").with_context(|| list.display().to_string())?;
    crate::run(crate::cargo().args(["test", "--workspace", "--no-run"]))?;
    let outcome = two_streams(filter, &list);
    let missing =
        report_not_run(&std::fs::read_to_string(&list).with_context(|| list.display().to_string())?);
    outcome?;
    if missing > 0 && std::env::var_os("HEAPR_TESTS_MUST_RUN").is_some() {
        bail!("{missing} tests did not run for want of something that can be had here: see the list above");
    }
    Ok(())
}

fn two_streams(filter: &[&str], list: &Path) -> anyhow::Result<()> {
    let names = test_targets()?;
    if let Some(gone) = BESIDE.iter().find(|name| !names.iter().any(|known| known == *name)) {
        bail!("xtask: no crate has tests of the name {gone}: correct the list in suite.rs");
    }
    let (beside, others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| BESIDE.contains(&name.as_str()));
    let output = crate::root().join("target/tests-beside.txt");
    let file = std::fs::File::create(&output).with_context(|| output.display().to_string())?;
    let errors = file.try_clone().with_context(|| output.display().to_string())?;
    let mut second = Second(
        stream(&[], &beside, filter, list)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .context("cargo test")?,
    );
    let first = crate::run(&mut stream(&["--lib", "--bins"], &others, filter, list));
    let second = second.0.wait().context("cargo test")?;
    let printed = std::fs::read(&output).with_context(|| output.display().to_string())?;
    print!("{}", String::from_utf8_lossy(&printed));
    let mut examples = crate::cargo();
    examples.args(["test", "--workspace", "--no-fail-fast", "--doc", "--"]).args(filter);
    let examples = crate::run(&mut examples);
    first?;
    if !second.success() {
        bail!("tests of {}: {second}", BESIDE.join(", "));
    }
    examples
}

/// Stream that is ended if the other cannot begin.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stream(kinds: &[&str], targets: &[String], filter: &[&str], list: &Path) -> Command {
    let mut tests = crate::cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]).args(kinds);
    tests.args(targets.iter().flat_map(|name| ["--test", name]));
    tests.arg("--").args(filter).env("HEAPR_NOT_RUN", list);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Tests wait for programs and browsers for half of their time: two streams, each with as
        // many at once as there are processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env("RUST_TEST_THREADS", processors.to_string());
    }
    tests
}

/// Names of the targets of tests in the workspace, each once.
fn test_targets() -> anyhow::Result<Vec<String>> {
    let mut asked = crate::cargo();
    let text = crate::output_of(asked.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("the output of cargo metadata")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let mut names: Vec<String> =
        tests.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Prints the tests that did not run. Returns the number of those that lacked something which can
/// be installed.
fn report_not_run(list: &str) -> usize {
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    if !lines.is_empty() {
        println!("did not run, whole or in part: {}", lines.len());
    }
    for line in &lines {
        println!("  {}", line.replacen('\t', ": ", 2));
    }
    lines.iter().filter(|line| line.starts_with("missing")).count()
}
