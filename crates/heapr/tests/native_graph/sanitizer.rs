//! LeakSanitizer on the same programs at the same point: it must agree with the headers, as heapr
//! does in the other tests. For each difference a rule says why.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use heapr_testkit::not_run;

use crate::{ORDINARY, Stage, values, victims};

/// Programs besides the ordinary ones. Left out are `elsewhere.c`, on which the sanitizer crashes
/// because a block's pages are locked, and programs that are inspected as they end.
const PROGRAMS: [&str; 10] = [
    "nine_cases.c",
    "shapes.c",
    "threads.c",
    "other_stacks.c",
    "contended.c",
    "dead_places.c",
    "forked.c",
    "inside_of_blocks.cc",
    "typed.cc",
    "modules.c",
];

/// Function, number of its blocks that only the sanitizer calls leaked, and the reason.
const DIFFERENCES: [(&str, i64, &str); 4] = [
    (
        "as_argument",
        1,
        "what a thread was started with stands in its descriptor, which it does not look through",
    ),
    ("as_result", 1, "what an ended thread has left stands in its descriptor until somebody waits for it"),
    ("one_past", 1, "a pointer to the byte behind a block is no reference for it, a doubtful one for heapr"),
    ("forgotten_by_module", -1, "it does not see allocations in a namespace of dlmopen"),
];

/// A further difference on one processor, by its number in ELF: the general registers for which it
/// asks the kernel have no vectors there.
const ON_ONE_PROCESSOR: (u16, &str, i64) = (183, "in_vector_register", 1);

#[test]
fn the_compilers_leak_check_says_the_same() {
    let stage = Stage::new();
    let probe = stage.path("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }").unwrap();
    if !compile(&probe, &stage.path("probe"), &[]) {
        not_run("the compiler has no -fsanitize=leak");
        return;
    }
    let mut differences: BTreeMap<String, i64> = BTreeMap::new();
    let (mut equal, mut all) = (0, 0);
    for name in PROGRAMS.into_iter().chain(ORDINARY) {
        let text = Stage::text(name);
        let program = stage.path(&format!("{name}.exe"));
        let flags: Vec<&str> = values(&text, "build").flat_map(str::split_whitespace).collect();
        assert!(compile(&victims().join(name), &program, &flags), "{name} does not compile");
        let mut command = Command::new(&program);
        // LeakSanitizer cannot check a traced program, so that the program runs by itself.
        command.env("LSAN_OPTIONS", "allocator_may_return_null=1");
        if let Some(library) = values(&text, "library").next() {
            let output = stage.path("library.so");
            let status = Command::new("gcc")
                .args(["-g", "-O1", "-w", "-fPIC", "-shared", "-o"])
                .arg(&output)
                .arg(victims().join(library))
                .status();
            assert!(status.unwrap().success());
            command.arg(output);
        }
        let output = command.output().unwrap();
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!report.contains("fatal error"), "{name}: {report}");
        let found = leaked_in(&report);
        for (function, count) in claimed(&text) {
            let theirs = found.get(&function).copied().unwrap_or(0);
            all += count.max(theirs);
            equal += count.min(theirs);
            if theirs != count {
                differences.insert(function, theirs - count);
            }
        }
    }
    let mut explained: BTreeMap<String, i64> =
        DIFFERENCES.iter().map(|&(function, more, _)| (function.to_owned(), more)).collect();
    let (elf_number, function, more) = ON_ONE_PROCESSOR;
    if heapr_known::machine::HERE.elf_number == elf_number {
        explained.insert(function.to_owned(), more);
    }
    assert_eq!(differences, explained);
    assert!(equal * 100 >= all * 97, "{equal} of {all}");
}

fn compile(source: &Path, program: &Path, flags: &[&str]) -> bool {
    let compiler = if source.extension().is_some_and(|it| it == "cc") { "g++" } else { "gcc" };
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-w", "-fno-builtin", "-fno-optimize-sibling-calls", "-fsanitize=leak"]);
    command.args(["-DWITH_SANITIZER", "-o"]).arg(program).arg(source).args(flags);
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns the blocks that a header calls leaked, by the function that allocated them.
fn claimed(text: &str) -> HashMap<String, i64> {
    let mut leaked = HashMap::new();
    for claim in values(text, "leaks") {
        let value = |key: &str| claim.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
        let is_leaked = matches!(value("kind"), Some("definite" | "indirect"));
        let count = value("count").filter(|_| is_leaked).map_or(0, |count| count.parse().unwrap());
        *leaked.entry(value("frame").unwrap().to_owned()).or_default() += count;
    }
    leaked
}

/// Parses a report of leaks by function: `Direct leak of 40 byte(s) in 1 object(s) allocated
/// from:`, then frames, the first of which is the allocator's.
fn leaked_in(report: &str) -> HashMap<String, i64> {
    let mut leaked = HashMap::new();
    let mut count = 0;
    for line in report.lines().map(str::trim) {
        if line.contains(" leak of ") {
            let of = line.split(" in ").nth(1).and_then(|rest| rest.split(' ').next());
            count = of.and_then(|count| count.parse().ok()).unwrap_or(0);
        } else if line.starts_with("#1 ") && count > 0 {
            let name = line.split(" in ").nth(1).unwrap_or_default();
            let name = name.split([' ', '(']).next().unwrap_or_default();
            *leaked.entry(name.to_owned()).or_default() += count;
            count = 0;
        }
    }
    leaked
}
