//! Python's frames in stacks: `victims/python/lines.py` says itself what each of its blocks stands
//! for. `HEAPR_PYTHONS` names the interpreters, separated by colons; without it the installed
//! `python3` is taken.

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
        // Stacks go on through the interpreter, from the innermost function to the program's entry.
        let words =
            ["report", "--stacks", "st", "--top", "1", "--depth", "100", "--require-frames", "py!made_anew"];
        let stacks = recording.text(&words);
        let label = python.display();
        let at = |what: &str| stacks.find(what).unwrap_or_else(|| panic!("{label}: no {what}: {stacks}"));
        assert!(at("made_anew (lines.py:") < at("work (lines.py:"), "{label}: {stacks}");
        assert!(at("work (lines.py:") < at("main (lines.py:"), "{label}: {stacks}");
    }
}

#[test]
fn a_python_program_that_is_attached_to_has_its_functions_and_lines() {
    for python in PYTHON.interpreters() {
        PYTHON.check_attached(&python);
    }
}
