//! `heapr view --static`: one page with the server's answers, bounded, private, without references
//! to other files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use heapr_testkit::Stage;
use serde_json::{Value, json};

use crate::HEAPR;
use crate::viewer::Viewer;

/// Allocates in a few functions and leaks in one.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void *leak(void) { return malloc(1000); }
__attribute__((noinline)) static void *churn(void) { return malloc(300); }
int main(void) {
    for (int round = 0; round < 300; round++) {
        void *volatile lost = leak();
        (void)lost;
        for (int i = 0; i < 20; i++)
            free(churn());
        usleep(1000);
    }
    return 0;
}
"#;

fn stage() -> Stage {
    let stage = Stage::new(HEAPR);
    let program = stage.compile("program", PROGRAM, &["-g", "-O1"]);
    for name in ["a.heapr", "b.heapr"] {
        stage.heapr(&["run", "-q", "--snapshot-every", "0.1", "-o", name, "--", &program]).ok();
    }
    stage
}

/// Returns the recorded answers, as a browser would unpack them.
fn answers(page: &str) -> BTreeMap<String, Value> {
    let start = page.find("data-encoding=\"gzip+base64\">").unwrap() + "data-encoding=\"gzip+base64\">".len();
    let text = &page[start..start + page[start..].find('<').unwrap()];
    let mut unpack = Command::new("sh")
        .args(["-c", "base64 -d | gzip -dc"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, text) = (unpack.stdin.take().unwrap(), text.to_owned());
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, text.as_bytes()));
    let output = unpack.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_page_holds_the_answers_of_the_server_and_refers_to_nothing() {
    let stage = stage();
    stage.heapr(&["view", "--static", "out.html", "a.heapr", "b.heapr"]).ok();
    let path = stage.path("out.html");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let page = fs::read_to_string(&path).unwrap();
    for reference in ["src=\"http", "href=\"http", "<link", "src=\"app.js"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
    let recorded = answers(&page);
    let viewer = Viewer::start(&stage, &["a.heapr", "b.heapr"]);
    let mut compared = 0;
    for (key, answer) in &recorded {
        let Some((path, body)) = key.split_once(' ') else { continue };
        let name = path.strip_prefix("/api/").unwrap();
        // The amounts are not part of the key: lists whose length they do not change must be equal.
        if !["types", "histograms", "leaks", "native/suspects", "native/statistics", "frame"].contains(&name)
        {
            continue;
        }
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(*answer, viewer.ask(name, body), "{key}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
    for key in [
        r#"/api/report {"by":"stacks","file":0,"sort":"so"}"#,
        r#"/api/flame {"direction":"top-down","file":1,"value":"peak_bytes"}"#,
        r#"/api/spans {"file":1}"#,
        r#"/api/timeline {"by":"image","file":0,"value":"bytes"}"#,
        r#"/api/diff {"after":{"file":1},"before":{"file":0},"by":"stacks","sort":"so"}"#,
    ] {
        assert!(recorded.contains_key(key), "{key} is not among {:?}", recorded.keys());
    }
    // The server shows source lines if the source exists; a static page holds nothing of other
    // files.
    let stacks: Vec<_> = recorded.iter().filter(|(key, _)| key.starts_with("/api/stack ")).collect();
    let has_source =
        |answer: &Value| answer["frames"].as_array().unwrap().iter().any(|frame| !frame["source"].is_null());
    assert!(!stacks.is_empty() && !stacks.iter().any(|(_, answer)| has_source(answer)));
    let mut shown = stacks.iter().map(|(key, _)| {
        let mut body: Value = serde_json::from_str(key.split_once(' ').unwrap().1).unwrap();
        body["source_lines"] = json!(2);
        viewer.ask("stack", body)
    });
    assert!(shown.any(|answer| has_source(&answer)), "no stack has a source");
    // Its author may want the source of the program's own frames.
    stage.heapr(&["view", "--static", "sources.html", "--sources", "a.heapr"]).ok();
    let with_sources = answers(&fs::read_to_string(stage.path("sources.html")).unwrap());
    let mut stacks = with_sources.iter().filter(|(key, _)| key.starts_with("/api/stack "));
    assert!(stacks.any(|(_, answer)| has_source(answer)), "no stack has a source");
    let files = &recorded["/api/files"];
    assert_eq!(files["static"]["left_out"], json!([]));
    assert!(files["files"][0]["trace"]["snapshots"][0]["number"].is_u64());
}

#[test]
fn a_page_that_would_be_too_large_leaves_out_the_least() {
    let stage = stage();
    let output = stage
        .heapr(&["view", "--static", "out.html", "--max-size", "600K", "a.heapr", "b.heapr"])
        .ok()
        .stdout;
    assert_eq!(output, "");
    let page = fs::read_to_string(stage.path("out.html")).unwrap();
    assert!(page.len() <= 600 << 10, "{}", page.len());
    let recorded = answers(&page);
    assert!(recorded.contains_key(r#"/api/report {"by":"stacks","file":0,"sort":"so"}"#));
    let whole = stage.heapr(&["view", "--static", "whole.html", "a.heapr", "b.heapr"]).ok().stdout;
    assert_eq!(whole, "");
    let whole = answers(&fs::read_to_string(stage.path("whole.html")).unwrap());
    assert!(whole.len() >= recorded.len());
    assert_eq!(whole.len() == recorded.len(), recorded["/api/files"]["static"]["left_out"] == json!([]));
}

#[test]
fn a_page_replaces_nothing_unless_it_is_told_to() {
    let stage = stage();
    fs::write(stage.path("there.html"), "mine").unwrap();
    stage.heapr(&["view", "--static", "there.html", "a.heapr"]).fails_with(&["exists"]);
    assert_eq!(fs::read_to_string(stage.path("there.html")).unwrap(), "mine");
    stage.heapr(&["view", "--static", "there.html", "-f", "a.heapr"]).ok();
    fs::write(stage.path("bad.heapr"), "no trace").unwrap();
    stage.heapr(&["view", "--static", "no.html", "bad.heapr"]).fails_with(&[]);
    assert!(!stage.path("no.html").exists(), "nothing is left of a page that failed");
    stage.heapr(&["view", "--no-open", "bad.heapr"]).fails_with(&["bad.heapr"]);
    stage.heapr(&["view", "--no-open", "/bin/ls"]).fails_with(&["/bin/ls", "not a heapr trace"]);
}
