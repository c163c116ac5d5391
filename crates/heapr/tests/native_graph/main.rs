//! Graphs of native heaps: programs whose blocks are held or leaked in every way, with the expected
//! verdicts in their headers (`victims/graph`).

mod contents;
mod copies;
mod cores;
mod growth;
mod hard_cases;
mod left_behind;
mod names;
mod planted;
mod python_heaps;
mod refused;
mod sanitizer;

use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapr_testkit::{Outcome, wait_until};
use serde_json::Value;

const HEAPR: &str = env!("CARGO_BIN_EXE_heapr");

fn victims() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/graph")
}

/// Stage with a session named `graph`, which ends with it.
struct Stage {
    stage: heapr_testkit::Stage,
    pid: Option<u32>,
}

impl Deref for Stage {
    type Target = heapr_testkit::Stage;

    fn deref(&self) -> &Self::Target {
        &self.stage
    }
}

impl Stage {
    fn new() -> Self {
        Self { stage: heapr_testkit::Stage::new(HEAPR), pid: None }
    }

    /// Returns the source of a victim.
    fn text(name: &str) -> String {
        fs::read_to_string(victims().join(name)).unwrap()
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let mut outcome = self.heapr(arguments);
        // On a very busy machine a copy may live too long to be read; another try may succeed.
        for _ in 0..5 {
            if outcome.status == 0 || !outcome.stderr.contains("its copy would have lived for longer") {
                break;
            }
            outcome = self.heapr(arguments);
        }
        assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Builds a victim, and the library that it loads.
    fn build(&self, name: &str) -> (PathBuf, Vec<String>, String) {
        self.build_with(name, &[])
    }

    fn build_with(&self, name: &str, more: &[&str]) -> (PathBuf, Vec<String>, String) {
        let source = victims().join(name);
        let text = fs::read_to_string(&source).unwrap();
        let program = self.path("program");
        let compile = |source: &Path, output: &Path, more: &[&str]| {
            let compiler = if source.extension().is_some_and(|it| it == "cc") { "g++" } else { "gcc" };
            let status = Command::new(compiler)
                .args(["-g", "-O1", "-w", "-fno-builtin", "-fno-optimize-sibling-calls", "-o"])
                .arg(output)
                .arg(source)
                .args(more)
                .status()
                .unwrap();
            assert!(status.success(), "{} does not compile", source.display());
        };
        let flags = values(&text, "build").flat_map(str::split_whitespace);
        let flags: Vec<&str> = flags.chain(more.iter().copied()).collect();
        compile(&source, &program, &flags);
        let mut arguments = Vec::new();
        for library in values(&text, "library") {
            let output = self.path("library.so");
            compile(&victims().join(library), &output, &["-fPIC", "-shared"]);
            arguments.push(output.to_str().unwrap().to_owned());
        }
        (program, arguments, text)
    }

    /// Starts a victim in a session and waits until it is ready.
    fn start(&mut self, program: &Path, arguments: &[String]) -> u32 {
        let out = File::create(self.path("out")).unwrap();
        let status = self
            .command(&["start", "graph", "-q", "-o", "trace.heapr", "--"])
            .arg(program)
            .args(arguments)
            .stdout(out)
            .stderr(File::create(self.path("err")).unwrap())
            .status()
            .unwrap();
        assert!(status.success());
        let pid = wait_until("the program is ready", || {
            let out = fs::read_to_string(self.path("out")).unwrap();
            let line =
                out.lines().find_map(|line| line.strip_prefix("ready ")).filter(|_| out.ends_with('\n'))?;
            line.parse().ok()
        });
        self.pid = Some(pid);
        wait_until("the process is known", || lists(&self.json(&["status", "graph"]), pid).then_some(()));
        pid
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.heapr(&["stop", "graph", "-q"]);
        if let Some(pid) = self.pid {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// Whether a status contains the process as a live one.
fn lists(value: &Value, pid: u32) -> bool {
    match value {
        Value::Object(fields) => {
            let is_it = fields.get("pid").is_some_and(|it| *it == pid);
            is_it && fields.get("is_alive").is_some_and(|it| *it == true)
                || fields.values().any(|field| lists(field, pid))
        }
        Value::Array(items) => items.iter().any(|item| lists(item, pid)),
        _ => false,
    }
}

fn values<'t>(text: &'t str, key: &str) -> impl Iterator<Item = &'t str> {
    let start = format!("// {key}: ");
    text.lines().filter_map(move |line| line.strip_prefix(&start))
}

/// Amounts that a header claims for the blocks of one function.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Found {
    count: u64,
    bytes: u64,
    retained: u64,
}

fn check(leaks: &Value, text: &str) {
    let mut wrong = Vec::new();
    let claims: Vec<&str> = values(text, "leaks").collect();
    assert!(!claims.is_empty());
    for claim in claims {
        let value = |key: &str| {
            claim.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
        };
        let (frame, kind) = (value("frame").unwrap(), value("kind").unwrap());
        let of_frame: Vec<&Value> = leaks["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|group| {
                let mut symbols = group["frames"].as_array().unwrap().iter().map(|frame| &frame["symbol"]);
                symbols
                    .any(|name| name.as_str().and_then(|name| name.split('(').next()) == Some(frame.as_str()))
            })
            .collect();
        let mut found = Found::default();
        for group in of_frame.iter().filter(|group| group["kind"] == kind.as_str()) {
            found.count += group["count"].as_u64().unwrap();
            found.bytes += group["bytes"].as_u64().unwrap();
            found.retained += group["retained_bytes"].as_u64().unwrap();
        }
        let number = |key: &str| value(key).map(|text| text.parse::<u64>().unwrap());
        let is_right = if kind == "reachable" {
            of_frame.is_empty()
        } else {
            number("count").is_none_or(|count| count == found.count)
                && number("bytes").is_none_or(|bytes| bytes == found.bytes)
                && number("retained").is_none_or(|retained| retained == found.retained)
                && value("type")
                    .is_none_or(|name| of_frame.iter().all(|group| group["type"] == name.as_str()))
        };
        if !is_right {
            wrong.push(format!("{claim}: {of_frame:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}\n{}", wrong.join("\n"), leaks["notes"], leaks["totals"]);
}

/// Runs a victim, takes its graph, and checks the claims of its header.
fn verdicts(name: &str) -> (Stage, Value) {
    let mut stage = Stage::new();
    let (program, arguments, text) = stage.build(name);
    let pid = stage.start(&program, &arguments);
    stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
    let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
    check(&leaks, &text);
    (stage, leaks)
}

#[test]
fn two_blocks_can_be_held_in_nine_ways() {
    let (stage, leaks) = verdicts("nine_cases.c");
    assert_eq!(leaks["schema"], "heapr.leaks/1");
    assert_eq!(leaks["totals"]["definite_count"], 3);
    // Exit statuses, and suppressed leaks.
    let Outcome { status, .. } = stage.heapr(&["snapshot", "leaks", "trace.heapr", "--fail-if-leaks"]);
    assert_eq!(status, 1);
    fs::write(stage.path("known"), "leak:^b3$\nleak:a4\nleak:a9\nrace:x\n").unwrap();
    let arguments = ["snapshot", "leaks", "trace.heapr", "--fail-if-leaks", "--suppress", "known"];
    let rest = stage.json(&arguments);
    assert_eq!(rest["totals"]["definite_count"], 0, "{rest}");
    assert_eq!(rest["totals"]["suppressed_count"], 3);
    let Outcome { status, stderr, .. } = stage.heapr(&["snapshot", "leaks", "known"]);
    assert_eq!(status, 2, "{stderr}");
}

#[test]
fn what_holds_a_block_is_named() {
    let (stage, _) = verdicts("nine_cases.c");
    let found = stage.json(&["snapshot", "query", "trace.heapr", "--name", "b2"]);
    let id = find_id(&found).unwrap_or_else(|| panic!("no block of b2: {found}"));
    let retainers = stage.json(&["snapshot", "retainers", "trace.heapr", &format!("@{id}")]);
    let paths = retainers["paths"].to_string();
    assert!(paths.contains("program!roots+0x10"), "{paths}");
    stage.ok(&["snapshot", "export", "trace.heapr", "-o", "out.heapsnapshot"]);
    let exported = stage.json(&["snapshot", "retainers", "out.heapsnapshot", &format!("@{id}")]);
    assert_eq!(exported["paths"], retainers["paths"]);
}

fn find_id(value: &Value) -> Option<u64> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("id").and_then(Value::as_u64);
            own.or_else(|| fields.values().find_map(find_id))
        }
        Value::Array(items) => items.iter().find_map(find_id),
        _ => None,
    }
}

