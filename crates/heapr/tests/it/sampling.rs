//! Sampled recordings: numbers that a program counts itself lie in the intervals of heapr's
//! estimates, and frees leave no sample behind.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::header::Header;
use crate::recording::{Recording, Settings, record};
use crate::victim_build::{build, sources};

/// Number of half intervals that a value exceeds once in a million times.
const HALVES: f64 = 2.5;

fn victim(name: &str) -> String {
    let header = Header::read(&sources().join(name));
    build(name, &header, &["-O1".to_owned()]).to_str().unwrap().to_owned()
}

fn sampled(name: &str, mean: &str) -> Recording {
    let options = ["--quiet", "--sample", mean];
    let recording = record(&[victim(name)], &Settings { options: &options, ..Settings::default() });
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

/// Estimate, and the square of half of its interval.
#[derive(Debug, Default, Clone, Copy)]
struct Estimate {
    value: f64,
    square: f64,
}

impl Estimate {
    fn add(&mut self, group: &Value, key: &str) {
        self.value += group[key].as_f64().unwrap_or(0.0);
        self.square += group[format!("{key}_plus_minus")].as_f64().unwrap_or(0.0).powi(2);
    }
}

const KEYS: [&str; 4] = ["total_count", "total_bytes", "outstanding_count", "outstanding_bytes"];

/// Returns the sums of stacks by function of the victim.
fn estimates(report: &Value) -> BTreeMap<String, [Estimate; 4]> {
    let mut sums: BTreeMap<String, [Estimate; 4]> = BTreeMap::new();
    for group in report["groups"].as_array().unwrap() {
        let symbols = group["frames"].as_array().unwrap().iter().filter_map(|frame| frame["symbol"].as_str());
        for name in symbols.filter(|symbol| symbol.starts_with("sampled_")) {
            let sums = sums.entry(name.to_owned()).or_default();
            for (sum, key) in sums.iter_mut().zip(KEYS) {
                sum.add(group, key);
            }
        }
    }
    sums
}

/// Returns the number of functions for which the victim printed its allocations. Fails if a number
/// lies outside of its estimate's interval.
fn claims_that_hold(lines: &str, report: &Value) -> usize {
    let estimates = estimates(report);
    for line in lines.lines() {
        let [name, truths @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let found = estimates.get(*name).copied().unwrap_or_default();
        for ((truth, estimate), key) in truths.iter().zip(found).zip(KEYS) {
            let truth: f64 = truth.parse().unwrap();
            let off = (estimate.value - truth).abs();
            let is_in = if truth == 0.0 { off == 0.0 } else { off <= HALVES * estimate.square.sqrt() };
            assert!(is_in, "{name}: {key} is {truth}, estimated as {estimate:?}");
        }
    }
    lines.lines().count()
}

#[test]
fn what_a_program_counts_lies_in_the_intervals_and_what_is_freed_is_gone() {
    let recording = sampled("sampled/totals.c", "8K");
    let report = recording.json(&["report"]);
    assert_eq!(report["sampling"]["mean_bytes"], 8192, "{}", report["sampling"]);
    assert_eq!(claims_that_hold(&recording.outcome.stdout, &report), 11);
    let text = recording.text(&["report", "--totals"]);
    assert!(text.contains("Counted: sampled, every 8.00 KiB"), "{text}");
    let totals = &report["totals"];
    assert!(totals["alloc_bytes_plus_minus"].as_u64() > Some(0), "{totals}");
    assert_eq!((&totals["temporary_count"], &totals["unmatched_frees"]), (&0.into(), &0.into()), "{totals}");
    let info = recording.json(&["info"]);
    assert_eq!(info["sampling"][0]["mean_bytes"], 8192, "{}", info["sampling"]);
}

fn half(value: &Value, key: &str) -> u64 {
    value[format!("{key}_plus_minus")].as_u64().unwrap_or(0)
}

/// Sampled recording with an account of the program's memory. The recorder looks at memory at
/// moments of its own, and a short program can end before the first.
fn sampled_with_account(name: &str, mean: &str) -> Recording {
    let has_account = |recording: &Recording| recording.json(&["info"])["own_memory"][0].is_object();
    let found = (0..20).map(|_| sampled(name, mean)).find(has_account);
    found.unwrap_or_else(|| panic!("{name}: no account in twenty recordings"))
}

#[test]
fn frees_peaks_of_heaps_and_recorded_blocks_have_intervals_and_what_was_counted_has_none() {
    let recording = sampled_with_account("sampled/totals.c", "8K");
    let report = recording.json(&["report"]);
    assert!(half(&report["totals"], "free_count") > 0, "{}", report["totals"]);
    let heaps = report["heaps"].as_array().unwrap();
    // Children that had their peaks at other times than the whole, too.
    assert!(heaps.len() > 1, "{heaps:?}");
    for heap in heaps.iter().filter(|heap| heap["peak_bytes"].as_u64() > Some(0)) {
        assert!(half(heap, "peak_bytes") > 0 && half(heap, "peak_count") > 0, "{heap}");
    }
    let info = recording.json(&["info"]);
    let parts = info["own_memory"][0]["parts"].as_array().unwrap();
    for part in parts {
        let is_estimate =
            ["recorded blocks", "free in the allocator"].contains(&part["what"].as_str().unwrap());
        assert_eq!(half(part, "bytes") > 0, is_estimate, "{part}");
    }
    assert!(parts.iter().any(|part| part["what"] == "recorded blocks"), "{parts:?}");
    let line_of = |command: &[&str]| {
        let text = recording.text(command);
        let line = text.lines().find(|line| line.contains("recorded blocks")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{text}"))
    };
    assert!(line_of(&["info"]).contains("iB ± "), "{}", line_of(&["info"]));
    assert!(line_of(&["report", "--totals"]).contains(" % ± "), "{}", line_of(&["report", "--totals"]));
    let exact = record(&[victim("sampled/totals.c")], &Settings::default());
    for command in ["report", "info"] {
        assert!(!exact.json(&[command]).to_string().contains("plus_minus"), "{command}");
        assert!(!exact.text(&[command]).contains('±'), "{command}");
    }
}

/// Valgrind and similar tools count the same, but a traced child can be counted anywhere.
#[test]
fn a_pair_that_is_no_sample_takes_thirteen_instructions_more() {
    let program = victim("sampled/steps.c");
    let bare = std::process::Command::new(&program).output().unwrap();
    let bare_text = String::from_utf8_lossy(&bare.stdout).into_owned();
    let Ok(bare) = bare_text.trim().parse::<i64>() else {
        heapr_testkit::not_run("a process may not trace its child here");
        return;
    };
    let recording = sampled("sampled/steps.c", "1G");
    let counted: i64 = recording.outcome.stdout.trim().parse().unwrap();
    assert_eq!(counted - bare, 13, "{counted} for {bare}");
}

/// The functions of an embedded allocator call and jump to one another, and allocate from the C
/// library.
#[test]
fn calls_of_an_allocator_inside_are_counted_where_they_come_in_and_each_once() {
    let program = victim("sampled/inside.c");
    let bare = std::process::Command::new(&program).output().unwrap();
    let recording = sampled("sampled/inside.c", "8K");
    let bare_text = String::from_utf8_lossy(&bare.stdout).into_owned();
    let (bare, _) = bare_text.split_once('\n').unwrap();
    let (counted, claims) = recording.outcome.stdout.split_once('\n').unwrap();
    assert_eq!(claims_that_hold(claims, &recording.json(&["report"])), 7);
    match (bare.parse::<i64>().unwrap(), counted.parse::<i64>().unwrap()) {
        (0, _) => heapr_testkit::not_run("a process may not trace its child here"),
        // Twelve, and two saved registers if the compiler lets callers keep all.
        (bare, counted) => assert!((1..=16).contains(&(counted - bare)), "{counted} for {bare}"),
    }
}

#[test]
fn readers_of_the_first_version_refuse_estimates() {
    let recording = sampled("sampled/steps.c", "64K");
    let version = |file: &Path| std::fs::read(file).unwrap()[8];
    assert_eq!(version(&recording.file()), 2);
    let exact = record(&[victim("sampled/steps.c")], &Settings::default());
    assert_eq!(version(&exact.file()), 1);
}

#[test]
fn two_recordings_of_samples_are_compared_with_the_interval_of_the_difference() {
    let recordings = [sampled("sampled/totals.c", "8K"), sampled("sampled/totals.c", "16K")];
    let files = recordings.each_ref().map(Recording::file);
    let diff = |format: &str| {
        let mut command = crate::recording::command(&["diff", "--format", format]);
        command.args(&files);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = diff("text");
    assert!(text.contains("sampled, every 8.00 KiB") && text.contains("sampled, every 16.0 KiB"), "{text}");
    let json: Value = serde_json::from_str(&diff("json")).unwrap();
    let [before, after] = ["before", "after"].map(|side| {
        let totals = &json[side]["totals"];
        let of = |key: &str| totals[key].as_f64().unwrap();
        (of("outstanding_bytes"), of("outstanding_bytes_plus_minus"))
    });
    let off = before.1.hypot(after.1);
    assert!((before.0 - after.0).abs() <= HALVES * off, "{before:?} {after:?}");
}

#[test]
fn who_listens_to_the_probes_is_told_of_samples_and_their_frees() {
    let recording = sampled("sampled/probes.c", "16K");
    assert_eq!(recording.outcome.stdout.trim(), "1 1 1 1", "{}", recording.outcome.stderr);
}

/// The victims check the stack that a sampling session uses, and the floating-point state that it
/// leaves.
#[test]
fn stack_and_floating_point_are_the_programs_where_some_calls_are_recorded() {
    for name in ["stack_use.c", "float_state.c"] {
        for mean in ["1K", "64K"] {
            let recording = sampled(name, mean);
            let totals = &recording.json(&["report", "--totals"])["totals"];
            assert!(totals["alloc_count"].as_u64() > Some(0), "{name}: the hooks did not run: {totals}");
        }
    }
}

/// Objects of Python's own allocator are samples, too, each counted once. A large object comes from
/// the C library, and a resize may pass through both.
#[test]
fn objects_of_pythons_allocator_are_estimated_as_they_are_counted() {
    const SCRIPT: &str = "\
lists = [[None] * 10 for number in range(20000)]
for number in range(400):
    grown = []
    for _ in range(2000): grown.append(None)
    lists.append(grown)
text = ''.join(str(number) for number in range(100000))";
    let script = "import os, sys; print(os.path.realpath(sys.executable))";
    let python = std::process::Command::new("python3").args(["-c", script]).output();
    let Ok(python) = python.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) else {
        heapr_testkit::not_run("there is no python3");
        return;
    };
    // A line without names of functions: `Peak   1,234 ± 56 bytes in ...`.
    let peak = |options: &[&str]| {
        let program = [python.clone(), "-c".to_owned(), SCRIPT.to_owned()];
        let recording = record(&program, &Settings { options, ..Settings::default() });
        assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
        let text = recording.text(&["report", "--totals"]);
        let line = text.lines().find_map(|line| line.strip_prefix("Peak ")?.split_once(" bytes "));
        let (amount, _) = line.unwrap_or_else(|| panic!("{text}"));
        let (value, half) = amount.split_once('±').unwrap_or((amount, "0"));
        [value, half].map(|number| number.trim().replace(',', "").parse::<f64>().unwrap())
    };
    let ([truth, _], [estimate, half]) = (peak(&["--quiet"]), peak(&["--quiet", "--sample", "8K"]));
    // Two runs of an interpreter differ by a little.
    let most = HALVES * half + truth * 0.01;
    assert!(half > 0.0 && (estimate - truth).abs() <= most, "{truth}, estimated as {estimate} ± {most}");
}
