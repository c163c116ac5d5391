//! `heapr node`: Node started ready for snapshots, sampled and recorded.

use std::process::Command;

use crate::command;
use crate::node_server::{Program, SERVER, has_node};

const ALLOCATOR: &str = "
    globalThis.kept = [];
    function growing() { for (let i = 0; i < 2000; i++) kept.push({ name: 'growing ' + i, more: new Array(10).fill(i) }); }
    setInterval(growing, 20);
    console.log('ready');";

fn json(program: &Program, name: &str) -> serde_json::Value {
    let text = std::fs::read(program.folder.path().join(name)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_sampled_profile_names_the_function_that_allocates() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], ALLOCATOR, &[]);
    let pid = program.pid().to_string();
    let outcome = program.heapr(&["node", "sample", &pid, "-d", "2", "--interval", "4K", "-q"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.trim_end().ends_with(".heapprofile"), "{}", outcome.stdout);
    let profile = json(&program, outcome.stdout.trim_end());
    assert!(!profile["samples"].as_array().unwrap().is_empty());
    assert!(profile["head"].to_string().contains("\"growing\""), "{profile:#}");
    // Compared with the profile of a program that keeps no objects.
    let nothing = r#"{"head":{"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,
        "columnNumber":-1},"selfSize":0,"id":1,"children":[]},"samples":[]}"#;
    std::fs::write(program.folder.path().join("nothing.heapprofile"), nothing).unwrap();
    let file = outcome.stdout.trim_end();
    let compared =
        program.heapr(&["diff", "nothing.heapprofile", file, "--format", "json", "--fail-if-growth", "1"]);
    assert_eq!(compared.status, 1, "{compared:?}");
    let compared: serde_json::Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(compared["schema"], "heapr.snapshot.profile-diff/1");
    let first = &compared["rows"][0];
    assert_eq!((&first["function"], &first["certain"]), (&"growing".into(), &true.into()), "{compared:#}");
    assert!(first["error_bytes"].as_u64() < first["growth_bytes"].as_u64());
    let same = program.heapr(&["snapshot", "diff", file, file]);
    assert!(same.stdout.contains(": 0 B, from ") && !same.stdout.contains(" yes "), "{same:?}");
    std::fs::write(program.folder.path().join("other"), "{}").unwrap();
    let refused = program.heapr(&["diff", "other", file]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("only two of a kind can be compared"), "{refused:?}");
    assert_eq!(program.listening(), [0_u16; 0]);
}

#[test]
fn an_interrupt_ends_the_sampling_and_keeps_the_profile() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], ALLOCATOR, &[]);
    let pid = program.pid().to_string();
    // Before sampling begins there is no profile to keep; each round waits a bit longer.
    let mut rest = std::time::Duration::ZERO;
    heapr_testkit::wait_until("what was sampled is kept", || {
        let heapr = program.spawn_heapr(&["node", "sample", &pid, "-d", "1000", "-o", "p.heapprofile"]);
        program.wait_for_partial_file();
        std::thread::sleep(rest);
        rest += std::time::Duration::from_millis(100);
        Command::new("kill").args(["-INT", &heapr.id().to_string()]).status().unwrap();
        (program.finish(heapr).status == 0).then_some(())
    });
    assert!(json(&program, "p.heapprofile")["head"].is_object());
    assert_eq!(program.listening(), [0_u16; 0]);
}

#[test]
fn a_timeline_holds_stacks_and_samples() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], ALLOCATOR, &[]);
    let pid = program.pid().to_string();
    let outcome = program.heapr(&["node", "timeline", &pid, "-d", "1", "-o", "t.heaptimeline"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let timeline = json(&program, "t.heaptimeline");
    for part in ["trace_function_infos", "trace_tree", "samples"] {
        assert!(!timeline[part].as_array().unwrap().is_empty(), "{part}");
    }
    assert_eq!(program.listening(), [0_u16; 0]);
}

#[test]
fn a_program_started_ready_opens_no_port_and_writes_on_the_signal() {
    if !has_node() {
        return;
    }
    let words = ["node", "-q", "-o", "near the limit", "--", "sh", "-c", "exec node app.js"];
    let server = Program::start(command(&words), SERVER);
    assert_eq!(server.listening(), [server.port()]);
    let outcome = server.heapr(&["snapshot", "take", "--signal", "USR2", "-q", &server.pid().to_string()]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert_eq!(server.heap_files(), [outcome.stdout.trim_end()]);
}

#[test]
fn a_heap_that_runs_full_leaves_a_snapshot_behind() {
    if !has_node() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "const kept = []; for (;;) kept.push({ a: [1, 2, 3] });";
    std::fs::write(folder.path().join("app.js"), script).unwrap();
    let status = command(&["node", "-q", "-o", "near", "--", "node", "--max-old-space-size=20", "app.js"])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    let files: Vec<_> = std::fs::read_dir(folder.path().join("near")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(files[0].as_ref().unwrap().metadata().unwrap().len() > 1 << 20);
}

#[test]
fn the_status_of_the_program_is_passed_through() {
    let run = |program: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        command(&["node", "-q", "-o"])
            .arg(folder.path())
            .arg("--")
            .args(program)
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!(run(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(run(&["no-such-program"]), Some(127));
    assert_eq!(run(&["/etc/passwd"]), Some(126));
}
