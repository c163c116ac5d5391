//! Allocators inside of programs that a user tells of.

use std::process::Command;

use crate::recording::{Settings, record};

const SOURCE: &str = r"
#include <stddef.h>
static char pool[1 << 16];
static size_t used;
static volatile size_t given;
__attribute__((noinline, noclone, used)) static void *pool_take(void *from, size_t bytes) {
    (void)from;
    used += 128;
    return bytes ? pool + used : NULL;
}
__attribute__((noinline, noclone, used)) static void pool_give(void *from, void *block) {
    (void)from;
    given = given + (block != NULL);
}
int main(void) {
    void *volatile last = NULL;
    for (int number = 0; number < 40; number++) {
        last = pool_take(pool, 100);
        if (number % 4 == 0) pool_give(pool, last);
    }
    return 0;
}
";

const ALLOCATOR: &str =
    "allocator my pool\nheap my pool\nneeds pool_take\npool_take(-, size)\npool_give(-, block)\n";

#[test]
fn an_allocator_that_the_user_tells_of_is_a_heap_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("pool.c"), folder.path().join("pool"));
    std::fs::write(&source, SOURCE.replace('`', "\"")).unwrap();
    let built = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success());
    let file = folder.path().join("allocators");
    std::fs::write(&file, ALLOCATOR).unwrap();
    let options = ["--allocator", file.to_str().unwrap()];
    let settings = Settings { options: &options, ..Settings::default() };
    let recording = record(&[program.to_str().unwrap().to_owned()], &settings);
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let report = recording.json(&["report", "--totals"]);
    let heaps = report["heaps"].as_array().unwrap();
    let heap = heaps.iter().find(|heap| heap["heap"] == "my pool").unwrap_or_else(|| panic!("{report}"));
    let counts = (heap["alloc_count"].as_u64(), heap["outstanding_bytes"].as_u64());
    assert_eq!(counts, (Some(40), Some(3000)), "{heap}");
}

#[test]
fn a_file_of_allocators_that_is_none_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("allocators");
    std::fs::write(&file, "allocator a\nno function\n").unwrap();
    let options = ["--allocator", file.to_str().unwrap()];
    let settings = Settings { options: &options, ..Settings::default() };
    let outcome = record(&["true".to_owned()], &settings).outcome;
    assert!(outcome.stderr.contains("line 2"), "{}", outcome.stderr);
}
