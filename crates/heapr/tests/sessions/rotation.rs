//! `--rotate`: files that follow one another, each whole by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_testkit::wait_until;
use serde_json::Value;

use crate::stage::Stage;

fn totals(stage: &Stage, file: &str, extra: &[&str]) -> Value {
    stage.json(&[&["report", file, "--totals"], extra].concat())["totals"].clone()
}

fn statistic(stage: &Stage, file: &str, name: &str) -> Option<u64> {
    stage.json(&["info", file])["statistics"][name].as_u64()
}

fn wait_for_file(path: &Path) {
    wait_until(&format!("{} is there", path.display()), || path.exists().then_some(()));
}

/// Returns a library that moves the wall clock a day forward or back at each call for it.
fn jumping_clock(stage: &Stage) -> PathBuf {
    const SOURCE: &str = r"
        #define _GNU_SOURCE
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            static int asked;
            int answer = syscall(SYS_clock_gettime, clock, time);
            if (clock == CLOCK_REALTIME && __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) % 2)
                time->tv_sec += 86400;
            return answer;
        }
    ";
    let (source, library) = (stage.path("jumping_clock.c"), stage.path("jumping_clock.so"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(gcc.status().unwrap().success());
    library
}

#[test]
fn each_file_is_whole_and_goes_on_where_the_one_before_ended_whatever_the_wall_clock_does() {
    let stage = Stage::new();
    let clock = jumping_clock(&stage);
    let program = stage.steady(200);
    let mut arguments = vec!["start", "turn", "-o", "turn.heapr", "--rotate", "1s", "--keep", "50", "--"];
    arguments.extend(program.iter().map(String::as_str));
    let mut start = stage.command(&arguments);
    start.env("LD_PRELOAD", &clock);
    heapr_testkit::run(&mut start).ok();
    let recorder = stage.status("turn")["recorder_pid"].to_string();
    let maps = std::fs::read_to_string(format!("/proc/{recorder}/maps")).unwrap();
    assert!(maps.contains("jumping_clock.so"), "the recorder has another clock");
    wait_for_file(&stage.path("turn.000003.heapr"));
    stage.heapr(&["stop", "turn", "-q"]).ok();
    let files = ["turn.000001.heapr", "turn.000002.heapr", "turn.000003.heapr"];
    for pair in files.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        for file in pair {
            assert_eq!(stage.json(&["info", file])["is_complete"], true);
            // Totals by the summary, and by a replay.
            let by_summary = totals(&stage, file, &[]);
            assert_eq!(
                by_summary["alloc_count"],
                totals(&stage, file, &["--size", "0", "1000000000"])["alloc_count"]
            );
        }
        let start_ns = statistic(&stage, after, "window_start_ns").unwrap();
        let taken_on = totals(&stage, after, &["--range", "0", &format!("{}ns", start_ns + 1)]);
        let left = totals(&stage, before, &[]);
        assert!(left["outstanding_count"].as_u64() > Some(10), "{left}");
        assert_eq!(taken_on["alloc_count"], left["outstanding_count"], "{before} and {after}");
        assert_eq!(taken_on["alloc_bytes"], left["outstanding_bytes"], "{before} and {after}");
    }
    // The first blocks have their stacks, even in a file that was begun seconds later.
    let early = stage.json(&["report", files[2], "--stacks", "--require-frames", "early_alloc"]);
    assert_eq!(early["groups"][0]["outstanding_count"], 10, "{early}");
    assert!(early["warnings"][0].as_str().unwrap().contains("a later file of its session"), "{early}");
    // Durations of each file and ages in it are less than a day.
    for file in files {
        let info = stage.json(&["info", file]);
        let until_ns = info["duration_ns"].as_u64().unwrap();
        assert!(until_ns > 1_000_000_000 && until_ns < 3_600_000_000_000, "{file}: {until_ns}");
        let ages = stage.json(&["report", file, "--histogram", "lifetime"]);
        let last = ages["histograms"][0]["buckets"].as_array().unwrap().last().unwrap().clone();
        assert!(last["from"].as_u64() <= Some(until_ns), "{last}");
    }
    assert_eq!(statistic(&stage, files[0], "window_start_ns"), None);
    assert_eq!(statistic(&stage, "turn.heapr", "files_after"), None);
}

#[test]
fn a_file_of_its_largest_size_is_followed_by_the_next_and_the_oldest_goes() {
    let stage = Stage::new();
    let steady = stage.steady(0);
    let mut arguments = vec![
        "start",
        "large",
        "-o",
        "large.heapr",
        "--rotate",
        "1h",
        "--max-file",
        "1M",
        "--keep",
        "0",
        "--",
    ];
    arguments.extend(steady.iter().map(String::as_str));
    stage.heapr(&arguments).ok();
    // All closed files are removed.
    wait_until("a later file is the present one", || {
        let info = stage.heapr(&["info", "large.heapr", "--format", "json"]).stdout;
        let info: Value = serde_json::from_str(&info).ok()?;
        info["statistics"]["files_before"].as_u64().map(|_| ())
    });
    assert!(!stage.path("large.000001.heapr").exists());
    let status = stage.status("large");
    assert_eq!((status["state"].as_str(), &status["write_error"]), (Some("recording"), &Value::Null));
    stage.heapr(&["stop", "large", "-q"]).ok();
    stage.heapr(&["report", "large.heapr", "--totals"]).ok();
}

#[test]
fn a_recorder_that_was_killed_is_followed_by_another_on_the_same_program() {
    let stage = Stage::new();
    let mut program = stage.spawn_steady(200);
    let pid = program.id().to_string();
    let start = ["start", "kept", "-o", "kept.heapr", "--rotate", "1h", "--sample", "4K", "--pid", &pid];
    stage.heapr(&start).ok();
    let status = stage.wait_for("kept", "samples", |status| status["event_count"].as_u64() > Some(20));
    stage.heapr(&["update", "kept", "--flush"]).ok();
    let recorder = status["recorder_pid"].to_string();
    assert!(Command::new("kill").args(["-KILL", &recorder]).status().unwrap().success());
    stage.heapr(&start).ok();
    let status = stage.wait_for("kept", "samples", |status| status["event_count"].as_u64() > Some(20));
    assert_eq!(status["live_process_count"], 1, "{status}");
    stage.heapr(&["stop", "kept", "-q"]).ok();
    assert_eq!(stage.json(&["info", "kept.heapr"])["is_complete"], true);
    // The remainder of the first session is renamed, and can be read.
    assert!(stage.json(&["info", "kept.000001.heapr"])["event_count"].as_u64() > Some(0));
    // A file that is not a trace is not renamed.
    std::fs::write(stage.path("letter.heapr"), "a letter").unwrap();
    let start = ["start", "letter", "-o", "letter.heapr", "--rotate", "1h", "--pid", &pid];
    stage.heapr(&start).fails_with(&["letter.heapr"]);
    assert_eq!(std::fs::read_to_string(stage.path("letter.heapr")).unwrap(), "a letter");
    program.kill().unwrap();
    program.wait().unwrap();
}
