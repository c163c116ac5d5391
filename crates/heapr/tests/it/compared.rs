//! `heapr diff` of two recordings, held against the reports of both.

use std::path::Path;
use std::process::Command;

use heapr_testkit::run;
use serde_json::Value;

/// Keeps blocks that it makes on one line, and on a second one where it is told to.
const SOURCE: &str = r"
#include <stdlib.h>
void *volatile kept;
static void cache(int twice) {
    kept = malloc(3000);
    if (twice)
        kept = malloc(500);
}
__attribute__((noinline)) static void fill(int count, int twice) {
    for (int i = 0; i < count; i++) cache(twice);
}
int main(int count, char **words) {
    fill(atoi(words[1]), count > 2);
    return 0;
}
";

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.c"), SOURCE).unwrap();
        let mut compiler = Command::new("gcc");
        compiler.current_dir(folder.path()).args(["-g", "-O0", "program.c", "-o", "program"]);
        assert!(compiler.status().unwrap().success());
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn heapr(&self, words: &[&str]) -> String {
        run(crate::recording::heapr(self.path(), words).env("XDG_CACHE_HOME", self.path())).ok().stdout
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.heapr(words)).unwrap()
    }

    /// The frames of the only group that has `cache`.
    fn frames(&self, words: &[&str]) -> Vec<Value> {
        let told = self.json(words);
        let has_it = |group: &&Value| {
            let frames = group["frames"].as_array().unwrap();
            frames.iter().any(|frame| frame["symbol"] == "cache")
        };
        let found: Vec<&Value> = told["groups"].as_array().unwrap().iter().filter(has_it).collect();
        let [group] = found.as_slice() else { panic!("one group with cache: {told}") };
        group["frames"].as_array().unwrap().clone()
    }
}

#[test]
fn one_trace_alone_is_told_what_to_type() {
    let stage = Stage::new();
    let words = ["diff", "a.heapr", "--by", "function"];
    run(crate::recording::heapr(stage.path(), &words).env("XDG_CACHE_HOME", stage.path()))
        .fails_with(&["a.heapr is one trace", "heapr diff a.heapr AFTER.heapr"]);
}

#[test]
fn frames_of_a_difference_are_objects_as_in_a_report() {
    let stage = Stage::new();
    for (file, words) in [("a.heapr", &["10"][..]), ("b.heapr", &["30"]), ("c.heapr", &["30", "twice"])] {
        stage.heapr(&[&["run", "--quiet", "-o", file, "--", "./program"], words].concat());
    }
    let json = ["--format", "json"];
    let reported = stage.frames(&[&["report", "b.heapr", "--stacks", "so"][..], &json].concat());
    assert!(reported[0]["line"].as_u64().is_some(), "{reported:?}");
    let compared = stage.frames(&[&["diff", "a.heapr", "b.heapr"][..], &json].concat());
    assert_eq!(compared, reported);
    let moments = ["diff", "b.heapr", "b.heapr", "--before-at", "0s", "--after-at", "peak"];
    assert_eq!(stage.frames(&[&moments[..], &json].concat()), reported);

    // Two lines of one function are one stack of a difference: neither line is told.
    let lines = stage.frames(&[&["diff", "a.heapr", "c.heapr"][..], &json].concat());
    assert!(lines[0]["line"].is_null() && lines[0]["file"] == reported[0]["file"], "{lines:?}");
    assert_eq!(lines[1], reported[1]);

    let frame = stage.frames(&[&["diff", "a.heapr", "b.heapr", "--frames"][..], &json].concat());
    assert_eq!(frame, reported[..1]);
    let images = stage.json(&[&["diff", "a.heapr", "b.heapr", "--images"][..], &json].concat());
    let image = &images["groups"][0]["frames"][0];
    assert_eq!((&image["module"], &image["symbol"]), (&reported[0]["module"], &Value::Null), "{images}");
}
