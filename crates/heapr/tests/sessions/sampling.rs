//! Sampling while a session runs: of attached processes, by order, and full recording while a heap
//! grows; snapshots and findings of samples.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::stage::{Stage, wait_for_own_code};

/// Grows by 30 blocks at a time, allocates and frees many more, until it is killed.
const GROWING: &str = r"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void grow_forever(void) {
    for (int i = 0; i < 30; i++) { char *p = malloc(1000); memset(p, 1, 1000); }
}
__attribute__((noinline)) void churn(void) {
    for (int i = 0; i < 1000; i++) { char *volatile p = malloc(500); free(p); }
}
int main(void) { for (;;) { grow_forever(); churn(); usleep(10000); } }
";

fn build(source: &Path, program: &Path) {
    let mut command = Command::new("gcc");
    command.args(["-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-o"]).arg(program).arg(source);
    assert!(command.status().unwrap().success());
}

fn growing(stage: &Stage) -> PathBuf {
    let (source, program) = (stage.path("growing.c"), stage.path("growing"));
    std::fs::write(&source, GROWING).unwrap();
    build(&source, &program);
    program
}

/// Child that is killed when the test ends.
struct Target(Child);

impl Target {
    fn growing(stage: &Stage) -> Self {
        let child = Command::new(growing(stage)).spawn().unwrap();
        wait_for_own_code(child.id());
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Program that counts its own instructions, with a child that does the work.
struct Attached {
    target: Target,
    output: BufReader<ChildStdout>,
}

impl Attached {
    fn start(program: &Path, file: &Path) -> Self {
        let mut command = Command::new(program);
        let mut child = command.arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { target: Target(child), output }
    }

    /// Reads the next number; `None` if the program has ended.
    fn number(&mut self) -> Option<i64> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().ok()
    }
}

const FUNCTIONS: [&str; 7] = [
    "sampled_malloc",
    "sampled_calloc",
    "sampled_memalign",
    "sampled_aligned_alloc",
    "sampled_realloc",
    "sampled_posix_memalign",
    "sampled_grown",
];

/// True amounts that each function allocates, and keeps.
const TRUTHS: [(&str, f64); 2] = [("total_bytes", 20_000.0 * 200.0), ("outstanding_bytes", 2_000.0 * 200.0)];

#[test]
fn a_pair_in_a_process_that_was_attached_to_takes_fourteen_instructions_more_and_each_function_is_counted_once()
 {
    let stage = Stage::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/sampled/attached.c");
    let program = stage.path("attached");
    build(&source, &program);
    let go = stage.path("go");
    std::fs::write(&go, "").unwrap();
    let mut bare = Attached::start(&program, &go);
    bare.number().unwrap();
    let Some(bare) = bare.number() else {
        heapr_testkit::not_run("a process may not trace its child here");
        return;
    };
    std::fs::remove_file(&go).unwrap();
    let measured = |mean: &str| {
        let mut attached = Attached::start(&program, &go);
        let pid = attached.number().unwrap().to_string();
        let file = format!("{mean}.heapr");
        stage.heapr(&["start", mean, "--sample", mean, "-o", &file, "--pid", &pid]).ok();
        std::fs::write(&go, "").unwrap();
        let steps = attached.number().unwrap();
        stage.heapr(&["stop", mean, "-q"]).ok();
        std::fs::remove_file(&go).unwrap();
        drop(attached.target);
        steps
    };
    assert_eq!(measured("1G") - bare, 14);
    measured("4K");
    let report = stage.json(&["report", "4K.heapr", "--stacks"]);
    for name in FUNCTIONS {
        for (key, truth) in TRUTHS {
            // The growing block had 8 bytes first.
            let more = if name == "sampled_grown" && key == "total_bytes" { 20_000.0 * 8.0 } else { 0.0 };
            assert_is_in_interval(&report, name, key, truth + more);
        }
    }
}

fn assert_is_in_interval(report: &Value, name: &str, key: &str, truth: f64) {
    let groups = report["groups"].as_array().unwrap();
    let is_of =
        |group: &&Value| group["frames"].as_array().unwrap().iter().any(|frame| frame["symbol"] == name);
    let (mut value, mut square) = (0.0, 0.0_f64);
    for group in groups.iter().filter(is_of) {
        value += group[key].as_f64().unwrap_or(0.0);
        square += group[format!("{key}_plus_minus")].as_f64().unwrap_or(0.0).powi(2);
    }
    // Outside of this many half intervals lies one value in a million.
    let off = (value - truth).abs();
    assert!(off <= 2.5 * square.sqrt(), "{name}: {key} is {truth}, estimated as {value}");
}

/// The allocator is embedded in the program, which is attached to twice: leftovers of the first
/// attach do not matter.
#[test]
fn an_allocator_inside_of_a_process_that_was_attached_to_is_counted_where_its_calls_come_in() {
    let stage = Stage::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/sampled/inside.c");
    let program = stage.path("inside");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-g", "-fno-builtin", "-fno-allocation-dce", "-fno-optimize-sibling-calls"]);
    command.args(["-fno-ipa-icf", "-pthread", "-o"]).arg(&program).arg(source);
    assert!(command.status().unwrap().success());
    let go = stage.path("go");
    let mut attached = Attached::start(&program, &go);
    let pid = attached.number().unwrap().to_string();
    for name in ["first", "second"] {
        let file = format!("{name}.heapr");
        stage.heapr(&["start", name, "--sample", "8K", "-o", &file, "--pid", &pid]).ok();
        if name == "first" {
            stage.heapr(&["stop", name, "-q"]).ok();
        }
    }
    std::fs::write(&go, "").unwrap();
    let steps = attached.number().unwrap();
    let mut claims = String::new();
    attached.output.read_to_string(&mut claims).unwrap();
    stage.heapr(&["stop", "second", "-q"]).ok();
    let report = stage.json(&["report", "second.heapr", "--stacks"]);
    for line in claims.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        for (key, place) in [("total_bytes", 2), ("outstanding_bytes", 4)] {
            assert_is_in_interval(&report, words[0], key, words[place].parse().unwrap());
        }
    }
    assert_eq!(claims.lines().count(), 7, "{claims}");
    // Some 750 if each call goes to the agent; 0 if the program may not trace its child.
    assert!(steps < 100, "{steps}");
}

