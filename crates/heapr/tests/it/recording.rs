//! One run of heapr on a program, and its report as numbers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heapr_testkit::{Outcome, run, run_within};
use serde_json::Value;

use crate::header::Expectation;

/// Path of the heapr under test.
pub(crate) const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

/// Path of the heapr that records the victims: one of another processor if `cargo xtask emulated`
/// runs the tests. Its traces are read by the heapr under test.
fn recorder() -> String {
    std::env::var("HEAPR_TEST_RECORDER").unwrap_or_else(|_| HEAPR.to_owned())
}

/// Returns a heapr command that is not started yet.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(HEAPR);
    command.args(words);
    command
}

/// Returns a heapr command in a folder that is not started yet.
pub(crate) fn heapr(folder: &Path, words: &[&str]) -> Command {
    let mut command = command(words);
    command.current_dir(folder);
    command
}

/// Runs heapr with its sessions in a folder.
pub(crate) fn with_sessions(folder: &Path, words: &[&str]) -> Outcome {
    run(command(words).env("XDG_RUNTIME_DIR", folder))
}

/// Trace file, and what the run that made it printed.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Status and output of the program, as heapr passed them on.
    pub(crate) outcome: Outcome,
    scratch: tempfile::TempDir,
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub(crate) struct Settings<'a> {
    /// Arguments of `heapr run` before the `--`.
    pub(crate) options: &'a [&'a str],
    /// Every Nth stack is also unwound in full; 0 for never.
    pub(crate) verify_every: u32,
    /// Variables added to the environment.
    pub(crate) environment: &'a [(String, String)],
    /// Time-out.
    pub(crate) limit: Duration,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { options: &["--quiet"], verify_every: 0, environment: &[], limit: heapr_testkit::LIMIT }
    }
}

/// Runs `heapr run OPTIONS -o FILE -- COMMAND`.
pub(crate) fn record(command: &[String], settings: &Settings<'_>) -> Recording {
    let scratch = tempfile::tempdir().unwrap();
    let mut heapr = Command::new(recorder());
    heapr.arg("run").args(settings.options).arg("-o").arg(scratch.path().join("trace.heapr"));
    heapr.arg("--").args(command).envs(settings.environment.iter().cloned());
    heapr.env("HEAPR_VERIFY", settings.verify_every.to_string());
    let outcome = run_within(&mut heapr, settings.limit);
    Recording { outcome, scratch }
}

/// Sums over the groups of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) groups: u64,
    pub(crate) allocs: u64,
    pub(crate) alloc_bytes: u64,
    pub(crate) reallocs: u64,
    pub(crate) outstanding: u64,
    pub(crate) outstanding_bytes: u64,
    pub(crate) peak_bytes: u64,
}

impl Sums {
    fn quantity(&self, name: &str) -> Option<u64> {
        Some(match name {
            "groups" => self.groups,
            "allocs" => self.allocs,
            "alloc_bytes" => self.alloc_bytes,
            "reallocs" => self.reallocs,
            "frees" => self.allocs - self.outstanding,
            "outstanding" => self.outstanding,
            "outstanding_bytes" => self.outstanding_bytes,
            "peak_bytes" => self.peak_bytes,
            _ => return None,
        })
    }
}

impl Recording {
    /// Wraps a trace that was made in another way: `trace.heapr` in its folder.
    pub(crate) fn of_file(file: &Path, scratch: tempfile::TempDir, outcome: Outcome) -> Self {
        assert_eq!(file, scratch.path().join("trace.heapr"));
        Self { outcome, scratch }
    }

    /// Path of the trace file.
    pub(crate) fn file(&self) -> PathBuf {
        self.scratch.path().join("trace.heapr")
    }

