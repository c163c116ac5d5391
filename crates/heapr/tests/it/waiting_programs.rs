//! Programs that begin their work on request: recorded from their start, and attached to before the
//! work. Both recordings must be equal.

use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, not_run};
use serde_json::Value;

use crate::recording::{Recording, Settings, record, with_sessions};

const BEGIN: &str = r"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone, used)) static
static void wait_for_work(void) {
    char line[8];
    if (!getenv(`VICTIM_WAITS`)) return;
    puts(`ready`);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) _exit(9);
}
";

/// Builds the program; `None` if a library is missing.
fn built(folder: &Path, source: &str, libraries: &[&str]) -> Option<PathBuf> {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, format!("{BEGIN}{source}").replace('`', "\"")).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&file).args(libraries);
    let output = gcc.output().unwrap();
    if !output.status.success() && !libraries.is_empty() {
        not_run(format!("no program can be linked with {libraries:?}"));
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Attaches to the program before its work, and records the rest of its life.
fn attached(program: &Path) -> Recording {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace.heapr");
    let mut program = Command::new(program)
        .env("VICTIM_WAITS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(program.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let (pid, name) = (program.id().to_string(), format!("waiting-{}", program.id()));
    let heapr = |words: &[&str]| with_sessions(scratch.path(), words);
    let started = heapr(&["start", &name, "--pid", &pid, "-o", trace.to_str().unwrap()]);
    program.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let status = program.wait().unwrap();
    let stopped = heapr(&["stop", &name]);
    assert_eq!(started.status, 0, "{}", started.stderr);
    assert!(status.success(), "{status}");
    assert_eq!(stopped.status, 0, "{}", stopped.stderr);
    let outcome = Outcome { status: 0, stdout: String::new(), stderr: stopped.stderr };
    Recording::of_file(&trace, scratch, outcome)
}

fn both(program: &Path) -> [Recording; 2] {
    let run = record(&[program.to_str().unwrap().to_owned()], &Settings::default());
    assert_eq!(run.outcome.status, 0, "{}", run.outcome.stderr);
    [run, attached(program)]
}

const TREES: &str = r"
#include <talloc.h>
static int ended(char *block) { (void)block; talloc_free(talloc_size(NULL, 10)); return 0; }
int main(void) {
    wait_for_work();
    void *pool = talloc_pool(NULL, 1 << 20);
    void *first = talloc_size(pool, 100);
    void *below = talloc_size(first, 50);
    char *text = talloc_strdup(below, `twelve bytes`);
    text = talloc_asprintf_append(text, ` and %d more`, 9);
    void *moved = talloc_realloc_size(pool, talloc_size(pool, 1000), 3000);
    void *large = talloc_size(pool, 2 << 20);
    void *leaves = talloc_realloc_size(pool, talloc_size(pool, 64), 3 << 20);
    void *other = talloc_named_const(NULL, 0, `other`);
    void *stolen = talloc_steal(other, talloc_zero_size(first, 70));
    char *checked = talloc_size(first, 8);
    talloc_set_destructor(checked, ended);
    for (int number = 0; number < 1000; number++) talloc_array(first, int, 10);
    talloc_free(first);
    talloc_free(stolen);
    void *kept = talloc_memdup(pool, `kept`, 5);
    void *deep = talloc_size(talloc_pool(pool, 10000), 33);
    for (int number = 0; number < 10; number++) talloc_size(deep, 20);
    talloc_free_children(deep);
    talloc_unlink(pool, talloc_size(pool, 44));
    return !(moved && large && leaves && kept);
}
";

#[test]
fn blocks_in_a_pool_of_talloc_go_with_the_block_that_they_hang_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path(), TREES, &["-ltalloc"]) else { return };
    for recording in both(&program) {
        let report = recording.json(&["report", "--totals"]);
        let heaps = report["heaps"].as_array().unwrap();
        let of = |name: &str, field: &str| {
            heaps.iter().find(|heap| heap["heap"] == name).and_then(|heap| heap[field].as_u64())
        };
        // 9 by themselves, of which one is grown, one moved, one left over; 1000; 10; 1.
        assert_eq!(of("talloc", "alloc_count"), Some(1022), "{report}");
        assert_eq!(of("talloc", "realloc_count"), Some(2), "{report}");
        // A moved one, a kept one, and the one in the inner pool.
        assert_eq!(of("talloc", "outstanding_count"), Some(3), "{report}");
        assert_eq!(of("talloc", "outstanding_bytes"), Some(3000 + 5 + 33), "{report}");
        assert_eq!(of("talloc", "unmatched_frees"), Some(0), "{report}");
        // Two blocks that are too large for the pool, and those outside of a pool; the pool's own
        // memory is not counted.
        let of_malloc = of("malloc", "outstanding_bytes").unwrap();
        assert!((5 << 20..(5 << 20) + (64 << 10)).contains(&of_malloc), "{report}");
    }
}

const FILLED: &str = r"
#include <stdlib.h>
#include <string.h>
void *malloc(size_t bytes) {
    void *block = calloc(1, bytes);
    if (block) memset(block, 0xff, bytes);
    return block;
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    void *block = NULL;
    return posix_memalign(&block, alignment, bytes) ? NULL : memset(block, 0xff, bytes);
}
";

