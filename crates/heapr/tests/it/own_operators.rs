//! Programs with their own operator new and delete: each block is recorded once, wherever it comes
//! from. `victims/own_operators.cc` has all forms.

use std::path::Path;
use std::process::Command;

use crate::recording::{Recording, Settings, record};

/// Makes 1,000 blocks of 100 bytes and as many of 300, and frees every second.
const MAIN: &str = r"
#include <cstdio>
struct Small { char bytes[100]; };
struct Large { char bytes[300]; };
int main() {
    for (int number = 0; number < 1000; number++) {
        Small *volatile small = new Small;
        Large *volatile large = new Large;
        if (number % 2) { delete small; delete large; }
    }
    return 0;
}
";

/// Operators that put a header before each block, and allocate by malloc.
const WITH_HEADER: &str = r"
#include <cstdlib>
#include <new>
void *operator new(size_t size) {
    char *block = static_cast<char *>(malloc(size + 16));
    if (!block) throw std::bad_alloc();
    return block + 16;
}
void operator delete(void *block) noexcept { if (block) free(static_cast<char *>(block) - 16); }
void operator delete(void *block, size_t) noexcept { operator delete(block); }
";

/// Operators with a pool for small blocks, and malloc for large ones.
const POOL: &str = r"
#include <cstdlib>
#include <new>
#include <sys/mman.h>
static char *pool, *next;
static const size_t POOL_BYTES = 1 << 20;
static volatile long freed;
void *operator new(size_t size) {
    if (size > 128) {
        void *block = malloc(size);
        if (!block) throw std::bad_alloc();
        return block;
    }
    if (!pool) pool = next = static_cast<char *>(mmap(nullptr, POOL_BYTES, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void *block = next;
    next += (size + 15) / 16 * 16;
    return block;
}
void operator delete(void *block) noexcept {
    freed = freed + 1;
    if (block < pool || block >= pool + POOL_BYTES) free(block);
}
void operator delete(void *block, size_t) noexcept { operator delete(block); }
";

/// Operators that never free: operator delete has one byte of code, without room for a jump.
const NOTHING_FREED: &str = r"
#include <new>
#include <sys/mman.h>
static char *pool, *next;
void *operator new(size_t size) {
    if (!pool) pool = next = static_cast<char *>(mmap(nullptr, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void *block = next;
    next += (size + 15) / 16 * 16;
    return block;
}
void operator delete(void *) noexcept {}
void operator delete(void *, size_t) noexcept {}
";

/// Records the program. `library`: the operators lie in a stripped library that exports them.
fn recorded(folder: &Path, operators: &str, library: bool) -> Recording {
    std::fs::write(folder.join("main.cc"), MAIN).unwrap();
    std::fs::write(folder.join("operators.cc"), operators).unwrap();
    let line = if library {
        "g++ -O1 -s -shared -fPIC -o liboperators.so operators.cc && g++ -O1 -g -o program main.cc -L. -loperators -Wl,-rpath,$PWD"
    } else {
        "g++ -O1 -g -o program main.cc operators.cc"
    };
    let built = Command::new("sh").args(["-c", line]).current_dir(folder).status().unwrap();
    assert!(built.success());
    let program = folder.join("program").display().to_string();
    let recording = record(&[program], &Settings::default());
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    recording
}

fn number_of(recording: &Recording, key: &str) -> Option<u64> {
    let report = recording.json(&["report", "--totals", "--require-frames", "main"]);
    report["totals"][key].as_u64()
}

fn notices(recording: &Recording) -> String {
    recording.json(&["info"])["notices"].to_string()
}

#[test]
fn operators_over_malloc_are_seen_at_malloc_alone() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recorded(folder.path(), WITH_HEADER, false);
    assert_eq!(number_of(&recording, "alloc_count"), Some(2000));
    assert_eq!(number_of(&recording, "outstanding_bytes"), Some(500 * (116 + 316)));
    assert_eq!(notices(&recording), "[]");
}

#[test]
fn operators_over_a_pool_and_malloc_count_each_block_once() {
    for library in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), POOL, library);
        assert_eq!(number_of(&recording, "alloc_count"), Some(2000), "library: {library}");
        assert_eq!(number_of(&recording, "outstanding_bytes"), Some(500 * (100 + 300)), "library: {library}");
        assert_eq!(recording.json(&["report", "--totals"])["totals"]["unmatched_frees"].as_u64(), Some(0));
        assert_eq!(notices(&recording), "[]");
    }
}

#[test]
fn blocks_of_an_operator_whose_delete_does_nothing_stay_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let recording = recorded(folder.path(), NOTHING_FREED, false);
    assert_eq!(number_of(&recording, "alloc_count"), Some(2000));
    assert_eq!(number_of(&recording, "outstanding_bytes"), Some(1000 * (100 + 300)));
    let said = notices(&recording);
    assert!(said.contains("it does nothing and has no room for a jump"), "{said}");
}