#[test]
fn how_allocations_are_sampled_can_be_changed_while_a_session_runs() {
    let stage = Stage::new();
    let target = Target::growing(&stage);
    let options = ["--sample", "64K", "--max-buffers", "64", "-o", "changed.heapr", "--pid", &target.pid()];
    stage.heapr(&[&["start", "changed"][..], &options].concat()).ok();
    let mean = |status: &Value| status["sample_mean_bytes"].as_u64().unwrap();
    let status = stage.wait_for("changed", "samples", |status| status["event_count"].as_u64() > Some(50));
    assert_eq!((status["sample"].as_str(), mean(&status)), (Some("65536"), 64 << 10));
    // Full recording makes a hundred times as many events as samples.
    stage.heapr(&["update", "changed", "--sample", "all"]).ok();
    let before = stage.status("changed")["event_count"].as_u64();
    stage.wait_for("changed", "all events", |status| {
        status["event_count"].as_u64() > before.map(|before| before + 20_000)
    });
    // The mean is doubled until there is one sample a second.
    stage.heapr(&["update", "changed", "--sample", "auto:1"]).ok();
    stage.wait_for("changed", "a larger mean", |status| mean(status) > 512 << 10);
    stage.heapr(&["update", "changed", "--sample", "off"]).ok();
    let last = Cell::new(None);
    stage.wait_for("changed", "no more samples", |status| {
        let now = status["event_count"].as_u64();
        let before = last.replace(now);
        std::thread::sleep(std::time::Duration::from_millis(300));
        before == now
    });
    stage.heapr(&["stop", "changed", "-q"]).ok();
    drop(target);
    let info = stage.json(&["info", "changed.heapr"]);
    let periods = info["sampling"].as_array().unwrap();
    let means: Vec<u64> = periods.iter().filter_map(|period| period["mean_bytes"].as_u64()).collect();
    assert!([64 << 10, 0].iter().all(|mean| means.contains(mean)), "{means:?}");
}

