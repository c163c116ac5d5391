//! `heapr top`: right against a report, on a terminal, and without anything left behind.

use std::fs;
use std::process::Child;

use serde_json::Value;

use crate::stage::{HEAPR, Stage};
use crate::terminal::OnTerminal;

/// Program with known blocks, which are live until the file `argv[1]` exists.
const KNOWN: &str = r#"
#include <stdlib.h>
#include <unistd.h>
static void *kept[400];
__attribute__((noinline)) static void *hold_small(void) { return malloc(100); }
__attribute__((noinline)) static void *hold_large(void) { return malloc(70000); }
__attribute__((noinline)) static void *pass(void) { return malloc(33); }
int main(int count, char **words) {
    for (int i = 0; i < 300; i++) kept[i] = hold_small();
    for (int i = 300; i < 317; i++) kept[i] = hold_large();
    for (int i = 0; i < 1000; i++) free(pass());
    while (access(words[1], F_OK) != 0) usleep(10000);
    return kept[0] == NULL || count < 2;
}
"#;

fn top_on_terminal(stage: &Stage, words: &[&str]) -> OnTerminal {
    let mut command = stage.command(&[&["top"], words].concat());
    command.env("TMPDIR", stage.folder()).env_remove("NO_COLOR");
    OnTerminal::start(&command, 100, 30)
}

/// Blocks of a function in the text of `heapr top --once`: the third column.
fn blocks(text: &str, function: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(&format!("{function} [")))?;
    // "29.3 KiB 0 B 300 ? hold_small [known]": amounts in bytes have a unit.
    let words: Vec<&str> = line.split_whitespace().collect();
    let after_live = 2;
    let after_growth = if words[after_live] == "?" { after_live + 1 } else { after_live + 2 };
    words[after_growth].replace(',', "").parse().ok()
}

/// True if heapr's processes of this stage have ended and left no file.
fn is_clean(stage: &Stage) -> bool {
    let files = fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let recordings = files.filter(|name| name.to_string_lossy().starts_with("heapr.top."));
    stage.processes().is_empty() && recordings.count() == 0
}

/// Checks that the program runs on, and that it can be attached to anew.
fn is_let_go(stage: &Stage, child: &mut Child) {
    heapr_testkit::wait_until("nothing is left", || is_clean(stage).then_some(()));
    assert_eq!(child.try_wait().unwrap(), None, "the program runs on");
    let pid = child.id().to_string();
    stage.heapr(&["start", "again", "-q", "-o", "again.heapr", "--pid", &pid]).ok();
    stage.heapr(&["cancel", "again"]).ok();
}

#[test]
fn figures_are_those_of_a_report_of_the_same_session() {
    let stage = Stage::new();
    let program = stage.compile("known", KNOWN, &["-g", "-O1", "-fno-builtin"]);
    stage.heapr(&["start", "known", "-q", "-o", "a.heapr", "--", &program, &stage.argument("release")]).ok();
    stage.wait_for("known", "all blocks", |status| status["event_count"].as_u64() >= Some(2317));
    stage.heapr(&["update", "known", "--flush"]).ok();
    let report = stage.json(&["report", "a.heapr", "--frames", "--totals"]);
    let shown = stage.heapr(&["top", "known", "--once"]).ok().stdout;
    assert_eq!(blocks(&shown, "hold_small"), Some(300), "{shown}");
    assert_eq!(blocks(&shown, "hold_large"), Some(17), "{shown}");
    assert_eq!(blocks(&shown, "pass"), Some(0), "{shown}");
    let count = report["totals"]["outstanding_count"].as_u64().unwrap();
    assert!(shown.contains(&format!("in {count} blocks")), "{shown}");
    let groups: &Vec<Value> = report["groups"].as_array().unwrap();
    let reported = |function: &str| {
        let group = groups.iter().find(|group| group["frames"][0]["symbol"] == *function).unwrap();
        group["outstanding_count"].as_u64()
    };
    assert_eq!([reported("hold_small"), reported("hold_large")], [Some(300), Some(17)]);
    let filtered = stage.heapr(&["top", "known", "--once", "--size", "1K", "1M"]).ok().stdout;
    assert!(filtered.contains("in 17 blocks") && blocks(&filtered, "hold_small").is_none(), "{filtered}");
    stage.heapr(&["status", "known"]).ok();
    stage.heapr(&["top", "known", "--once", "--all"]).fails_with(&["records it already"]);
    stage.heapr(&["top", "no-such-session", "--once"]).fails_with(&["no-such-session"]);
    stage.release();
    stage.heapr(&["cancel", "known"]);
}

