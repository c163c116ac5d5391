//! Java's frames in stacks. `victims/java/Lines.java` prints for each of its blocks the function
//! and line, interpreted, compiled and inlined. `HEAPR_JAVAS` names the virtual machines, separated
//! by colons; the default is the installed `java`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_testkit::not_run;

use crate::telling_programs::Telling;
use crate::victim_build::sources;

const JAVA: Telling = Telling {
    variable: "HEAPR_JAVAS",
    usual: "/usr/bin/java",
    program: "java/Lines.java",
    module: "java",
    required: "java!",
    environment: &[("VICTIM_ROUNDS", "200")],
    verify_every: 20,
    sizes: 17,
    is_library: |frame| frame["file"] != "Lines.java",
};

/// Builds a launcher that runs the victim's class: the virtual machine takes no source.
fn launcher(java: &Path, scratch: &Path) -> Option<PathBuf> {
    let source = sources().join(JAVA.program);
    let compiled =
        Command::new("javac").args(["--release", "11", "-d"]).arg(scratch).arg(source).output().ok();
    if !compiled.is_some_and(|output| output.status.success()) {
        not_run("javac is not installed");
        return None;
    }
    let launcher = scratch.join("java");
    let text = format!("#!/bin/sh\nexec {} -cp {} Lines \"$2\"\n", java.display(), scratch.display());
    std::fs::write(&launcher, text).unwrap();
    std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(launcher)
}

#[test]
fn each_block_of_a_java_program_has_its_method_and_line() {
    for java in JAVA.interpreters() {
        let scratch = tempfile::tempdir().unwrap();
        let Some(launcher) = launcher(&java, scratch.path()) else { return };
        let Some(recording) = JAVA.check_from_start(&launcher, 50) else { continue };
        let words = [
            "report",
            "--stacks",
            "st",
            "--top",
            "1",
            "--depth",
            "100",
            "--require-frames",
            "java!Lines.innermost",
        ];
        let stacks = recording.text(&words);
        let at = |what: &str| {
            stacks.find(what).unwrap_or_else(|| panic!("{}: no {what}: {stacks}", java.display()))
        };
        // The function that requested the memory lies above, and its callers below.
        assert!(at("java.nio.ByteBuffer.allocateDirect") < at("Lines.innermost ("), "{stacks}");
        assert!(at("Lines.innermost (") < at("Lines.work ("), "{stacks}");
        assert!(at("Lines.work (") < at("Lines.onThread ("), "{stacks}");
        JAVA.check_attached(&launcher);
    }
}