const FILLS: &str = r"
APART unsigned char *mine(size_t bytes) { return malloc(bytes); }
APART unsigned char *aligned(size_t bytes) { return aligned_alloc(64, bytes); }
APART unsigned char *zeroed(size_t bytes) { return calloc(1, bytes); }
int main(void) {
    wait_for_work();
    for (int number = 0; number < 300; number++) {
        unsigned char *blocks[] = {mine(100), aligned(128), zeroed(100)};
        if (blocks[0][50] != 0xff || blocks[1][50] != 0xff || blocks[2][50]) return 1;
        for (int place = 0; place < 3; place++) free(blocks[place]);
    }
    return 0;
}
";

#[test]
fn a_librarys_malloc_that_calls_the_c_librarys_functions_is_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("filled.c"), folder.path().join("libfilled.so"));
    std::fs::write(&source, FILLED).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fno-builtin", "-fPIC", "-shared", "-o"]).arg(&library).arg(&source);
    assert!(gcc.status().unwrap().success());
    let program = built(folder.path(), FILLS, &[library.to_str().unwrap()]).unwrap();
    for recording in both(&program) {
        for function in ["mine", "aligned", "zeroed"] {
            let report = recording.json(&["report", "--totals", "--require-frames", function]);
            assert_eq!(report["totals"]["alloc_count"], 300, "{function}: {report}");
            assert_eq!(report["totals"]["outstanding_count"], 0, "{function}: {report}");
        }
    }
}

const MOVED: &str = r"
APART void takes_by_brk(void) {
    char *end = sbrk(20 << 20);
    memset(end, 1, 20 << 20);
    if (brk(end + (24 << 20)) != 0) _exit(8);
    memset(end + (20 << 20), 1, 4 << 20);
}
APART void takes_by_mmap(void) {
    char *mapped = mmap(NULL, 12 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) _exit(7);
    memset(mapped, 1, 12 << 20);
}
int main(void) {
    free(malloc(100));
    wait_for_work();
    takes_by_brk();
    takes_by_mmap();
    /* The C library's own: no mapping of the program's. */
    for (int number = 0; number < 400; number++) memset(malloc(1000), 1, 1000);
    memset(malloc(1 << 20), 1, 1 << 20);
    return 0;
}
";

#[test]
fn what_a_program_maps_or_takes_by_brk_is_told_after_an_attach_too() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), MOVED, &[]).unwrap();
    for recording in both(&program) {
        let info = recording.json(&["info"]);
        let account = &info["own_memory"][0];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let all = number(&account["anonymous_bytes"]);
        assert!(all >= 37 * MIB, "{info:#}");
        assert!(number(&account["explained_bytes"]) * 100 >= all * 95, "{account:#}");
        let parts = account["parts"].as_array().unwrap();
        let mapped = parts.iter().find(|part| part["what"] == "mapped by program");
        let bytes = mapped.map_or(0, |part| number(&part["bytes"]));
        assert!((36 * MIB..37 * MIB).contains(&bytes), "{account:#}");
        let text = recording.text(&["report", "--totals"]);
        assert!(text.contains("mapped by program"), "{text}");
    }
}

const SHARED_MEMORY: &str = r"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
void *volatile keep[5000];
APART void in_child(int at) { keep[at] = malloc(1234); }
APART void in_clone(int at) { keep[1000 + at] = malloc(555); }
APART void in_parent(int at) { keep[2000 + at] = malloc(777); }
static int cloned(void *at) {
    for (int number = 0; number < 10; number++) in_clone((int)(long)at + number);
    _exit(0);
}
int main(void) {
    static char stack[1 << 16] __attribute__((aligned(16)));
    int status;
    wait_for_work();
    for (int at = 0; at < 400; at += 10) {
        pid_t child = vfork();
        if (child == 0) {
            for (int number = 0; number < 10; number++) in_child(at + number);
            execl(`/bin/true`, `true`, (char *)NULL);
            _exit(1);
        }
        waitpid(child, &status, 0);
        child = clone(cloned, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)(long)at);
        waitpid(child, &status, 0);
        for (int number = 0; number < 10; number++) in_parent(at + number);
    }
    return 0;
}
";

#[test]
fn calls_of_children_that_share_the_memory_are_the_programs_and_cost_no_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), SHARED_MEMORY, &[]).unwrap();
    for recording in both(&program) {
        for function in ["in_child", "in_clone", "in_parent"] {
            let report = recording.json(&["report", "--totals", "--require-frames", function]);
            let totals = &report["totals"];
            assert_eq!(totals["alloc_count"], 400, "{function}: {report}");
            assert_eq!(totals["outstanding_count"], 400, "{function}: {report}");
        }
        let loss = &recording.json(&["info"])["loss"];
        assert_eq!((&loss["events_lost"], &loss["records_invalid"]), (&0.into(), &0.into()), "{loss}");
    }
}

const THREADS_ALONE: &str = r"
#include <pthread.h>
static void *nothing(void *argument) { free(malloc(10)); return argument; }
int main(void) {
    wait_for_work();
    for (int number = 0; number < 500; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
";

#[test]
fn nothing_is_found_in_a_program_that_does_nothing_in_500_threads() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), THREADS_ALONE, &["-pthread"]).unwrap();
    for recording in both(&program) {
        let found = recording.json(&["explain"]);
        assert_eq!(found["findings"], serde_json::json!([]), "{found}");
        let notices = &recording.json(&["info"])["notices"];
        assert_eq!(notices, &serde_json::json!([]), "{notices}");
    }
}
