//! Snapshots of a native heap, from `heapr run` to the commands that read them.

use heapr_testkit::Outcome;
use serde_json::Value;

use crate::header::Header;
use crate::recording::{Recording, Settings, command, record};
use crate::victim_build::{build, sources};

fn grown(options: &[&str]) -> Recording {
    let header = Header::read(&sources().join("grows.c"));
    let program = build("grows.c", &header, &["-O1".to_owned()]);
    let command = [program.to_str().unwrap().to_owned(), "12".to_owned()];
    let recording = record(&command, &Settings { options, ..Settings::default() });
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

/// Runs `heapr snapshot COMMAND FILE OPTIONS`.
fn run(recording: &Recording, words: &[&str]) -> Outcome {
    let mut heapr = command(&["snapshot", words[0], "--format", "json"]);
    heapr.arg(recording.file()).args(&words[1..]);
    heapr_testkit::run(&mut heapr)
}

fn read(recording: &Recording, words: &[&str]) -> Value {
    let outcome = run(recording, words);
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Returns the row whose innermost frame is the function.
fn line<'a>(value: &'a Value, rows: &str, function: &str) -> &'a Value {
    let is_it = |line: &&Value| line["frames"][0]["symbol"] == function;
    value[rows].as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("no {function} in {value}"))
}

/// Returns the median of the slopes between all pairs of points.
fn median_slope(points: &[(f64, f64)]) -> f64 {
    let mut slopes: Vec<f64> = Vec::new();
    for (place, earlier) in points.iter().enumerate() {
        slopes.extend(points[place + 1..].iter().map(|later| (later.1 - earlier.1) / (later.0 - earlier.0)));
    }
    slopes.sort_by(f64::total_cmp);
    f64::midpoint(slopes[(slopes.len() - 1) / 2], slopes[slopes.len() / 2])
}

#[test]
fn snapshots_show_what_grows_and_how_fast() {
    let recording = grown(&["--quiet", "--snapshot-every", "0.2", "--snapshot-at-exit"]);
    let summary = read(&recording, &["summary"]);
    let snapshots = summary["snapshots"].as_array().unwrap();
    assert!(snapshots.len() >= 4, "{summary}");
    let last = snapshots.last().unwrap();
    assert_eq!(last["trigger"], "exit");
    let leak = line(&summary, "rows", "victim_leak");
    assert_eq!((number(leak, "block_count"), number(leak, "block_bytes")), (1200, 134_400));
    assert_eq!(number(line(&summary, "rows", "victim_cache"), "block_count"), 1000);

    // A snapshot holds what a replay of the events before it leaves live.
    let mut leak_over_time = Vec::new();
    for snapshot in snapshots {
        let chosen = number(snapshot, "number").to_string();
        let by_snapshot = recording.json(&["report", "--totals", "--snapshot", &chosen]);
        let time = format!("{}ns", number(snapshot, "time_ns"));
        let by_replay = recording.json(&["report", "--totals", "--at", &time]);
        for key in ["outstanding_bytes", "outstanding_count"] {
            assert_eq!(by_snapshot["totals"][key], by_replay["totals"][key], "snapshot {chosen}");
        }
        let frames = ["report", "--stacks", "so", "--require-frames", "*!victim_leak", "--at", &time];
        let leaked_bytes = number(&recording.json(&frames)["totals"], "outstanding_bytes");
        leak_over_time.push((number(snapshot, "time_ns") as f64, leaked_bytes as f64));
    }

    // The cache has its size of before, or one of its blocks was being replaced in the first
    // snapshot; all of its blocks are new.
    let diff = read(&recording, &["diff", "--snapshots", "1", "last"]);
    let cache = line(&diff, "rows", "victim_cache");
    let gone = number(cache, "gone_count");
    assert!((999..=1000).contains(&gone), "{cache}");
    let delta = (1000 - gone.cast_signed()) * 500;
    assert_eq!((cache["bytes_delta"].as_i64(), number(cache, "new_count")), (Some(delta), 1000));
    let leak = line(&diff, "rows", "victim_leak");
    assert_eq!((number(leak, "gone_bytes"), leak["state"].as_str()), (0, Some("grown")));
    assert!(
        diff["rows"].as_array().unwrap().len() == 2,
        "what was there from the start has not changed: {diff}"
    );

    let suspects = read(&recording, &["suspects"]);
    let found = suspects["suspects"].as_array().unwrap();
    let [suspect] = found.as_slice() else { panic!("one leak: {suspects}") };
    // Frames are objects with file and line, as in the report.
    let frame = &suspect["frames"][0];
    assert_eq!(frame["symbol"], "victim_leak", "{suspect}");
    assert!(frame["file"].as_str().is_some_and(|file| file.contains("victims/")), "{frame}");
    assert!(frame["line"].as_u64().is_some() && frame["module"].as_str().is_some(), "{frame}");
    assert_ne!(suspect["confidence"], "low");
    // The program leaks in bursts and the snapshots are few, so the rate depends on when they were
    // taken. It is compared with a slope through them.
    let per_hour = suspect["bytes_per_hour"].as_f64().unwrap();
    // The snapshot at the end is not a point of the trend.
    leak_over_time.pop();
    let expected = median_slope(&leak_over_time) * 3.6e12;
    assert!((per_hour / expected - 1.0).abs() < 1e-6, "{per_hour} for {expected} of {leak_over_time:?}");
}

#[test]
fn growth_takes_snapshots_and_a_file_without_any_says_so() {
    let recording = grown(&["--quiet", "--on-growth", "20"]);
    let summary = read(&recording, &["summary"]);
    let triggers = summary["snapshots"].as_array().unwrap();
    assert!(!triggers.is_empty(), "{summary}");
    assert!(triggers.iter().all(|snapshot| snapshot["trigger"] == "grown 20 %"), "{summary}");
    let none = grown(&["--quiet"]);
    let refused = run(&none, &["summary"]);
    assert!(refused.status == 2 && refused.stderr.contains("--snapshot-every"), "{}", refused.stderr);
}

#[test]
fn what_a_native_heap_has_no_answer_to_is_said_with_what_has() {
    let recording = grown(&["--quiet", "--snapshot-at-exit"]);
    for (words, said) in [
        (&["retainers", "@1"][..], "heapr snapshot take --graph PID takes one with references"),
        (&["strings"], "heapr snapshot take --graph PID takes one with references"),
        (&["summary", "--class", "Session", "--filter", "console"], "--class, --filter: of V8 heaps only"),
        (&["summary", "--sort", "retained"], "--sort retained"),
        (&["diff", "--fail-if-growth", "Session=1"], "no classes"),
    ] {
        let refused = run(&recording, words);
        assert!(refused.status == 2 && refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{words:?}: {}", refused.stderr);
    }
    std::fs::write(recording.folder().join("a.heapsnapshot"), "{}").unwrap();
    let mixed = run(&recording, &["suspects", "a.heapsnapshot"]);
    assert!(mixed.status == 2 && mixed.stderr.contains("only snapshots of one kind"), "{}", mixed.stderr);
}
