//! Recorder and programs killed at any moment: the program is unharmed, the file opens, and
//! leftovers do not block the next session.

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use heapr_testkit::wait_until;

use crate::stage::Stage;

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
}

#[test]
fn a_killed_recorder_leaves_a_file_that_opens_and_a_name_that_is_free() {
    let stage = Stage::new();
    for round in 0..4_u64 {
        let file = format!("killed{round}.heapr");
        stage.start_steady("again", &["-o", &file, "--flush-timer", "0.02"]).ok();
        let status =
            stage.wait_for("again", "the first events", |status| status["event_count"].as_u64() > Some(2000));
        // The file holds what was flushed. Each round kills at another moment.
        stage.wait_for_events_in(&file);
        std::thread::sleep(Duration::from_millis(37 * round));
        kill(&status["recorder_pid"].to_string());
        // A busy machine runs the threads of a killed process to their ends late.
        wait_until("the killed recorder holds its name no more", || {
            let lock = File::open(stage.path("heapr/again.lock")).ok()?;
            lock.try_lock_shared().is_ok().then_some(())
        });
        let info = stage.json(&["info", &file]);
        assert_eq!(info["is_complete"], false);
        assert!(info["event_count"].as_u64() > Some(0), "{info}");
        stage.heapr(&["report", &file, "--stacks"]).ok();
    }
    // Once the killed recorders have ended, any command clears their leftovers.
    wait_until("the killed recorder is gone", || {
        stage.heapr(&["status"]).stdout.contains("no session is running").then_some(())
    });
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}

#[test]
fn a_name_whose_holder_does_not_answer_is_told_of_and_free_once_it_is_gone() {
    let stage = Stage::new();
    stage.start_steady("first", &["-o", "first.heapr"]).ok();
    stage.heapr(&["stop", "first", "-q"]).ok();
    // State of a killed recorder with a thread that has not run since.
    let dying = File::create(stage.path("heapr/dying.lock")).unwrap();
    dying.lock().unwrap();
    File::create(stage.path("heapr/dying.sock")).unwrap();
    stage.heapr(&["status"]).fails_with(&["session dying does not answer"]);
    stage.start_steady("dying", &["-o", "a.heapr"]).fails_with(&["a session named dying exists"]);
    // The recorder goes away while the next one waits for it.
    std::fs::remove_file(stage.path("heapr/dying.sock")).unwrap();
    let listener = UnixListener::bind(stage.path("heapr/dying.sock")).unwrap();
    let program = stage.steady(200);
    let arguments = ["start", "dying", "-o", "a.heapr", "--"].map(str::to_owned).into_iter().chain(program);
    let arguments: Vec<String> = arguments.collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut next = stage.command(&words).spawn().unwrap();
    listener.accept().unwrap();
    drop(listener);
    drop(dying);
    assert!(next.wait().unwrap().success());
    assert!(stage.heapr(&["status"]).ok().stdout.contains("dying"));
}

/// Returns the processor time of a process, in hundredths of a second.
fn processor_ticks(pid: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Starts a session on a program whose status and output the test sees itself.
fn start_with_visible_program(stage: &Stage, rest_us: u32) -> Child {
    let program = stage.steady(rest_us);
    // The recorder ends whether its program was killed or not; `run` in a group of its own shows
    // both.
    let mut run = stage.command(&["run", "-q", "-o", "run.heapr", "--flush-timer", "0.02", "--"]);
    run.args(&program).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_program_runs_to_its_right_end_after_its_recorder_was_killed() {
    let stage = Stage::new();
    let mut heapr = start_with_visible_program(&stage, 0);
    stage.wait_for_events_in("run.heapr");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", heapr.id())).unwrap();
    let program = children.trim().to_owned();
    kill(&heapr.id().to_string());
    heapr.wait().unwrap();
    // The program allocates without rest and continues, although its full buffers are not emptied.
    let before = processor_ticks(&program);
    wait_until("it has run on for a while", || (processor_ticks(&program) > before + 30).then_some(()));
    stage.release();
    wait_until("the program ends", || {
        (!std::path::Path::new(&format!("/proc/{program}")).exists()).then_some(())
    });
    let mut text = String::new();
    std::io::Read::read_to_string(&mut heapr.stdout.take().unwrap(), &mut text).unwrap();
    assert!(text.split_whitespace().next().is_some_and(|made| made.parse::<u64>().is_ok()), "{text:?}");
    let info = stage.json(&["info", "run.heapr"]);
    assert!(info["event_count"].as_u64() > Some(0));
}

#[test]
fn a_killed_program_leaves_a_session_that_goes_on() {
    let stage = Stage::new();
    stage.start_steady("target", &["-o", "t.heapr"]).ok();
    let status =
        stage.wait_for("target", "the first events", |status| status["event_count"].as_u64() > Some(2000));
    kill(&status["processes"][0]["pid"].to_string());
    stage.wait_for("target", "the program's end", |status| status["live_process_count"] == 0);
    let stopped = stage.heapr(&["stop", "target"]).ok();
    assert!(stopped.stderr.contains("killed by signal 9"), "{}", stopped.stderr);
    assert_eq!(stage.json(&["info", "t.heapr"])["is_complete"], true);
}

#[test]
fn a_start_that_is_killed_leaves_either_a_session_or_nothing() {
    let stage = Stage::new();
    for round in 0..8_u64 {
        let program = stage.steady(200);
        let mut start = stage.command(&["start", "cut", "-q", "-f", "-o", "cut.heapr", "--"]);
        let mut start = start.args(&program).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 4));
        let _ = start.kill();
        start.wait().unwrap();
        // The recorder decides: a session answers, or all of it has ended.
        wait_until("there is a session or nothing", || {
            let has_cancelled = stage.heapr(&["cancel", "cut"]).status == 0;
            (has_cancelled || stage.processes().is_empty()).then_some(())
        });
        assert_eq!(stage.runtime_files(), Vec::<String>::new(), "round {round}");
    }
    stage.start_steady("cut", &["-f", "-o", "cut.heapr"]).ok();
}

#[test]
fn a_killed_recorder_sets_the_processes_free_that_it_had_attached_to() {
    let stage = Stage::new();
    // Without rest: the program's buffers are full within a moment.
    let mut child = stage.spawn_steady(0);
    let pid = child.id().to_string();
    for on_full in ["block", "drop"] {
        let file = format!("{on_full}.heapr");
        stage
            .heapr(&["start", "att", "-o", &file, "--max-buffers", "32", "--on-full", on_full, "--pid", &pid])
            .ok();
        let status =
            stage.wait_for("att", "the first events", |status| status["event_count"].as_u64() > Some(10_000));
        kill(&status["recorder_pid"].to_string());
        assert!(stage.json(&["info", &file])["event_count"].as_u64().is_some());
        // The next session can attach to the program and traces it.
        wait_until("it is attached to again", || {
            let outcome = stage.heapr(&["start", "next", "-f", "-o", "next.heapr", "--pid", &pid]);
            (outcome.status == 0).then_some(())
        });
        stage.wait_for("next", "events again", |status| status["event_count"].as_u64() > Some(10_000));
        stage.heapr(&["stop", "next", "-q"]).ok();
    }
    stage.release();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}
