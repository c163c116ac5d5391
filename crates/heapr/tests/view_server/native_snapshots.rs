//! Native snapshots: the numbers of `heapr snapshot summary | diff | suspects`.

use heapr_testkit::Stage;
use serde_json::{Value, json};

use crate::HEAPR;
use crate::viewer::{Viewer, common};

/// Leaks 10 KB a round in one function, renews 100 blocks in another and keeps 50,000 bytes in a
/// third.
const LEAKS: &str = r#"
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void *leak(void) { return malloc(1000); }
__attribute__((noinline)) static void *renew(void) { return malloc(300); }
__attribute__((noinline)) static void *keep(void) { return malloc(50000); }
static void *renewed[100];
int main(void) {
    void *volatile kept = keep();
    for (int round = 0; round < 24; round++) {
        for (int i = 0; i < 10; i++) {
            void *volatile lost = leak();
            (void)lost;
        }
        for (int i = 0; i < 100; i++) {
            free(renewed[i]);
            renewed[i] = renew();
        }
        usleep(50000);
    }
    (void)kept;
    return 0;
}
"#;

fn stage() -> Stage {
    let stage = Stage::new(HEAPR);
    let program = stage.compile("leaks", LEAKS, &["-g", "-O1"]);
    let options = ["--snapshot-every", "0.15", "--snapshot-at-exit"];
    stage.heapr(&[&["run", "-q", "-o", "a.heapr"], &options[..], &["--", &program]].concat()).ok();
    stage
}

fn numbers(summary: &Value) -> Vec<u64> {
    summary["snapshots"].as_array().unwrap().iter().filter_map(|one| one["number"].as_u64()).collect()
}

/// Returns the command line's rows with frames in the page's form: `module!symbol`.
fn named(rows: &Value) -> Value {
    let name = |frame: &Value| {
        let module = frame["module"].as_str().map_or("[no module]", |path| path.rsplit('/').next().unwrap());
        match (frame["symbol"].as_str(), frame["offset"].as_u64()) {
            (Some(symbol), _) => format!("{module}!{symbol}"),
            (None, None | Some(0)) => module.to_owned(),
            (None, Some(offset)) => format!("{module}+{offset:#x}"),
        }
    };
    let mut rows = rows.clone();
    for row in rows.as_array_mut().unwrap() {
        let names: Vec<String> = row["frames"].as_array().unwrap().iter().map(name).collect();
        row["frames"] = json!(names);
    }
    rows
}