#[test]
fn a_heap_that_grows_is_recorded_in_full_for_a_while_and_snapshots_tell_estimates() {
    let stage = Stage::new();
    let target = Target::growing(&stage);
    let pid = target.pid();
    let growth = ["--sample", "32K", "--full-on-growth", "20%", "--for", "1s", "--max-buffers", "64"];
    stage.heapr(&[&["start", "grown", "-o", "grown.heapr", "--pid", &pid][..], &growth].concat()).ok();
    let mean = |status: &Value| status["sample_mean_bytes"].as_u64();
    let has_been_full = Cell::new(false);
    stage.wait_for("grown", "samples again after all was recorded", |status| {
        has_been_full.set(has_been_full.get() || mean(status) == Some(0));
        has_been_full.get() && mean(status) == Some(32 << 10)
    });
    let live = |status: &Value| status["live_bytes"].as_f64().unwrap();
    let before = live(&stage.status("grown"));
    let taken = stage.json(&["snapshot", "take", &pid]);
    let after = live(&stage.status("grown"));
    stage.wait_for("grown", "growth", |status| live(status) > after * 1.5);
    let again = stage.json(&["snapshot", "take", &pid]);
    let more = live(&stage.status("grown")) * 1.3;
    stage.wait_for("grown", "more growth", |status| live(status) > more);
    // Growth is found in three snapshots.
    stage.heapr(&["snapshot", "take", &pid]).ok();
    stage.heapr(&["stop", "grown", "-q"]).ok();
    drop(target);
    let of = |taken: &Value, name: &str| {
        taken["snapshots"][0][name].as_f64().unwrap_or_else(|| panic!("{name} in {taken}"))
    };
    // Blocks have 1,000 bytes, whatever samples stand for.
    for taken in [&taken, &again] {
        let size = of(taken, "block_bytes") / of(taken, "block_count");
        assert!((900.0..1100.0).contains(&size), "{taken}");
        assert!(taken.to_string().contains("blocks and bytes are estimates"), "{taken}");
    }
    let bytes = of(&taken, "block_bytes");
    assert!((before * 0.7..after * 1.3).contains(&bytes), "{before} to {after}: {taken}");
    // The totals of a snapshot are the sum of its blocks.
    let report = stage.json(&["report", "grown.heapr", "--snapshot", "2", "--totals"]);
    let totals = report["totals"]["outstanding_bytes"].as_f64().unwrap();
    assert!((totals / of(&again, "block_bytes") - 1.0).abs() < 0.01, "{report} {again}");
    let suspects = stage.heapr(&["snapshot", "suspects", "grown.heapr"]);
    assert!(suspects.stdout.contains("grow_forever"), "{}{}", suspects.stdout, suspects.stderr);
    let findings = stage.heapr(&["explain", "grown.heapr"]).ok().stdout;
    assert!(findings.contains("Memory grows: grow_forever"), "{findings}");
    let finding = &stage.json(&["explain", "grown.heapr"])["findings"][0];
    let column = |name: &str| finding[name].as_array().unwrap_or_else(|| panic!("{finding}")).clone();
    let (curve, halves) = (column("curve"), column("curve_plus_minus"));
    assert_eq!(curve.len(), halves.len(), "{finding}");
    assert!(halves.last().and_then(Value::as_u64) > Some(0), "{finding}");
}
