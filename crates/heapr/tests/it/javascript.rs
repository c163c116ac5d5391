//! JavaScript's frames in stacks. `victims/javascript/lines.js` prints for each of its blocks the
//! function and line, interpreted and optimized, in the main thread and a worker. `HEAPR_NODES`
//! names the programs, separated by colons; the default is the installed `node`.

use crate::telling_programs::Telling;

const NODE: Telling = Telling {
    variable: "HEAPR_NODES",
    usual: "/usr/bin/node",
    program: "javascript/lines.js",
    module: "js",
    required: "js!",
    environment: &[("VICTIM_ROUNDS", "300")],
    verify_every: 100,
    sizes: 42,
    is_library: |frame| {
        let file = frame["file"].as_str().unwrap_or_default();
        !["given.js", "(evaluated)"].contains(&file) && !file.ends_with("/lines.js")
    },
};

#[test]
fn each_block_of_a_node_program_has_its_function_and_line() {
    for node in NODE.interpreters() {
        let Some(recording) = NODE.check_from_start(&node, 100) else { continue };
        let words =
            ["report", "--stacks", "st", "--top", "1", "--depth", "100", "--require-frames", "js!inClosure"];
        let stacks = recording.text(&words);
        let label = node.display();
        let at = |what: &str| stacks.find(what).unwrap_or_else(|| panic!("{label}: no {what}: {stacks}"));
        // Node's own function requested the memory, and the program's calls lie below, inlined
        // functions too.
        assert!(at("allocUnsafeSlow (") < at("inClosure (lines.js:"), "{label}: {stacks}");
        assert!(at("inClosure (lines.js:") < at("twice (lines.js:"), "{label}: {stacks}");
        assert!(at("twice (lines.js:") < at("closure (lines.js:"), "{label}: {stacks}");
        assert!(at("closure (lines.js:") < at("work (lines.js:"), "{label}: {stacks}");
    }
}

#[test]
fn a_node_program_that_is_attached_to_has_its_functions_and_lines() {
    for node in NODE.interpreters() {
        NODE.check_attached(&node);
    }
}