    /// Folder that lives as long as the recording.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs a heapr command on the file, and parses its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        run(self.command(arguments).args(["--format", "json"])).json()
    }

    /// Runs a heapr command on the file, and returns its text.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        run(&mut self.command(arguments)).ok().stdout
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut heapr = command(&arguments[..1]);
        heapr.arg(self.file()).args(&arguments[1..]);
        heapr
    }

    /// Fails unless the allocations under the frames of `expectation` are what it claims.
    pub(crate) fn check(&self, expectation: &Expectation, is_by_frame: bool, label: &str) {
        let action = if is_by_frame { "--frames" } else { "--stacks" };
        let last = expectation.frames.last().expect("at least one frame");
        // `rust::path::name` and `operator new` are patterns as they stand, without a `!`.
        let mut words = vec!["report", action, "--top", "100000000", "--require-frames", last];
        // The innermost frame of all is the allocating function.
        if !is_by_frame {
            words.push("--no-default-cull");
        }
        let report = self.json(&words);
        let sums = sum_groups(&report, &expectation.frames);
        for claim in &expectation.claims {
            claim.check(sums.quantity(&claim.quantity), label, &(&expectation.frames, &sums));
        }
    }
}

/// Returns the symbols of a group's stack, innermost first, without C++ arguments.
pub(crate) fn symbols(group: &Value) -> Vec<String> {
    let frames = group["frames"].as_array().expect("frames");
    frames.iter().map(|frame| plain_name(frame["symbol"].as_str().unwrap_or(""))).collect()
}

/// Reduces `space::name(int) [clone .cold]` to `space::name`.
fn plain_name(symbol: &str) -> String {
    let symbol = symbol.split(" [").next().unwrap();
    // Go's packages are parts of its names.
    if symbol.starts_with("main.") {
        return symbol.to_owned();
    }
    let end = if symbol.starts_with("operator()") {
        symbol.len()
    } else {
        symbol.find('(').unwrap_or(symbol.len())
    };
    symbol[..end].split('.').next().unwrap().to_owned()
}

fn sum_groups(report: &Value, frames: &[String]) -> Sums {
    let mut sums = Sums::default();
    for group in report["groups"].as_array().expect("groups") {
        let symbols = symbols(group);
        if !symbols.windows(frames.len()).any(|window| window == frames) {
            continue;
        }
        let number = |name: &str| group[name].as_u64().unwrap_or_else(|| panic!("{name} in {group}"));
        sums.groups += 1;
        sums.allocs += number("total_count");
        sums.alloc_bytes += number("total_bytes");
        sums.reallocs += number("realloc_count");
        sums.outstanding += number("outstanding_count");
        sums.outstanding_bytes += number("outstanding_bytes");
        sums.peak_bytes += number("peak_bytes");
    }
    sums
}

/// Fails if a stack differs from its full unwind, or if no stack was verified although that was
/// requested.
pub(crate) fn assert_verified(info: &Value, verify_every: u32, label: &str) {
    let statistics = &info["statistics"];
    let number =
        |name: &str| statistics[name].as_u64().unwrap_or_else(|| panic!("{label}: no {name} in {info}"));
    assert_eq!(
        number("stacks_verified_mismatches"),
        0,
        "{label}: kept stacks differ from full unwinds: {statistics}"
    );
    assert!(
        verify_every == 0 || number("stacks_verified") > 0,
        "{label}: no stack was checked: {statistics}"
    );
}

#[test]
fn groups_are_summed_by_adjacent_frames() {
    let report: Value = serde_json::from_str(
        r#"{"groups": [
            {"frames": [{"symbol": "malloc"}, {"symbol": "victim_leaf(int)"}, {"symbol": "main"}],
             "total_count": 3, "total_bytes": 30, "outstanding_count": 1, "outstanding_bytes": 10,
             "realloc_count": 2, "peak_bytes": 20},
            {"frames": [{"symbol": "victim_leaf(int)"}, {"symbol": "other"}, {"symbol": "main"}],
             "total_count": 4, "total_bytes": 40, "outstanding_count": 0, "outstanding_bytes": 0,
             "realloc_count": 0, "peak_bytes": 0}]}"#,
    )
    .unwrap();
    let frames = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let sums = sum_groups(&report, &frames(&["victim_leaf", "main"]));
    let expected = Sums {
        groups: 1,
        allocs: 3,
        alloc_bytes: 30,
        reallocs: 2,
        outstanding: 1,
        outstanding_bytes: 10,
        peak_bytes: 20,
    };
    assert_eq!(sums, expected);
    assert_eq!(sums.quantity("frees"), Some(2));
    assert_eq!(sum_groups(&report, &frames(&["victim_leaf"])).allocs, 7);
}
