//! The line that says what heapr is busy with, and results that no terminal shows.

use std::process::Command;

use crate::stage::{HEAPR, Stage};
use crate::terminal::OnTerminal;

#[test]
fn work_that_takes_long_is_told_on_a_terminal_and_nowhere_else() {
    let stage = Stage::new();
    // Its input does not end: heapr reads for as long as the test looks.
    let script = format!("sleep 1000 | {HEAPR} snapshot summary -");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(stage.folder());
    let terminal = OnTerminal::start(&command, 100, 30);
    terminal.wait_for("heapr: reading snapshots \u{2026} ");
    terminal.wait_for("\r\x1b[Kheapr: reading snapshots");
    let log = stage.argument("said");
    let script = format!("(sleep 4; echo) | {HEAPR} snapshot summary - 2> {log}");
    let outcome = heapr_testkit::run(Command::new("sh").args(["-c", &script]));
    assert_eq!(outcome.status, 2, "an empty snapshot");
    let said = std::fs::read_to_string(log).unwrap();
    assert!(!said.contains("reading snapshots") && !said.contains('\r'), "{said:?}");
}

#[test]
fn bytes_that_are_no_text_are_not_written_to_a_terminal() {
    let stage = Stage::new();
    stage.heapr(&["run", "-q", "-o", "a.heapr", "true"]).ok();
    for words in [
        &["export", "a.heapr", "--to", "pprof"][..],
        &["export", "a.heapr", "--to", "pprof", "-o", "-"],
        &["export", "a.heapr", "--to", "otlp", "-o", "/dev/stdout"],
    ] {
        let mut terminal = OnTerminal::start(&stage.command(words), 100, 30);
        terminal.wait_for("is no text, and a terminal shows none of it");
        assert!(!terminal.wait(), "{words:?}");
    }
    let mut terminal =
        OnTerminal::start(&stage.command(&["export", "a.heapr", "--to", "collapsed", "-o", "-"]), 100, 30);
    assert!(terminal.wait(), "{}", terminal.shown());
    let piped = format!("{HEAPR} export a.heapr --to pprof -o - | head -c 2 | od -An -tx1");
    let outcome =
        heapr_testkit::run(Command::new("sh").args(["-c", &piped]).current_dir(stage.folder())).ok();
    assert_eq!(outcome.stdout.trim(), "1f 8b", "gzip");
}
