//! Completion in bash, zsh and fish, on a terminal: the completed lines are run, and their effect
//! is looked at.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::stage::{HEAPR, Stage};
use crate::terminal::OnTerminal;

/// Starts a shell that has heapr in its path and its completion loaded.
fn shell(stage: &Stage, name: &str) -> OnTerminal {
    let script = stage.heapr(&["completions", name]).ok().stdout;
    fs::write(stage.path("completion"), script).unwrap();
    let heapr = Path::new(HEAPR).parent().unwrap().display().to_string();
    let plain = stage.command(&["-V"]);
    let mut command = Command::new(name);
    for (variable, value) in plain.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(variable, value);
    }
    command.current_dir(stage.folder()).env("HOME", stage.folder());
    command.env("PATH", format!("{heapr}:{}", std::env::var("PATH").unwrap()));
    let (options, load): (&[&str], &str) = match name {
        "bash" => (&["--norc", "--noprofile", "-i"], "source ./completion\n"),
        "zsh" => (&["-f", "-i"], "autoload -U compinit && compinit -u -d ./dump && source ./completion\n"),
        _ => (&["--no-config", "--interactive"], "source ./completion\n"),
    };
    let mut terminal = OnTerminal::start(command.args(options), 160, 40);
    terminal.type_keys(load);
    terminal.type_keys("echo is-loaded > loaded\n");
    wait_for_file(stage, "loaded", "is-loaded");
    terminal
}

/// Waits until a file holds a text.
#[track_caller]
fn wait_for_file(stage: &Stage, name: &str, text: &str) {
    heapr_testkit::wait_until(&format!("{name} holds {text:?}"), || {
        fs::read_to_string(stage.path(name)).ok()?.contains(text).then_some(())
    });
}

/// Starts a program of this name.
fn start_program(stage: &Stage, name: &str) -> Child {
    let words = stage.steady(20_000);
    // Not in the working directory, where its name would be that of a file.
    fs::create_dir(stage.path("programs")).unwrap();
    let program = stage.path("programs").join(name);
    fs::copy(&words[0], &program).unwrap();
    let child = Command::new(program).args(&words[1..]).stdout(Stdio::null()).spawn().unwrap();
    crate::stage::wait_for_own_code(child.id());
    child
}

fn complete_in(name: &str) {
    if Command::new(name).arg("--version").output().is_err() {
        heapr_testkit::not_run(format!("completion: there is no {name}"));
        return;
    }
    let stage = Stage::new();
    // No other process has this name, also where the tests run twice at the same time.
    let unique = format!("q{}{}", &name[..1], std::process::id());
    let mut program = start_program(&stage, &unique);
    fs::write(stage.path("notes.txt"), "no trace\n").unwrap();
    fs::create_dir(stage.path("traces")).unwrap();
    stage.heapr(&["run", "-q", "-o", "traces/the one.heapr", "true"]).ok();
    stage.heapr(&["run", "-q", "-o", "newest.heapr", "true"]).ok();
    stage.start_steady("web-of-test", &["-q", "-o", "web.heapr"]).ok();
    let mut terminal = shell(&stage, name);
    for (keys, file, text) in [
        // Commands, options, their values, traces.
        ("heapr inf\t new\t > info.txt\n", "info.txt", "newest.heapr"),
        ("heapr report --tot\t newest.heapr --form\t js\t > report.json\n", "report.json", "heapr.report/1"),
        ("heapr snapshot statis\t --hel\t > verb.txt\n", "verb.txt", "heapr snapshot statistics"),
        // A folder goes on, and a space in a name is quoted.
        ("heapr info tra\tthe\t > folder.txt\n", "folder.txt", "the one.heapr"),
        // A session by its name, a process by that of its program.
        ("heapr status web-\t > session.txt\n", "session.txt", "web-of-test"),
        (&format!("heapr explain {}\t > process.txt\n", &unique[..unique.len() - 1]), "process.txt", &unique),
    ] {
        terminal.type_keys(keys);
        wait_for_file(&stage, file, text);
    }
    // What a shell would run in a name is not run.
    fs::copy(stage.path("newest.heapr"), stage.path("odd $(touch ran).heapr")).unwrap();
    terminal.type_keys("heapr explain odd\t > odd.txt\n");
    wait_for_file(&stage, "odd.txt", "");
    assert!(!stage.path("ran").exists(), "{}", terminal.shown());
    // Numbers are offered with the names of their programs.
    let pid = program.id().to_string();
    let offered = stage.heapr(&["complete-for-shell", name, "doctor", &pid]).ok().stdout;
    let line = offered.lines().find(|line| line.starts_with(&format!("{pid}\t")));
    assert!(line.is_some_and(|line| line.len() > pid.len() + 1), "{offered}");
    stage.release();
    program.wait().unwrap();
}

#[test]
fn bash_completes_commands_traces_sessions_and_processes() {
    complete_in("bash");
}

#[test]
fn zsh_completes_commands_traces_sessions_and_processes() {
    complete_in("zsh");
}

#[test]
fn fish_completes_commands_traces_sessions_and_processes() {
    complete_in("fish");
}