#[test]
fn pointers_to_the_inside_count_if_the_block_explains_them() {
    verdicts("inside_of_blocks.cc");
}

#[test]
fn chains_trees_and_circles_are_one_leak_each() {
    verdicts("shapes.c");
}

#[test]
fn threads_hold_by_stack_registers_and_thread_local_memory() {
    verdicts("threads.c");
    verdicts("wide_registers.c");
}

#[test]
fn memory_besides_the_heap_and_the_kernel_hold() {
    verdicts("elsewhere.c");
    verdicts("huge_pages.c");
}

#[test]
fn coroutines_and_handlers_hold_by_their_own_stacks() {
    verdicts("other_stacks.c");
}

#[test]
fn libraries_hold_by_their_data_in_every_namespace() {
    verdicts("modules.c");
}

#[test]
fn what_threads_hold_in_passing_is_no_leak() {
    verdicts("contended.c");
}

#[test]
fn dead_stack_holds_nothing_and_keys_by_the_hundred_hold() {
    verdicts("dead_places.c");
}

#[test]
fn a_child_of_a_program_with_threads_is_a_program_of_its_own() {
    verdicts("forked.c");
}

#[test]
fn at_its_end_a_program_has_given_back_what_it_gives_back() {
    let stage = Stage::new();
    let (program, _, text) = stage.build("ended.cc");
    stage.ok(&["run", "-q", "--graph-at-exit", "-o", "trace.heapr", "--", program.to_str().unwrap()]);
    let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
    check(&leaks, &text);
}

