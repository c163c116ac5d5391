//! Sampling while a session runs: by itself, by order, and everything while a heap grows; snapshots
//! and findings of it.

use std::path::PathBuf;
use std::process::Command;

use crate::stage::Stage;

/// Grows by 100 blocks a time, and makes ten times as many that it frees, until it is killed.
const GROWING: &str = r"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void grow_forever(void) {
    for (int i = 0; i < 100; i++) { char *p = malloc(1000); memset(p, 1, 1000); }
}
__attribute__((noinline)) void churn(void) {
    for (int i = 0; i < 1000; i++) { char *volatile p = malloc(500); free(p); }
}
int main(void) { for (;;) { grow_forever(); churn(); usleep(10000); } }
";

fn growing(stage: &Stage) -> PathBuf {
    std::fs::write(stage.path("growing.c"), GROWING).unwrap();
    let program = stage.path("growing");
    let built = Command::new("gcc")
        .args(["-O1", "-g", "-fno-builtin", "-o"])
        .arg(&program)
        .arg(stage.path("growing.c"))
        .status()
        .unwrap();
    assert!(built.success());
    program
}

/// Kills what a test has started, whatever comes.
struct Target(u64);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.0.to_string()]).status();
    }
}

fn start(stage: &Stage, name: &str, options: &[&str]) -> Target {
    let program = growing(stage);
    let file = format!("{name}.heapr");
    let arguments = [&["start", name, "-o", &file], options, &["--", program.to_str().unwrap()]].concat();
    stage.heapr(&arguments).ok();
    let status = stage.wait_for(name, "its program", |status| status["processes"][0]["pid"].is_u64());
    Target(status["processes"][0]["pid"].as_u64().unwrap())
}

#[test]
fn how_allocations_are_sampled_can_be_changed_while_a_session_runs() {
    let stage = Stage::new();
    let target = start(&stage, "changed", &["--sample", "64K"]);
    let mean = |status: &serde_json::Value| status["sample_mean_bytes"].as_u64().unwrap();
    let status = stage.wait_for("changed", "samples", |status| status["event_count"].as_u64() > Some(50));
    assert_eq!((status["sample"].as_str(), mean(&status)), (Some("65536"), 64 << 10));
    // All is recorded: a hundred times as many events as samples make.
    stage.heapr(&["update", "changed", "--sample", "all"]).ok();
    let before = stage.status("changed")["event_count"].as_u64();
    stage.wait_for("changed", "all events", |status| {
        status["event_count"].as_u64() > before.map(|before| before + 20_000)
    });
    // As few as make five samples a second: the mean is doubled until it is so.
    stage.heapr(&["update", "changed", "--sample", "auto:5"]).ok();
    stage.wait_for("changed", "a larger mean", |status| mean(status) > 512 << 10);
    stage.heapr(&["update", "changed", "--sample", "off"]).ok();
    let mut last = None;
    stage.wait_for("changed", "no more samples", |status| {
        let now = status["event_count"].as_u64();
        let before = std::mem::replace(&mut last, now);
        std::thread::sleep(std::time::Duration::from_millis(300));
        before == now
    });
    stage.heapr(&["stop", "changed", "-q"]).ok();
    drop(target);
    let info = stage.json(&["info", "changed.heapr"]);
    let means: Vec<u64> = info["sampling"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|period| period["mean_bytes"].as_u64())
        .collect();
    assert!([64 << 10, 0, 512 << 10, 1 << 20].iter().all(|mean| means.contains(mean)), "{means:?}");
}

#[test]
fn a_heap_that_grows_is_recorded_in_full_for_a_while_and_snapshots_tell_estimates() {
    let stage = Stage::new();
    let target = start(&stage, "grown", &["--sample", "32K", "--full-on-growth", "20%", "--for", "1s"]);
    let mean = |status: &serde_json::Value| status["sample_mean_bytes"].as_u64();
    stage.wait_for("grown", "samples again after all was recorded", {
        let mut has_been_full = false;
        move |status| {
            has_been_full |= mean(status) == Some(0);
            has_been_full && mean(status) == Some(32 << 10)
        }
    });
    let pid = target.0.to_string();
    let taken = stage.json(&["snapshot", "take", &pid]);
    let live = stage.status("grown")["live_bytes"].as_f64().unwrap();
    stage.wait_for("grown", "growth", |status| status["live_bytes"].as_f64() > Some(live * 1.5));
    let again = stage.json(&["snapshot", "take", &pid]);
    stage.heapr(&["stop", "grown", "-q"]).ok();
    drop(target);
    let of = |taken: &serde_json::Value, name: &str| {
        taken["snapshots"][0][name].as_f64().unwrap_or_else(|| panic!("{name} in {taken}"))
    };
    // Blocks are of 1,000 bytes, whatever samples stand for.
    for taken in [&taken, &again] {
        let size = of(taken, "block_bytes") / of(taken, "block_count");
        assert!((900.0..1100.0).contains(&size), "{taken}");
        assert!(taken.to_string().contains("blocks and bytes are estimates"), "{taken}");
    }
    assert!((of(&taken, "block_bytes") / live - 1.0).abs() < 0.5, "{live} of {taken}");
    // What a snapshot says of itself is what its blocks add up to.
    let report = stage.json(&["report", "grown.heapr", "--snapshot", "2", "--totals"]);
    let totals = report["totals"]["outstanding_bytes"].as_f64().unwrap();
    assert!((totals / of(&again, "block_bytes") - 1.0).abs() < 0.01, "{report} {again}");
    let suspects = stage.heapr(&["snapshot", "suspects", "grown.heapr"]);
    assert!(suspects.stdout.contains("grow_forever"), "{}{}", suspects.stdout, suspects.stderr);
    let findings = stage.heapr(&["explain", "grown.heapr"]).ok().stdout;
    assert!(findings.contains("Memory grows: grow_forever"), "{findings}");
}
