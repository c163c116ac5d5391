//! Programs without a loader: heapr's counts are the program's own.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::recording::{Recording, Settings, record};

/// Prints at its end the number of its allocations and frees, and their bytes.
const COUNTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static unsigned long allocs, frees, bytes;
__attribute__((noinline)) static void *leaf(size_t size) {
    allocs++; bytes += size;
    void *block = malloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}
int main(void) {
    for (int i = 1; i <= 20000; i++) {
        void *block = leaf(i % 500 + 1);
        if (i % 4 == 0) { block = realloc(block, 1000); allocs++; frees++; bytes += 1000; }
        if (i % 10) { free(block); frees++; }
    }
    void *placed, *zeroed = calloc(10, 30), *aligned = aligned_alloc(64, 640);
    if (posix_memalign(&placed, 128, 777) || !zeroed || !aligned) return 2;
    allocs += 3; bytes += 300 + 640 + 777;
    char text[100];
    int length = snprintf(text, sizeof text, "%lu %lu %lu\n", allocs, frees, bytes);
    return write(1, text, length) == length ? 3 : 2;
}
"#;

/// Twenty threads, four at a time, which reuse each other's thread state.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_key_t key;
static void *work(void *nothing) {
    pthread_setspecific(key, malloc(70));
    for (int i = 0; i < 1000; i++) { void *volatile block = malloc(123); free(block); }
    return nothing;
}
int main(void) {
    pthread_t threads[4];
    pthread_key_create(&key, free);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    }
    return 0;
}
"#;

/// Builds a program; `None` if the compiler is not installed.
fn built(folder: &Path, compiler: &str, options: &[&str], code: &str) -> Option<String> {
    std::fs::write(folder.join("program.c"), code).unwrap();
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command
        .args(["-g", "-O1", "-fno-builtin", "-pthread"])
        .args(options)
        .arg("program.c")
        .arg("-o")
        .arg(&program);
    match command.current_dir(folder).status() {
        Ok(status) => {
            assert!(status.success(), "{compiler} {options:?}");
            Some(program.to_str().unwrap().to_owned())
        }
        Err(_) => {
            heapr_testkit::not_run(format!("{compiler} is not there"));
            None
        }
    }
}

fn totals(recording: &Recording, process: &str) -> [u64; 3] {
    // The C library allocates a few blocks before `main`.
    let report = recording.json(&["report", "--totals", "--require-frames", "!main"]);
    let heaps = report["heaps"].as_array().unwrap();
    let of_it = || heaps.iter().filter(|heap| heap["process"] == process);
    ["alloc_count", "free_count", "alloc_bytes"]
        .map(|key| of_it().filter_map(|heap| heap[key].as_u64()).sum::<u64>())
}

fn counts_of(text: &str) -> [u64; 3] {
    let counts: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    counts.try_into().unwrap()
}

const WAYS: [(&str, &[&str]); 3] =
    [("gcc", &["-static"]), ("gcc", &["-static-pie"]), ("musl-gcc", &["-static"])];

#[test]
fn a_static_programs_own_counts_are_those_of_its_recording() {
    for (compiler, options) in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = built(folder.path(), compiler, options, COUNTS) else { continue };
        // The program by itself, and as one that another program execs.
        for command in
            [vec![program.clone()], vec!["sh".to_owned(), "-c".to_owned(), format!("exec {program}")]]
        {
            let recording = record(&command, &Settings::default());
            let outcome = &recording.outcome;
            assert_eq!(outcome.status, 3, "{compiler} {options:?}: {}", outcome.stderr);
            assert_eq!(
                totals(&recording, "program"),
                counts_of(&outcome.stdout),
                "{compiler} {options:?}: {command:?}"
            );
        }
        let recording = record(&[program], &Settings::default());
        let stacks: Value = recording.json(&["report", "--stacks", "--top", "50"]);
        let text = stacks.to_string();
        assert!(text.contains("leaf") && text.contains("main"), "{compiler} {options:?}: {text}");
    }
}

#[test]
fn threads_of_a_static_program_are_all_seen() {
    for (compiler, options) in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = built(folder.path(), compiler, options, THREADS) else { continue };
        let recording = record(&[program], &Settings::default());
        assert_eq!(recording.outcome.status, 0, "{compiler} {options:?}: {}", recording.outcome.stderr);
        let report = recording.json(&["report", "--totals", "--size", "123", "124"]);
        let heaps = report["heaps"].as_array().unwrap();
        let sum = |key: &str| heaps.iter().filter_map(|heap| heap[key].as_u64()).sum::<u64>();
        assert_eq!((sum("alloc_count"), sum("free_count")), (20_000, 20_000), "{compiler} {options:?}");
    }
}

#[test]
fn a_static_program_without_names_runs_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path(), "gcc", &["-static", "-s"], COUNTS) else { return };
    let outcome = record(&[program], &Settings::default()).outcome;
    assert_eq!(outcome.status, 3);
    assert!(
        outcome.stderr.contains("ran untraced: ") && outcome.stderr.contains("stripped"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn valgrinds_static_tools_load_a_program_that_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built(folder.path(), "gcc", &[], COUNTS) else { return };
    let command = ["valgrind", "--quiet", "--tool=none", &program].map(str::to_owned);
    let recording = record(&command, &Settings::default());
    assert_eq!(recording.outcome.status, 3, "{}", recording.outcome.stderr);
    let report = recording.json(&["report", "--totals", "--require-frames", "program!main"]);
    let heaps = report["heaps"].as_array().unwrap();
    let seen = ["alloc_count", "free_count", "alloc_bytes"]
        .map(|key| heaps.iter().filter_map(|heap| heap[key].as_u64()).sum::<u64>());
    assert_eq!(seen, counts_of(&recording.outcome.stdout));
}
