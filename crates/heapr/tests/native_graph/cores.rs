//! Graphs of ended processes from their core files: verdicts as for running ones.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_testkit::Outcome;

use crate::{Stage, values};

/// Runs a victim without a recording until it is ready, and makes gdb write its core.
fn core_of(stage: &Stage, program: &Path) -> Option<PathBuf> {
    if Command::new("gcore").arg("-h").output().is_err() {
        heapr_testkit::not_run("there is no gcore (gdb)");
        return None;
    }
    let mut child =
        Command::new(program).current_dir(stage.path(".")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = Command::new("gcore").arg("-o").arg(stage.path("core")).arg(child.id().to_string()).output();
    let core = stage.path(&format!("core.{}", child.id()));
    let _ = child.kill();
    child.wait().unwrap();
    assert!(core.exists(), "{output:?}");
    Some(core)
}

#[test]
fn a_core_file_tells_what_is_leaked_and_what_holds_the_rest() {
    let stage = Stage::new();
    let (program, _, text) = stage.build("nine_cases.c");
    let Some(core) = core_of(&stage, &program) else { return };
    // The program is moved to another path.
    let moved = stage.path("elsewhere");
    std::fs::rename(&program, &moved).unwrap();
    let (core, moved) = (core.to_str().unwrap(), moved.to_str().unwrap());
    let taken = stage.json(&["snapshot", "graph", "--core", core, moved, "-o", "core.heapr"]);
    assert!(taken["thread_count"] == 1 && !taken["notes"].to_string().contains("not here as"), "{taken}");
    let leaks = stage.json(&["snapshot", "leaks", "core.heapr"]);
    for kind in ["definite", "indirect", "possible"] {
        let wanted = values(&text, "leaks").filter(|claim| claim.contains(&format!("kind={kind} "))).count();
        assert_eq!(leaks["totals"][format!("{kind}_count")], wanted, "{leaks}");
    }
    let holders = stage.json(&["snapshot", "holders", "core.heapr"]);
    assert!(holders.to_string().contains("\"elsewhere!roots\""), "{holders}");
    let Outcome { status, stderr, .. } =
        stage.heapr(&["snapshot", "graph", "--core", moved, "-o", "none.heapr"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("ELF file of another kind"), "{stderr}");
    assert!(!stage.path("none.heapr").exists());
    // A core that is cut.
    let bytes = std::fs::metadata(core).unwrap().len();
    std::fs::File::options().write(true).open(core).unwrap().set_len(bytes / 2).unwrap();
    let Outcome { status, stderr, .. } =
        stage.heapr(&["snapshot", "graph", "--core", core, "-o", "none.heapr"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("it is cut: it ends before byte"), "{stderr}");
    assert!(!stage.path("none.heapr").exists());
}

/// gdb leaves out what the kernel would by its filter.
#[test]
fn what_a_core_lacks_is_said_and_makes_leaks_possible_at_most() {
    let stage = Stage::new();
    let (program, _, _) = stage.build("left_out.c");
    let Some(core) = core_of(&stage, &program) else { return };
    let core = core.to_str().unwrap();
    let taken = stage.json(&["snapshot", "graph", "--core", core, "-o", "core.heapr"]);
    let notes = taken["notes"].to_string();
    assert!(notes.contains("left_out.bin") && notes.contains("not in the core file"), "{notes}");
    let leaks = stage.json(&["snapshot", "leaks", "core.heapr"]);
    let totals = &leaks["totals"];
    // Blocks that the file holds, that are unknown, and that are truly leaked. gdb writes memory
    // that is not in a file.
    assert_eq!((&totals["definite_count"], &totals["possible_count"]), (&0.into(), &210.into()), "{totals}");
    let Outcome { status, stderr, .. } = stage.heapr(&["snapshot", "leaks", "core.heapr", "--fail-if-leaks"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("--fail-if-leaks cannot judge"), "{stderr}");
}