#[test]
fn snapshots_have_the_numbers_of_the_command_line() {
    let stage = stage();
    let summary = stage.json(&["snapshot", "summary", "a.heapr"]);
    let all = numbers(&summary);
    assert!(all.len() >= 4, "{summary}");
    let viewer = Viewer::start(&stage, &["a.heapr"]);

    // Lists: of the file, and on the timeline.
    let listed = viewer.files()[0]["trace"]["snapshots"].clone();
    assert_eq!(listed, summary["snapshots"]);
    let timeline = viewer.ask("timeline", json!({"file": 0}));
    let fields = ["number", "time_ns", "trigger", "block_bytes", "block_count"];
    assert_eq!(common(&timeline["snapshots"], &fields), common(&summary["snapshots"], &fields));

    // One snapshot: each grouping, sorted, filtered, and by its number.
    let fields = ["frames", "block_bytes", "block_count", "youngest_ns", "mean_age_ns", "oldest_ns"];
    for (by, sort) in [("stacks", "bytes"), ("frames", "count"), ("images", "oldest")] {
        let said = stage.json(&["snapshot", "summary", "a.heapr", &format!("--{by}"), "--sort", sort]);
        let answer = viewer.ask("native/summary", json!({"file": 0, "by": by, "sort": sort}));
        assert_eq!(common(&answer["rows"], &fields), common(&named(&said["rows"]), &fields), "{by}");
        assert_eq!([&answer["total_bytes"], &answer["shown"]], [&said["total_bytes"], &said["shown"]]);
    }
    let second = all[1].to_string();
    let said = stage.json(&["snapshot", "summary", "a.heapr", "--snapshot", &second, "--size", "500", "2K"]);
    let body = json!({"file": 0, "number": all[1], "filter": {"size": ["500", "2K"]}});
    let answer = viewer.ask("native/summary", body);
    assert_eq!(common(&answer["rows"], &fields), common(&named(&said["rows"]), &fields));
    assert!(!answer["rows"].as_array().unwrap().is_empty(), "{answer}");
    // A row opens its stack.
    let id = answer["rows"][0]["id"].clone();
    let stack = viewer.ask("stack", json!({"file": 0, "id": id}));
    assert!(stack.to_string().contains("\"leak\""), "{stack}");

    // Two snapshots: the first and the last but one. With more in between the sums are the same,
    // and each snapshot has its amounts.
    let (first, last) = (all[0], all[all.len() - 2]);
    let words = [first.to_string(), last.to_string()];
    let said = stage.json(&["snapshot", "diff", "a.heapr", "--snapshots", &words[0], &words[1]]);
    let of = |numbers: &[u64]| -> Value {
        numbers.iter().map(|number| json!({"file": 0, "number": number})).collect()
    };
    let answer = viewer.ask("native/diff", json!({"of": of(&[first, last])}));
    let fields = [
        "frames",
        "state",
        "bytes_delta",
        "count_delta",
        "before_bytes",
        "after_bytes",
        "new_bytes",
        "gone_bytes",
    ];
    assert_eq!(common(&answer["rows"], &fields), common(&named(&said["rows"]), &fields));
    assert_eq!(answer["bytes_delta"], said["bytes_delta"]);
    let among = viewer.ask("native/diff", json!({"of": of(&all[..all.len() - 1])}));
    assert_eq!(among["bytes_delta"], said["bytes_delta"]);
    assert_eq!(among["rows"][0]["block_bytes"].as_array().unwrap().len(), all.len() - 1);

    // All snapshots: the leak is the only suspect.
    let said = stage.json(&["snapshot", "suspects", "a.heapr"]);
    let answer = viewer.ask("native/suspects", json!({"files": [0]}));
    let fields = [
        "frames",
        "confidence",
        "bytes_per_hour",
        "growth_bytes",
        "chance",
        "kept_share",
        "oldest_ns",
        "block_bytes",
    ];
    assert_eq!(common(&answer["rows"], &fields), common(&named(&said["suspects"]), &fields));
    assert!(answer["rows"][0]["frames"][0].as_str().unwrap().ends_with("!leak"), "{answer}");

    // Treemap and statistics of a snapshot.
    let map = viewer.ask("native/treemap", json!({"file": 0, "number": first}));
    let whole = viewer.ask("native/summary", json!({"file": 0, "number": first}));
    assert_eq!(map["total"], whole["total_bytes"]);
    let statistics = viewer.ask("native/statistics", json!({"file": 0, "number": first}));
    assert_eq!(statistics["total_bytes"], whole["total_bytes"]);
    let sum: u64 =
        statistics["threads"].as_array().unwrap().iter().filter_map(|row| row["block_bytes"].as_u64()).sum();
    assert_eq!(Some(sum), whole["total_bytes"].as_u64());

    // The views of traces accept a snapshot as a filter.
    let number = first.to_string();
    let said = stage.json(&["report", "a.heapr", "--snapshot", &number, "--totals"]);
    let answer = viewer.ask("report", json!({"file": 0, "filter": {"snapshot": number}}));
    assert_eq!(answer["totals"]["outstanding_bytes"], said["totals"]["outstanding_bytes"]);
    let flame = viewer.ask("flame", json!({"file": 0, "filter": {"snapshot": number}}));
    assert_eq!(flame["total"], answer["totals"]["outstanding_bytes"]);
}

#[test]
fn what_makes_no_sense_of_snapshots_is_refused_in_words() {
    let stage = stage();
    let viewer = Viewer::start(&stage, &["a.heapr"]);
    for (name, body, status, word) in [
        ("native/summary", json!({"file": 0, "number": 99}), 404, "no snapshot 99"),
        ("native/summary", json!({"file": 0, "filter": {"range": ["0", "1s"]}}), 400, "--age"),
        ("native/summary", json!({"file": 0, "filter": {"snapshot": "1"}}), 400, "outside of the filter"),
        ("native/summary", json!({"file": 0, "sort": "size"}), 400, "expected one of `bytes`"),
        ("native/diff", json!({"of": [{"file": 0, "number": 1}]}), 400, "2 to 64"),
        (
            "native/diff",
            json!({"of": [{"file": 0, "number": 1}, {"file": 0, "number": 1}]}),
            400,
            "one and the same",
        ),
        ("native/suspects", json!({"files": [0], "numbers": [1]}), 400, "three or more"),
        ("native/suspects", json!({"files": [0, 0]}), 400, "twice"),
        ("native/other", json!({"file": 0}), 404, "native/other"),
        ("report", json!({"file": 0, "filter": {"snapshot": "99"}}), 400, "no snapshot"),
        ("session/mark", json!({"file": 0, "text": "x"}), 400, "no session"),
    ] {
        let (got, answer) = viewer.reply(name, &body);
        assert_eq!(got, status, "{name} {body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(word), "{name} {body}: {answer}");
    }
}
