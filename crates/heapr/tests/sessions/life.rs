//! Life of a session from start to stop.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use crate::stage::Stage;

#[test]
fn a_session_records_a_program_until_it_is_stopped() {
    let stage = Stage::new();
    stage.start_steady("web", &[]).ok();
    let status =
        stage.wait_for("web", "the first events", |status| status["event_count"].as_u64() > Some(5000));
    assert_eq!(status["state"], "recording");
    assert_eq!(status["live_process_count"], 1);
    assert_eq!(status["events_lost"], 0);
    assert_eq!(status["buffer_count"], 1024);
    assert!(status["live_bytes"].as_u64() > Some(100_000), "{status}");
    stage.heapr(&["mark", "web", "half way"]).ok();
    assert_eq!(stage.status("web")["marker_count"], 1);
    stage.release();
    stage.wait_for("web", "the program's end", |status| status["live_process_count"] == 0);
    let stopped = stage.heapr(&["stop", "web", "-o", "trace.heapr"]).ok();
    assert!(stopped.stderr.contains("events lost   0"), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("largest outstanding"), "{}", stopped.stderr);
    assert_eq!(fs::metadata(stage.path("trace.heapr")).unwrap().permissions().mode() & 0o777, 0o600);

    let info = stage.json(&["info", "trace.heapr"]);
    assert_eq!(info["is_complete"], true);
    assert_eq!(info["session"]["name"], "web");
    assert_eq!(info["markers"][0]["text"], "half way");
    assert_eq!(info["processes"][0]["exit_code"], 7, "{}", info["processes"][0]);
    let report = stage.json(&["report", "trace.heapr", "--stacks", "--require-frames", "steady_alloc"]);
    assert_eq!(report["groups"][0]["outstanding_count"], 1000, "{report}");
    // Only the traces are left.
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}

#[test]
fn several_sessions_run_side_by_side_under_their_names() {
    let stage = Stage::new();
    stage.start_steady("one", &[]).ok();
    stage.start_steady("two", &[]).ok();
    let list = stage.heapr(&["status"]).ok().stdout;
    assert!(list.contains("one") && list.contains("two"), "{list}");
    stage.heapr(&["stop"]).fails_with(&["which session", "one, two"]);
    stage.heapr(&["stop", "one", "-q"]).ok();
    // A single session is left, and needs no name.
    stage.heapr(&["mark", "only one"]).ok();
    stage.heapr(&["stop", "-q"]).ok();
    assert!(stage.heapr(&["status"]).ok().stdout.contains("no session is running"));
    // The name is free again.
    stage.start_steady("one", &[]).ok();
}

#[test]
fn cancel_leaves_nothing() {
    let stage = Stage::new();
    stage.start_steady("brief", &["-o", "brief.heapr"]).ok();
    stage.wait_for("brief", "the first events", |status| status["event_count"].as_u64() > Some(0));
    assert!(stage.path("brief.heapr").exists());
    stage.heapr(&["cancel", "brief"]).ok();
    assert!(!stage.path("brief.heapr").exists());
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}

#[test]
fn a_session_survives_the_terminal_that_it_was_started_from() {
    let stage = Stage::new();
    // Kills a shell's whole process group, as closing its terminal does.
    let steady = stage.steady(200).join(" ");
    let script = format!("{} start kept -q -- {steady} >/dev/null; kill -HUP 0", crate::stage::HEAPR);
    let mut shell = Command::new("setsid");
    shell
        .args(["-w", "sh", "-c", &script])
        .env("HEAPR_RUNTIME_DIR", stage.path(""))
        .env("XDG_RUNTIME_DIR", stage.path(""))
        .current_dir(stage.path(""));
    heapr_testkit::run(&mut shell);
    let status = stage.status("kept");
    let before = status["event_count"].as_u64();
    stage.wait_for("kept", "more events", |status| status["event_count"].as_u64() > before);
    assert_eq!(stage.status("kept")["live_process_count"], 1);
    stage.heapr(&["stop", "kept", "-q"]).ok();
}

