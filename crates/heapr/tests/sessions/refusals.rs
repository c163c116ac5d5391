//! Refusals, and their messages to the user.

use std::fs;
use std::os::unix::fs::symlink;

use crate::stage::Stage;

#[test]
fn a_name_that_is_taken_is_refused_and_the_session_goes_on() {
    let stage = Stage::new();
    stage.start_steady("web", &["-o", "web.heapr"]).ok();
    stage
        .start_steady("web", &["-o", "other.heapr"])
        .fails_with(&["a session named web exists", "heapr stop web"]);
    assert!(!stage.path("other.heapr").exists());
    assert_eq!(stage.status("web")["live_process_count"], 1);
}

#[test]
fn hostile_names_are_refused() {
    let stage = Stage::new();
    for name in ["../web", "a/b", "a\nb", "", ".", "a\u{1b}[2Jb", &"x".repeat(300)] {
        for command in ["start", "stop", "status", "cancel", "update"] {
            let outcome = stage.heapr(&[command, name]);
            assert_eq!(outcome.status, 2, "{command} {name:?}: {}", outcome.stderr);
            assert!(!outcome.stderr.contains('\u{1b}'), "{:?}", outcome.stderr);
        }
    }
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}

#[test]
fn a_session_that_does_not_run_is_named_with_those_that_do() {
    let stage = Stage::new();
    stage.heapr(&["stop", "web"]).fails_with(&["no session named web is running", "heapr start"]);
    stage.heapr(&["stop"]).fails_with(&["no session is running"]);
    stage.start_steady("other", &[]).ok();
    stage.heapr(&["mark", "web", "text"]).fails_with(&["no session named web is running", "other"]);
}

#[test]
fn what_cannot_be_traced_leaves_no_session() {
    let stage = Stage::new();
    stage.heapr(&["start", "a", "-o", "a.heapr", "--pid", "4000000"]).fails_with(&["no process 4000000"]);
    stage.heapr(&["start", "a", "-o", "a.heapr", "--", "/no/such/program"]).fails_with(&["no such program"]);
    fs::write(stage.path("text"), "no program").unwrap();
    stage.heapr(&["start", "a", "-o", "a.heapr", "--", "./text"]).fails_with(&["not executable"]);
    assert!(!stage.path("a.heapr").exists());
    assert_eq!(stage.runtime_files(), Vec::<String>::new());
}

#[test]
fn properties_that_make_no_sense_are_refused() {
    let stage = Stage::new();
    let cases: [(&[&str], &str); 8] = [
        (&["--buffer-size", "3"], "power of two"),
        (&["--min-buffers", "10", "--max-buffers", "5"], "from the start"),
        (&["--max-buffers", "100000"], "are possible"),
        (&["--flush-timer", "0"], "above 0"),
        (&["--stacks", "alloc,everything"], "everything"),
        (&["--memory", "10"], "at least"),
        (&["--max-file", "10"], "at least"),
        (&["--mode", "snapshot", "--memory", "10M"], "choose one"),
    ];
    for (options, word) in cases {
        let outcome = stage.start_steady("a", &[options, &["-o", "a.heapr"]].concat());
        assert_eq!(outcome.status, 2, "{options:?}");
        assert!(outcome.stderr.contains(word), "{options:?}: {}", outcome.stderr);
    }
    assert!(!stage.path("a.heapr").exists());
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_taken() {
    let stage = Stage::new();
    let options =
        ["--buffer-size", "1024", "--min-buffers", "65536", "--max-buffers", "65536", "-o", "a.heapr"];
    stage.start_steady("a", &options).fails_with(&["not enough memory", "65536 MiB", "--min-buffers"]);
    assert!(!stage.path("a.heapr").exists());
}

#[test]
fn no_file_is_overwritten_and_no_link_is_followed() {
    let stage = Stage::new();
    fs::write(stage.path("there"), "mine").unwrap();
    symlink(stage.path("there"), stage.path("link")).unwrap();
    stage.start_steady("a", &["-o", "there"]).fails_with(&["there exists", "-f"]);
    stage.start_steady("a", &["-f", "-o", "link"]).fails_with(&["symbolic link"]);
    stage.start_steady("a", &["-o", "a.heapr"]).ok();
    // The command fails before the session is stopped.
    stage.heapr(&["stop", "a", "-o", "there"]).fails_with(&["there exists"]);
    stage.heapr(&["stop", "a", "-f", "-o", "link"]).fails_with(&["symbolic link"]);
    stage.heapr(&["stop", "a", "-o", "no/such/folder"]).fails_with(&["no directory"]);
    assert_eq!(stage.status("a")["state"], "recording");
    assert_eq!(fs::read_to_string(stage.path("there")).unwrap(), "mine");
    stage.heapr(&["stop", "a", "-q", "-f", "-o", "there"]).ok();
    assert_eq!(stage.json(&["info", "there"])["is_complete"], true);
}

#[test]
fn a_runtime_directory_that_is_not_this_users_alone_is_not_used() {
    let stage = Stage::new();
    // A link in place of the folder of sockets leads elsewhere: no file is written there.
    fs::create_dir(stage.path("elsewhere")).unwrap();
    symlink(stage.path("elsewhere"), stage.path("heapr")).unwrap();
    stage.start_steady("a", &["-o", "a.heapr"]).fails_with(&["symbolic link", "RUNTIME_DIR"]);
    assert_eq!(fs::read_dir(stage.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_link_in_place_of_a_sessions_files_is_not_followed() {
    let stage = Stage::new();
    stage.start_steady("first", &["-o", "first.heapr"]).ok();
    fs::write(stage.path("victim"), "mine").unwrap();
    for ending in ["lock", "sock"] {
        symlink(stage.path("victim"), stage.path("heapr").join(format!("second.{ending}"))).unwrap();
    }
    let outcome = stage.start_steady("second", &["-o", "second.heapr"]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    fs::remove_file(stage.path("heapr/second.lock")).unwrap();
    // A link in place of the socket is replaced.
    stage.start_steady("second", &["-o", "second.heapr"]).ok();
    assert_eq!(stage.status("second")["live_process_count"], 1);
    assert_eq!(fs::read_to_string(stage.path("victim")).unwrap(), "mine");
}
