//! First steps and mistakes of new users: what is typed, and what the answer says, by meaning.

use std::fs;
use std::path::Path;

use crate::stage::Stage;

/// Command line, its exit status, and texts that its output or its errors hold.
pub(crate) type Step = (&'static str, i32, &'static [&'static str]);

/// Words of other tools, and slips: each is answered by a line with the command to type.
pub(crate) const TIPS: &[Step] = &[
    ("record ./a", 2, &["type  heapr run ./a"]),
    ("trace ./a b", 2, &["type  heapr run ./a b"]),
    ("live 12", 2, &["type  heapr top 12"]),
    ("tree a.heapr", 2, &["type  heapr report a.heapr --invert"]),
    ("flamegraph a.heapr", 2, &["type  heapr export a.heapr --to flamegraph"]),
    ("leaks a.heapr", 2, &["type  heapr explain a.heapr"]),
    ("summary a.heapr", 2, &["type  heapr report a.heapr --totals"]),
    ("stats a.heapr", 2, &["type  heapr report a.heapr --totals"]),
    ("table a.heapr", 2, &["type  heapr report a.heapr --frames"]),
    ("version", 2, &["type  heapr --version"]),
    ("detach web", 2, &["type  heapr stop web"]),
    ("dump 12", 2, &["type  heapr snapshot take 12"]),
    ("snapshot 1234", 2, &["type  heapr snapshot take 1234"]),
    ("start 1234", 2, &["type  heapr start --pid 1234"]),
    ("start 7 8", 2, &["type  heapr start --pid 7,8"]),
    ("start --pid 1 1", 2, &["1 would be the session's name", "--pid 1,1"]),
    ("run --verbose ./a", 127, &["no option --verbose", "before the program"]),
    ("run load.py", 127, &["type  heapr run python3 load.py"]),
    ("run ./load.py 1", 126, &["type  heapr run python3 ./load.py 1"]),
    ("run own-script", 127, &["type  heapr run ./own-script"]),
    ("run -o=b.heapr ./a", 127, &["type  heapr run -o b.heapr ./a"]),
    ("run -o - true", 2, &["standard output cannot hold it"]),
    ("run -o no-such-folder/a.heapr true", 2, &["no-such-folder/a.heapr"]),
    ("run no-such-program", 127, &["no such program"]),
    ("run", 2, &["PROGRAM"]),
    ("recorde", 2, &["unrecognized subcommand"]),
    ("reprot a.heapr", 2, &["report"]),
    ("attach", 2, &["--pid PID"]),
    ("attach 4000000", 2, &["no process 4000000"]),
    ("start", 2, &["nothing to trace", "--pid"]),
    ("stop no-such", 2, &["no session named no-such"]),
    ("top 4000000", 2, &["no process has the number 4000000"]),
    ("top no-such", 2, &["no-such"]),
    ("report no.heapr", 2, &["no.heapr", "No such file"]),
    ("explain no.heapr", 2, &["no.heapr is no file"]),
    ("view no.heapr", 2, &["no.heapr"]),
    ("info no.heapr", 2, &["no.heapr"]),
    ("diff no.heapr", 2, &["heapr diff no.heapr AFTER.heapr"]),
    ("report text", 2, &["text"]),
    ("report --sort such", 2, &["such", "soc"]),
    ("report --by such", 2, &["one of stack, frame"]),
    ("man no-such", 2, &["has no command no-such"]),
    ("completions tcsh", 2, &["bash", "zsh", "fish"]),
];

/// Steps that work.
pub(crate) const STEPS: &[Step] = &[
    ("-V", 0, &["heapr "]),
    ("--help", 0, &["Commands:", "top", "report"]),
    ("help top", 0, &["--once"]),
    ("list", 0, &[]),
    ("ps", 0, &[]),
    ("report", 0, &["the newest trace here: new.heapr"]),
    ("report --totals --json", 0, &["heapr.report/1"]),
    ("explain", 0, &["the newest trace here: new.heapr"]),
    ("info", 0, &["the newest trace here: new.heapr"]),
    ("export --to collapsed", 0, &["the newest trace here: new.heapr"]),
    ("diff --top 1", 0, &["the two newest traces here: old.heapr and new.heapr"]),
    ("diff old.heapr new.heapr --fail-on growth=1T", 0, &["old.heapr -> new.heapr"]),
    ("report --require-frames no_such_function old.heapr --totals", 0, &["old.heapr", "no_such_function"]),
    ("export old.heapr --to collapsed -o -", 0, &[]),
    ("report old.heapr -o -", 0, &["old.heapr"]),
    ("run -h", 0, &["--help tells all"]),
    ("run --help", 0, &["--buffer-size", "Examples:", "Exit status:"]),
    ("man report", 0, &["EXAMPLES", "EXIT STATUS", "ENVIRONMENT"]),
    ("report --sort soc old.heapr", 0, &["old.heapr"]),
    ("report --stacks old.heapr", 0, &["old.heapr"]),
    ("report old.heapr --cullframes a b --frames soc", 0, &["old.heapr"]),
    ("report --cullframes a b old.heapr --totals", 0, &["old.heapr"]),
    ("report --pid 1,2 old.heapr --totals", 2, &["no process 1 in this trace"]),
];

fn check(stage: &Stage, steps: &[Step]) {
    for (line, status, texts) in steps {
        let words: Vec<&str> = line.split(' ').collect();
        let outcome = stage.heapr(&words);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.status, *status, "heapr {line}\n{said}");
        for text in *texts {
            assert!(said.contains(text), "heapr {line}: {text:?} is not in\n{said}");
        }
        assert!(!said.contains("recorder-of-session"), "heapr {line}: {said}");
    }
}

/// Writes the files that the steps name.
pub(crate) fn write_files(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for (name, text) in [("load.py", "print(1)\n"), ("text", "text\n"), ("own-script", "#!/bin/sh\ntrue\n")] {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::set_permissions(folder.join("own-script"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn mistakes_are_answered_by_what_to_type_and_steps_do_what_they_say() {
    let stage = Stage::new();
    write_files(stage.folder());
    for command in ["report", "explain", "info", "view", "export --to collapsed", "diff"] {
        let words: Vec<&str> = command.split(' ').collect();
        // A session of another test may run, which `view` shows.
        if command != "view" {
            stage.heapr(&words).fails_with(&["in", "this folder"]);
        }
    }
    stage.heapr(&["run", "-q", "-o", "old.heapr", "true"]).ok();
    stage.heapr(&["run", "-q", "-o", "new.heapr", "true"]).ok();
    check(&stage, TIPS);
    check(&stage, STEPS);
}