#[test]
fn a_recorder_that_is_told_to_end_by_signal_completes_the_file() {
    let stage = Stage::new();
    stage.start_steady("signalled", &["-o", "signalled.heapr"]).ok();
    let status =
        stage.wait_for("signalled", "the first events", |status| status["event_count"].as_u64() > Some(0));
    let recorder = status["recorder_pid"].to_string();
    assert!(Command::new("kill").args(["-TERM", &recorder]).status().unwrap().success());
    heapr_testkit::wait_until("the recorder has ended", || stage.runtime_files().is_empty().then_some(()));
    assert_eq!(stage.json(&["info", "signalled.heapr"])["is_complete"], true);
}

#[test]
fn which_events_carry_stacks_can_be_changed_while_a_session_runs() {
    let stage = Stage::new();
    stage.start_steady("stacks", &["-o", "stacks.heapr", "--stacks", "none"]).ok();
    stage.wait_for("stacks", "the first events", |status| status["event_count"].as_u64() > Some(2000));
    stage.heapr(&["update", "stacks", "--stacks", "alloc", "--flush"]).ok();
    let status = stage.status("stacks");
    assert_eq!(status["stacks"], "alloc");
    let before = status["event_count"].as_u64().unwrap();
    stage.wait_for("stacks", "more events", |status| status["event_count"].as_u64() > Some(before + 4000));
    stage.heapr(&["stop", "stacks", "-q"]).ok();
    let report = stage.json(&["report", "stacks.heapr", "--stacks"]);
    let groups = report["groups"].as_array().unwrap();
    let count_of = |has_frames: bool| {
        let groups =
            groups.iter().filter(|group| group["frames"].as_array().unwrap().is_empty() != has_frames);
        groups.map(|group| group["total_count"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(count_of(true) > 1000 && count_of(false) > 900, "{report}");
}

#[test]
fn a_flushed_session_can_be_read_while_it_runs() {
    let stage = Stage::new();
    stage.start_steady("early", &["-o", "early.heapr", "--flush-timer", "1000"]).ok();
    stage.wait_for("early", "the first events", |status| status["event_count"].as_u64() > Some(5000));
    stage.heapr(&["update", "early", "--flush"]).ok();
    let info = stage.json(&["info", "early.heapr"]);
    assert_eq!(info["is_complete"], false);
    assert!(info["event_count"].as_u64() > Some(4000), "{}", info["event_count"]);
    stage.heapr(&["cancel", "early"]).ok();
}

#[test]
fn the_recording_ends_when_the_file_is_full_and_the_program_runs_on() {
    let stage = Stage::new();
    let steady = stage.steady(0);
    let mut arguments = vec!["start", "full", "-o", "full.heapr", "--max-file", "1M", "--"];
    arguments.extend(steady.iter().map(String::as_str));
    stage.heapr(&arguments).ok();
    let status = stage.wait_for("full", "the full file", |status| status["state"] == "full");
    assert!(status["live_process_count"] == 1, "the program runs on: {status}");
    stage.heapr(&["stop", "full", "-q"]).ok();
    let info = stage.json(&["info", "full.heapr"]);
    assert_eq!(info["is_complete"], true);
    // However many events waited in the buffers by then.
    let bytes = info["file_bytes"].as_u64().unwrap();
    assert!((1 << 20..3 << 19).contains(&bytes), "{bytes} bytes");
    assert_eq!(info["loss"]["events_lost"], 0, "{info}");
    let events = info["event_count"].as_u64().unwrap();
    let report = stage.json(&["report", "full.heapr", "--totals", "--size", "1", "1000000"]);
    let of_totals = |name: &str| report["totals"][name].as_u64().unwrap();
    assert_eq!(of_totals("alloc_count") + of_totals("free_count"), events, "{report}");
    assert!(report["warnings"][0].as_str().unwrap().contains("it was full at"), "{report}");
}

#[test]
fn a_circular_session_keeps_the_newest_events_and_all_that_is_live() {
    let stage = Stage::new();
    let steady = stage.steady(0);
    let mut arguments = vec!["start", "ring", "-o", "ring.heapr", "--memory", "1M", "--"];
    arguments.extend(steady.iter().map(String::as_str));
    stage.heapr(&arguments).ok();
    let status =
        stage.wait_for("ring", "dropped events", |status| status["events_dropped"].as_u64() > Some(100_000));
    assert_eq!(status["mode"], "memory");
    // An event has 5 to 10 bytes in a file: most are not there.
    assert!(status["file_bytes"].as_u64() < status["event_count"].as_u64(), "{status}");
    stage.release();
    stage.wait_for("ring", "the program's end", |status| status["live_process_count"] == 0);
    let stopped = stage.heapr(&["stop", "ring"]).ok();
    assert!(stopped.stderr.contains("circular"), "{}", stopped.stderr);
    let info = stage.json(&["info", "ring.heapr"]);
    let statistics = &info["statistics"];
    assert!(statistics["events_before_window"].as_u64() > Some(100_000), "{info}");
    // The first allocations with their stacks, from the summary and from a replay of the file.
    for extra in [&[][..], &["--size", "1", "1000000"]] {
        let groups = |frame: &str| {
            let arguments =
                [&["report", "ring.heapr", "--stacks", "--require-frames", frame], extra].concat();
            let report = stage.json(&arguments);
            report["groups"][0].clone()
        };
        let early = groups("early_alloc");
        assert_eq!((&early["outstanding_count"], &early["total_count"]), (&10.into(), &10.into()), "{early}");
        let steady = groups("steady_alloc");
        assert_eq!(steady["outstanding_count"], 1000, "{steady}");
        assert!(steady["total_count"].as_u64() > Some(10_000), "{steady}");
    }
}

#[test]
fn a_session_in_snapshot_mode_keeps_no_events_and_knows_what_is_live() {
    let stage = Stage::new();
    let steady = stage.steady(0);
    let mut arguments = vec!["start", "live", "-o", "live.heapr", "--mode", "snapshot", "--"];
    arguments.extend(steady.iter().map(String::as_str));
    stage.heapr(&arguments).ok();
    stage.wait_for("live", "events", |status| status["event_count"].as_u64() > Some(300_000));
    stage.release();
    stage.wait_for("live", "the program's end", |status| status["live_process_count"] == 0);
    stage.heapr(&["stop", "live"]).ok();
    let info = stage.json(&["info", "live.heapr"]);
    assert_eq!(info["event_count"], 0);
    assert!(info["file_bytes"].as_u64() < Some(200_000), "{}", info["file_bytes"]);
    let report = stage.json(&["report", "live.heapr", "--stacks", "--require-frames", "early_alloc"]);
    assert_eq!(report["groups"][0]["outstanding_count"], 10, "{report}");
}

#[test]
fn a_session_on_a_running_program_lets_it_go_unharmed() {
    let stage = Stage::new();
    let mut first = stage.spawn_steady(200);
    let mut second = stage.spawn_steady(200);
    let [first_pid, second_pid] = [&first, &second].map(|child| child.id().to_string());
    let started = stage.heapr(&["start", "att", "-o", "att.heapr", "--pid", &first_pid]).ok();
    assert!(started.stderr.contains("is traced: it stood still for"), "{}", started.stderr);
    stage.wait_for("att", "the first events", |status| status["event_count"].as_u64() > Some(5000));
    stage.heapr(&["update", "att", "--add-pid", &second_pid]).ok();
    stage.wait_for("att", "the second process", |status| status["live_process_count"] == 2);
    // A second attach is refused, and the session continues.
    stage.heapr(&["update", "att", "--add-pid", &second_pid]).fails_with(&["already"]);
    stage.heapr(&["update", "att", "--remove-pid", &first_pid]).ok();
    stage.wait_for("att", "the end of the first", |status| status["live_process_count"] == 1);
    let maps = std::fs::read_to_string(format!("/proc/{first_pid}/maps")).unwrap();
    assert!(!maps.contains("heapr-agent"), "{maps}");
    stage.heapr(&["stop", "att", "-q"]).ok();
    // Another session can attach to the process.
    stage.heapr(&["start", "again", "-o", "again.heapr", "--pid", &first_pid]).ok();
    stage.wait_for("again", "the first events", |status| status["event_count"].as_u64() > Some(1000));
    stage.heapr(&["stop", "again", "-q"]).ok();
    stage.release();
    for child in [&mut first, &mut second] {
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
    let report = stage.json(&["report", "att.heapr", "--stacks", "--require-frames", "steady_alloc"]);
    assert!(report["groups"][0]["total_count"].as_u64() > Some(2000), "{report}");
}

#[test]
fn a_program_that_a_session_started_can_be_let_go() {
    let stage = Stage::new();
    stage.start_steady("own", &["-o", "own.heapr"]).ok();
    let status = stage.wait_for("own", "events", |status| status["event_count"].as_u64() > Some(5000));
    let pid = status["processes"][0]["pid"].as_u64().unwrap().to_string();
    // Another session cannot.
    let mut other = stage.spawn_steady(200);
    let other_pid = other.id().to_string();
    stage.heapr(&["start", "other", "-o", "other.heapr", "--pid", &other_pid]).ok();
    stage.heapr(&["update", "other", "--remove-pid", &pid]).fails_with(&["is not attached to"]);
    stage.heapr(&["stop", "other", "-q"]).ok();
    let let_go = stage.heapr(&["update", "own", "--remove-pid", &pid]).ok();
    assert!(let_go.stderr.contains("runs on untraced"), "{}", let_go.stderr);
    // Events written until then are read; later ones do not exist.
    let rest = || std::thread::sleep(Duration::from_millis(300));
    let event_count = heapr_testkit::wait_until("nothing more comes", || {
        let before = stage.status("own")["event_count"].as_u64();
        rest();
        Some(before).filter(|_| stage.status("own")["event_count"].as_u64() == before)
    });
    assert!(event_count > Some(5000), "{event_count:?}");
    rest();
    let later = stage.status("own");
    assert_eq!(later["event_count"].as_u64(), event_count, "{later}");
    assert!(later.to_string().contains("it was let go"), "{later}");
    // A second removal is refused. The process still has an agent, so it cannot get a second one.
    stage.heapr(&["update", "own", "--remove-pid", &pid]).fails_with(&["is not attached to"]);
    stage.heapr(&["update", "own", "--add-pid", &pid]).fails_with(&["was let go"]);
    // The session's last state of the process is not a snapshot of this moment.
    stage.heapr(&["snapshot", "take", "--native", &pid]).fails_with(&["was let go"]);
    stage.release();
    assert_eq!(other.wait().unwrap().code(), Some(7));
    stage.wait_for("own", "the program's end", |status| status["live_process_count"] == 0);
    stage.heapr(&["stop", "own", "-q"]).ok();
    let report = stage.json(&["report", "own.heapr", "--stacks", "--require-frames", "steady_alloc"]);
    // A block may have been freed for the next one.
    let outstanding_count = report["groups"][0]["outstanding_count"].as_u64();
    assert!(matches!(outstanding_count, Some(999 | 1000)), "{report}");
    let totals = &report["totals"];
    assert_eq!((&totals["unmatched_frees"], &totals["lost_events"]), (&0.into(), &0.into()), "{totals}");
}

#[test]
fn one_process_that_cannot_be_traced_lets_none_be_traced() {
    let stage = Stage::new();
    let mut child = stage.spawn_steady(200);
    let pids = format!("{},4000000", child.id());
    stage.heapr(&["start", "att", "-o", "att.heapr", "--pid", &pids]).fails_with(&["no process 4000000"]);
    assert!(!stage.path("att.heapr").exists());
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
    stage.heapr(&["start", "att", "-o", "att.heapr", "--pid", &child.id().to_string()]).ok();
    stage.release();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn flagged_programs_are_traced_when_they_start_while_a_session_wants_them() {
    let stage = Stage::new();
    // Name that is unique to this test.
    let program = stage.path("flagged-steady");
    fs::copy(crate::stage::steady_program(), &program).unwrap();
    fs::create_dir_all(stage.path("config/heapr")).unwrap();
    let flags = stage.path("config/heapr/flags.json");
    fs::write(
        &flags,
        r#"{"schema": "heapr-flags/1", "flags": [{"kind": "heap", "target": {"name": "flagged-steady"}}]}"#,
    )
    .unwrap();
    fs::set_permissions(&flags, fs::Permissions::from_mode(0o600)).unwrap();
    let spawn = || {
        let mut command = Command::new(&program);
        command.args([&stage.argument("release"), "200"]).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut early = spawn();
    crate::stage::wait_for_own_code(early.id());
    stage.heapr(&["start", "new", "-o", "new.heapr", "--flagged"]).ok();
    let mut late = spawn();
    let status = stage.wait_for("new", "the flagged program", |status| {
        status["live_process_count"] == 1 && status["remarks"][0].is_string()
    });
    assert_eq!(status["processes"][0]["pid"], late.id(), "{status}");
    assert!(status["remarks"][0].as_str().unwrap().contains("is flagged and traced"), "{status}");
    stage.heapr(&["stop", "new", "-q"]).ok();
    stage.heapr(&["start", "both", "-o", "both.heapr", "--flagged", "--running"]).ok();
    stage.wait_for("both", "both programs", |status| status["live_process_count"] == 2);
    stage.release();
    for child in [&mut early, &mut late] {
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
    stage.heapr(&["stop", "both", "-q"]).ok();
}

#[test]
fn what_a_run_records_can_be_asked_from_outside_while_it_runs() {
    let stage = Stage::new();
    let program = stage.steady(200);
    let mut words = vec!["run", "-q", "-o", "run.heapr", "--"];
    words.extend(program.iter().map(String::as_str));
    let mut run = stage.command(&words).stdout(std::process::Stdio::null()).spawn().unwrap();
    let name = format!("run-{}", run.id());
    stage.wait_for_answer(&name);
    let status = stage.wait_for(&name, "events", |status| status["event_count"].as_u64() > Some(5000));
    assert_eq!(status["name"], name);
    let pid = status["processes"][0]["pid"].to_string();

    let told = stage.heapr(&["snapshot", "take", "--graph", &pid]).ok().stdout;
    assert!(told.contains(&name), "{told}");
    stage.heapr(&["snapshot", "take", "--native", "--name", "second", &name]).ok();
    stage.heapr(&["mark", "half way"]).ok();
    stage.heapr(&["update", &name, "--stacks", "alloc,free"]).ok();
    assert_eq!(stage.status(&name)["stacks"], "alloc,free");
    // The session ends with its program, and cannot be stopped otherwise.
    stage.heapr(&["stop", &name]).fails_with(&["ends with its program"]);
    stage.heapr(&["update", &name, "--add-pid", "1"]).fails_with(&["heapr start --pid"]);
    // Beside another session, this one needs its name.
    stage.start_steady("web", &[]).ok();
    stage.heapr(&["mark", "in web"]).ok();
    assert_eq!(stage.status("web")["marker_count"], 1);

    stage.release();
    assert_eq!(run.wait().unwrap().code(), Some(7));
    stage.heapr(&["stop", "web", "-q"]).ok();
    let info = stage.json(&["info", "run.heapr"]);
    assert_eq!((&info["is_complete"], &info["markers"][0]["text"]), (&true.into(), &"half way".into()));
    assert_eq!(info["markers"].as_array().map(Vec::len), Some(1), "{info}");
    let leaks = stage.json(&["snapshot", "leaks", "run.heapr"]);
    assert_eq!(leaks["schema"], "heapr.leaks/1");
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}
