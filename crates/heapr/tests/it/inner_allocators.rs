//! Embedded allocators of programs that a user names, or that only a debug file names.

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

const POOLS: &str = r"
#include <stdlib.h>
struct pool { struct pool *child; char *at; char bytes[1 << 14]; };
__attribute__((noinline, noclone, used)) static struct pool *pool_make(struct pool *parent) {
    struct pool *made = calloc(1, sizeof *made);
    made->at = made->bytes;
    if (parent) parent->child = made;
    return made;
}
__attribute__((noinline, noclone, used)) static void *pool_take(struct pool *from, size_t bytes) {
    void *taken = from->at;
    from->at += bytes;
    return taken;
}
static struct pool *current;
__attribute__((noinline, noclone, used)) static void *pool_take_current(size_t bytes) {
    struct pool **head = (struct pool **)current->at;
    current->at += bytes + sizeof *head;
    *head = current;
    return head + 1;
}
__attribute__((noinline, noclone, used)) static void *pool_grow(void *old, size_t bytes) {
    return (char *)old + bytes - bytes / 2;
}
__attribute__((noinline, noclone, used)) static void pool_end(struct pool *ended) {
    if (ended->child) pool_end(ended->child);
    free(ended);
}
static void *volatile given;
__attribute__((noinline, noclone, used)) static void pool_give_list(size_t unused, void *first) {
    (void)unused;
    given = first;
}
int main(void) {
    struct pool *one = pool_make(NULL), *other = pool_make(one), *last = pool_make(NULL);
    for (int number = 0; number < 10; number++) {
        given = pool_take(one, 100);
        given = pool_take(other, 200);
    }
    current = other;
    for (int number = 0; number < 5; number++)
        given = pool_take_current(40);
    void **list = pool_take(last, 64), **second = pool_take(last, 64);
    given = pool_take(last, 300);
    given = pool_grow(given, 400);
    list[1] = second;
    second[1] = NULL;
    pool_give_list(8, list);
    pool_end(one);
    return last == NULL;
}
";

const POOL_ALLOCATOR: &str = "allocator pools\nheap pools\nneeds pool_take\npool_take(pool, size)\n\
     pool_take_current(size) pool-before\npool_grow(block, size)\npool_make() quiet\npool_end(pool) clears\npool_give_list(more, block) chain\n";

#[test]
fn blocks_go_with_their_pool_and_what_pools_are_made_of_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("pools.c"), folder.path().join("pools"));
    std::fs::write(&source, POOLS).unwrap();
    let built = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(built.success());
    let file = folder.path().join("allocators");
    std::fs::write(&file, POOL_ALLOCATOR).unwrap();
    let options = ["--allocator", file.to_str().unwrap()];
    let settings = Settings { options: &options, ..Settings::default() };
    let recording = record(&[program.to_str().unwrap().to_owned()], &settings);
    assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
    let report = recording.json(&["report", "--totals"]);
    let heaps = report["heaps"].as_array().unwrap();
    let of = |name: &str| heaps.iter().find(|heap| heap["heap"] == name);
    let pools = of("pools").unwrap_or_else(|| panic!("{report}"));
    let number = |field: &str| pools[field].as_u64();
    // 25 blocks in two pools, one of which is nested in the other; two of a list; one that was
    // resized.
    assert_eq!(number("alloc_count"), Some(29), "{pools}");
    assert_eq!((number("outstanding_count"), number("outstanding_bytes")), (Some(1), Some(400)), "{pools}");
    let of_malloc = of("malloc").and_then(|heap| heap["alloc_bytes"].as_u64()).unwrap_or(0);
    assert!(of_malloc < 1 << 14, "{report}");
}

const STRIPPED: &str = r"
#include <stddef.h>
#define INSIDE __attribute__((noinline, noclone, used)) static
static char pool[1 << 16];
static size_t used;
static volatile char sink;
const char *volatile text = `<jemalloc>: Error`;
INSIDE void *je_malloc(size_t bytes) { used += bytes; return pool + used; }
INSIDE void je_free(void *block) { sink = *(char *)block; }
INSIDE void je_sdallocx(void *block, size_t bytes, int flags) { if (!flags) je_free(block); sink = bytes; }
int main(void) {
    for (int number = 0; number < 40; number++) {
        void *volatile block = je_malloc(100);
        if (number % 4 == 0) je_sdallocx(block, 100, 0);
    }
    return 0;
}
";

#[test]
fn an_allocator_in_a_stripped_program_is_recorded_by_the_debug_file_of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("inner.c"), STRIPPED.replace('`', "\"")).unwrap();
    let line = "gcc -O1 -g -Wl,--build-id=0x0123456789abcdef -o inner inner.c && mkdir -p served/buildid/0123456789abcdef \
         && objcopy --only-keep-debug inner debuginfo && strip inner";
    assert!(Command::new("sh").args(["-c", line]).current_dir(folder.path()).status().unwrap().success());
    let environment = [
        ("DEBUGINFOD_URLS".to_owned(), format!("file://{}", place("served").display())),
        ("DEBUGINFOD_CACHE_PATH".to_owned(), place("cache").display().to_string()),
    ];
    let settings = Settings { environment: &environment, ..Settings::default() };
    let found = || {
        let recording = record(&[place("inner").display().to_string()], &settings);
        assert_eq!(recording.outcome.status, 0, "{}", recording.outcome.stderr);
        let report = recording.json(&["report", "--totals"]);
        let totals = &report["totals"];
        (totals["alloc_count"].as_u64(), totals["outstanding_bytes"].as_u64(), report["warnings"].to_string())
    };
    let (count, _, said) = found();
    assert_eq!(count, Some(0));
    assert!(
        said.contains("the debug file of inner (build-id 0123456789abcdef) could not be fetched"),
        "{said}"
    );
    // The cache remembers that no server has the file.
    std::fs::remove_dir_all(place("cache")).unwrap();
    std::fs::rename(place("debuginfo"), place("served/buildid/0123456789abcdef/debuginfo")).unwrap();
    let (count, bytes, said) = found();
    assert_eq!((count, bytes), (Some(40), Some(3000)), "{said}");
    assert!(said.contains("the debug file of inner was fetched"), "{said}");
    // The second time the file is cached.
    let (count, bytes, said) = found();
    assert_eq!((count, bytes), (Some(40), Some(3000)), "{said}");
    assert!(!said.contains("fetched"), "{said}");
}