#[test]
fn a_process_is_attached_to_and_let_go_by_a_key() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let mut top = top_on_terminal(&stage, &[&child.id().to_string(), "--all"]);
    top.wait_for("steady_alloc");
    let session = format!("top-{}", child.id());
    assert_eq!(stage.status(&session)["processes"][0]["pid"], child.id());
    top.type_keys("q");
    assert!(top.wait(), "{}", top.shown());
    assert!(top.shown().contains("\x1b[?1049l"), "the first screen is back");
    is_let_go(&stage, &mut child);
    stage.release();
    child.wait().unwrap();
}

#[test]
fn nothing_is_left_when_it_is_killed_or_loses_its_terminal() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pid = child.id().to_string();
    for signal in [Some("-KILL"), Some("-TERM"), None] {
        let mut top = top_on_terminal(&stage, &[&pid]);
        top.wait_for("OWN FUNCTION");
        match signal {
            Some(signal) => top.signal(signal),
            None => top.lose(),
        }
        top.wait();
        is_let_go(&stage, &mut child);
    }
    stage.release();
    child.wait().unwrap();
}

#[test]
fn the_loss_of_a_terminal_that_is_not_the_controlling_one_ends_it() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pid = child.id().to_string();
    let top = stage.command(&["top", &pid, "--all"]);
    let mut command = std::process::Command::new("setsid");
    command.arg("--wait").arg(top.get_program()).args(top.get_args());
    for (name, value) in top.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.env("TMPDIR", stage.folder()).current_dir(stage.folder());
    let mut terminal = OnTerminal::start(&command, 100, 30);
    terminal.wait_for("OWN FUNCTION");
    terminal.lose();
    terminal.wait();
    is_let_go(&stage, &mut child);
    stage.release();
    child.wait().unwrap();
}

#[test]
fn it_stops_and_goes_on() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let mut top = top_on_terminal(&stage, &[&child.id().to_string()]);
    top.wait_for("OWN FUNCTION");
    top.type_keys("\x1a");
    let state = format!("/proc/{}/stat", top.pid);
    let is_stopped = || fs::read_to_string(&state).ok()?.contains(") T ").then_some(());
    heapr_testkit::wait_until("it has stopped", is_stopped);
    // The first screen is back meanwhile.
    top.wait_for("\x1b[?1049l");
    top.clear();
    top.signal("-CONT");
    top.wait_for("OWN FUNCTION");
    top.type_keys("q");
    assert!(top.wait());
    is_let_go(&stage, &mut child);
    stage.release();
    child.wait().unwrap();
}

#[test]
fn without_colours_and_without_a_terminal_it_is_text() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pid = child.id().to_string();
    let mut command = stage.command(&["top", &pid]);
    command.env("TMPDIR", stage.folder()).env("NO_COLOR", "1");
    let mut top = OnTerminal::start(&command, 80, 24);
    top.wait_for("steady_alloc");
    top.type_keys("q");
    assert!(top.wait());
    let colour = |number: char| format!("\x1b[3{number}m");
    assert!(('1'..='7').all(|number| !top.shown().contains(&colour(number))), "{:?}", top.shown());
    let mut command = stage.command(&["top", &pid, "--once", "-o", "kept.heapr"]);
    let shown = heapr_testkit::run(command.env("TERM", "dumb")).ok();
    assert!(shown.stdout.contains("steady_alloc") && !shown.stdout.contains('\x1b'), "{}", shown.stdout);
    assert!(shown.stderr.contains("kept.heapr"), "{}", shown.stderr);
    stage.heapr(&["report", "kept.heapr", "--totals"]).ok();
    is_let_go(&stage, &mut child);
    let words = ["top", "x", "--once", HEAPR];
    stage.heapr(&words).fails_with(&["unexpected argument"]);
    stage.release();
    child.wait().unwrap();
}
