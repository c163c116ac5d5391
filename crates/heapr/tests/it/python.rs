//! Python's frames in stacks. `victims/python/lines.py` prints for each of its blocks the function
//! and line. `HEAPR_PYTHONS` names the interpreters, separated by colons; the default is the
//! installed `python3`.

use std::process::Command;

use heapr_testkit::not_run;

use crate::recording::Recording;
use crate::telling_programs::Telling;

const PYTHON: Telling = Telling {
    variable: "HEAPR_PYTHONS",
    usual: "/usr/bin/python3",
    program: "python/lines.py",
    module: "py",
    required: "PyByteArray_Resize",
    environment: &[],
    verify_every: 1,
    sizes: 81,
    is_library: |_| false,
};

#[test]
fn each_block_of_a_python_program_has_its_function_and_line() {
    for python in PYTHON.interpreters() {
        let Some(recording) = PYTHON.check_from_start(&python, 10_000) else { continue };
        // Stacks continue through the interpreter, from the innermost function to the program's
        // entry.
        let words =
            ["report", "--stacks", "st", "--top", "1", "--depth", "100", "--require-frames", "py!made_anew"];
        let stacks = recording.text(&words);
        let label = python.display();
        let at = |what: &str| stacks.find(what).unwrap_or_else(|| panic!("{label}: no {what}: {stacks}"));
        assert!(at("made_anew (lines.py:") < at("work (lines.py:"), "{label}: {stacks}");
        assert!(at("work (lines.py:") < at("main (lines.py:"), "{label}: {stacks}");
        check_shown(&recording, &label.to_string());
    }
}

/// Checks which frames are shown, and that other tools get them, too.
fn check_shown(recording: &Recording, label: &str) {
    let modules = |shown: &str| {
        let words = ["report", "--stacks", "st", "--require-frames", "made_anew", "--lang-frames", shown];
        let report = recording.json(&words);
        let groups = report["groups"].as_array().unwrap().clone();
        let frames = groups.iter().flat_map(|group| group["frames"].as_array().unwrap().clone());
        frames.map(|frame| frame["module"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let is_interpreter = |module: &String| module.contains("python");
    let (mixed, own) = (modules("mixed"), modules("own"));
    assert!(mixed.iter().any(|module| module == "py") && mixed.iter().any(is_interpreter), "{label}");
    assert!(own.iter().any(|module| module == "py") && !own.iter().any(is_interpreter), "{label}: {own:?}");
    assert!(modules("native").is_empty(), "{label}: no native frame has this name");
    for format in ["collapsed", "speedscope"] {
        let exported = recording.text(&["export", "--to", format, "--value", "st"]);
        assert!(exported.contains("made_anew"), "{label}: {format}");
        let native = recording.text(&["export", "--to", format, "--value", "st", "--lang-frames", "native"]);
        assert!(!native.contains("made_anew"), "{label}: {format}");
    }
}

#[test]
fn a_python_program_that_is_attached_to_has_its_functions_and_lines() {
    for python in PYTHON.interpreters() {
        PYTHON.check_attached(&python);
    }
}

/// Process with several interpreters, each of which numbers the versions of its code.
const INTERPRETERS: Telling =
    Telling { program: "python/interpreters.py", verify_every: 3, sizes: 84, ..PYTHON };

#[test]
fn each_block_of_an_inner_interpreter_has_its_function_and_line() {
    for python in INTERPRETERS.interpreters() {
        INTERPRETERS.check_from_start(&python, 1_000);
    }
}

/// Program whose stacks are switched in the middle of functions.
const GREENLETS: Telling = Telling { program: "python/greenlets.py", verify_every: 1, sizes: 19, ..PYTHON };

#[test]
fn each_block_of_a_greenlet_has_its_function_and_line() {
    for python in GREENLETS.interpreters() {
        let tried = Command::new(&python).args(["-c", "import greenlet"]).output().unwrap();
        if !tried.status.success() {
            not_run(format!("{} has no greenlet", python.display()));
            continue;
        }
        GREENLETS.check_from_start(&python, 5_000);
    }
}