#[test]
fn a_program_that_does_not_end_by_exit_has_no_graph_and_that_is_said() {
    let stage = Stage::new();
    let (program, _, _) = stage.build("ends_otherwise.c");
    let program = program.to_str().unwrap();
    for (how, status) in [("_", 1), ("q", 1), ("s", 128 + 15)] {
        let run =
            ["run", "-f", "--graph-at-exit", "--fail-on", "leak", "-o", "trace.heapr", "--", program, how];
        let Outcome { status: ended, stderr, .. } = stage.heapr(&run);
        assert_eq!(ended, status, "{how}: {stderr}");
        assert!(stderr.contains("no graph was taken at its end"), "{how}: {stderr}");
        let Outcome { status: ended, stderr, .. } = stage.heapr(&["snapshot", "leaks", "trace.heapr"]);
        assert_eq!(ended, 2);
        assert!(stderr.contains("no graph was taken at its end"), "{how}: {stderr}");
    }
    let run = ["run", "-f", "--graph-at-exit", "--fail-on", "leak", "-o", "trace.heapr", "--", program, "e"];
    let Outcome { status: ended, stderr, .. } = stage.heapr(&run);
    assert!(ended == 0 && !stderr.contains("no graph was taken"), "{stderr}");
}

/// Programs with ordinary ways to hold and to leak, which the compiler's check is compared on too.
const ORDINARY: [&str; 10] = [
    "globals.c",
    "self_pointers.c",
    "sizes.c",
    "grown.c",
    "search_trees.c",
    "shared_pointers.cc",
    "handed_on.c",
    "library_keeps.c",
    "hash_table.c",
    "doubly_linked.c",
];

#[test]
fn ordinary_ways_to_hold_and_to_leak_are_told_apart() {
    for name in ORDINARY {
        verdicts(name);
    }
}

#[test]
fn each_program_has_a_test() {
    let own = [
        include_str!("main.rs"),
        include_str!("contents.rs"),
        include_str!("copies.rs"),
        include_str!("cores.rs"),
        include_str!("growth.rs"),
        include_str!("hard_cases.rs"),
        include_str!("left_behind.rs"),
        include_str!("names.rs"),
        include_str!("planted.rs"),
        include_str!("refused.rs"),
    ]
    .concat();
    for entry in fs::read_dir(victims()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_program = [".c", ".cc", ".rs"].iter().any(|end| name.ends_with(end));
        assert!(
            !is_program || own.contains(&format!("\"{name}\"")) || name == "module_with_data.c",
            "{name}"
        );
    }
}
