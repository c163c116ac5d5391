//! `heapr explain FILE`: resident memory in a recording or a saved answer.

use heapr_testkit::{Outcome, run, wait_until};
use serde_json::Value;

use crate::explained::{Waiting, explain};
use crate::header::Header;
use crate::victim_build::{build, sources};

fn heapr(folder: &std::path::Path, words: &[&str]) -> Outcome {
    run(crate::recording::heapr(folder, words).env("XDG_RUNTIME_DIR", folder))
}

fn assert_moments_add_up(answer: &Value) -> &Vec<Value> {
    let moments = answer["moments"].as_array().unwrap();
    for moment in moments {
        let lines = moment["lines"].as_array().unwrap();
        let sum: u64 = lines.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, moment["rss_bytes"].as_u64().unwrap(), "{moment}");
    }
    assert_eq!(answer["resident"]["rss_bytes"], moments.last().unwrap()["rss_bytes"]);
    moments
}

#[test]
fn a_kept_answer_is_read_again_and_compared_with_another() {
    let mut victim = Waiting::start("resident/fragmented.c", &["20000", "1000", "400"]);
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before.json"), folder.path().join("after.json"));
    let pid = victim.pid();
    std::fs::write(&before, explain(pid, &["--deep"]).to_string()).unwrap();
    let (_, given_back) = victim.ask("trim");
    std::fs::write(&after, explain(pid, &["--deep"]).to_string()).unwrap();
    let words = ["explain", after.to_str().unwrap(), "--diff", before.to_str().unwrap()];
    let told = heapr(folder.path(), &words);
    assert_eq!(told.status, 0, "{}", told.stderr);
    assert!(told.stdout.contains(&format!("resident of process {pid} fragmented")), "{}", told.stdout);
    assert!(told.stdout.contains("since then:"), "{}", told.stdout);
    let told = heapr(folder.path(), &[&words[..], &["--format", "json"]].concat());
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(assert_moments_add_up(&answer).len(), 1);
    let since = &answer["resident"]["since"];
    let lines = since["lines"].as_array().unwrap();
    let whole = lines.iter().find(|line| line["class"] == "free_whole_pages").unwrap();
    assert_eq!(whole["change_bytes"].as_i64(), Some(-(given_back as i64)), "{since}");
}

#[test]
fn a_recording_tells_what_was_resident_at_each_of_its_moments() {
    let header = Header::read(&sources().join("resident/fragmented.c"));
    let program = build("resident/fragmented.c", &header, &["-O1".to_owned()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    let file = file.to_str().unwrap();
    // The program's input ends when the other end of the pipe does.
    let script = format!("tail -f /dev/null | {} 20000 1000 1", program.display());
    let started = heapr(folder.path(), &["start", "held", "-o", file, "--", "sh", "-c", &script]);
    assert_eq!(started.status, 0, "{}", started.stderr);
    // Each call takes a snapshot.
    let recorded: u64 = wait_until("it has made its blocks", || {
        let told = heapr(folder.path(), &["explain", "held", "--format", "json"]);
        let answer: Value = serde_json::from_str(&told.stdout).ok()?;
        let recorded = &answer["resident"]["recorded"];
        (recorded["count"].as_u64()? >= 20_000).then_some(recorded["bytes"].as_u64()?)
    });
    assert_eq!(heapr(folder.path(), &["stop", "held"]).status, 0);
    let told = heapr(folder.path(), &["explain", file, "--format", "json"]);
    assert_eq!(told.status, 0, "{}", told.stderr);
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    let moments = assert_moments_add_up(&answer);
    let live = |moment: &Value| {
        let lines = moment["lines"].as_array().unwrap();
        lines.iter().find(|line| line["class"] == "live_blocks").unwrap()["bytes"].as_u64().unwrap()
    };
    let snapshot = moments.iter().rfind(|moment| moment["name"].as_str().unwrap().contains("explain"));
    assert_eq!(live(snapshot.unwrap()), recorded, "{answer}");
    let text = heapr(folder.path(), &["explain", file]).stdout;
    let classes = ["all of it:", "live malloc blocks", "heapr itself"];
    assert!(classes.iter().all(|class| text.contains(class)), "{text}");
}
