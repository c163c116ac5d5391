//! Runs the programs of `victims/node` with the installed Node. Rank 1 must be the owner that their
//! header names. Without Node or npm on the machine, the test prints that it tests nothing.

mod chromium;
mod expectation;
mod program;
mod stories;
mod taking;

use std::path::{Path, PathBuf};

use expectation::Expectation;
use heapr_v8::analysis::{Confidence, Doubt, Naming, Suspect, Suspects, large_owners, suspects};
use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};
use program::Program;

/// Selection of a program's snapshots that are compared.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// One after the first work, and one after more work.
    Warm,
    /// One before any work, and one after the first work.
    Cold,
    /// Four snapshots, the first before any work.
    FourSnapshots,
    /// Each over a connection of its own, as with two runs of `heapr snapshot take`: the ids have
    /// nothing in common.
    Connections,
}

/// Rounds of work before each of the four snapshots.
const ROUNDS: [usize; 4] = [0, 2, 2, 3];
/// Rounds of work before each snapshot over its own connection.
const ROUNDS_BETWEEN_CONNECTIONS: [usize; 3] = [1, 2, 2];

/// Largest collection of each program, which a single snapshot shows.
const LARGEST_OWNERS: [(&str, &str); 6] = [
    ("session_store.js", "MemoryStore.sessions"),
    ("map_cache.js", "ResponseCache"),
    ("linked_queue.js", "JobQueue"),
    ("global_array.js", "globalThis.requestHistory"),
    ("interval_array.js", "blowingUp"),
    ("worker_set.js", "Deduplicator.seen"),
];

fn open(files: &[PathBuf]) -> Vec<Heap> {
    let options = ReadOptions::default();
    files
        .iter()
        .map(|file| {
            Heap::with_summary(Snapshot::open(file, &options).expect("the snapshot is whole"))
                .expect("it is a heap")
        })
        .collect()
}

fn heaps_of(name: &str, rounds_before: &[usize], take: fn(&mut Program, &Path)) -> Option<Vec<Heap>> {
    let directory = tempfile::tempdir().expect("a directory for snapshots");
    let mut program = Program::start(name)?;
    let mut files = Vec::new();
    for (number, &rounds) in rounds_before.iter().enumerate() {
        for _ in 0..rounds {
            program.tell("work");
        }
        let file = directory.path().join(format!("{number}.heapsnapshot"));
        take(&mut program, &file);
        files.push(file);
    }
    drop(program);
    Some(open(&files))
}

fn check(name: &str) {
    let take = |program: &mut Program, file: &Path| program.tell(&format!("snapshot {}", file.display()));
    let Some(heaps) = heaps_of(name, &ROUNDS, take) else { return };
    check_course(name, Course::Cold, &heaps[..2]);
    check_course(name, Course::Warm, &heaps[1..3]);
    check_course(name, Course::FourSnapshots, &heaps);
    if let Some((_, owner)) = LARGEST_OWNERS.iter().find(|(file, _)| *file == name) {
        let last = &heaps[3];
        let found = large_owners(last, &Naming::of(last), 3);
        assert!(found[0].called.text.starts_with(owner), "{name}: {}", found[0].called.text);
    }
    drop(heaps);
    // The leak is in a worker, but the inspector takes snapshots of the main thread.
    if name != "worker_set.js" {
        let take = |program: &mut Program, file: &Path| taking::take(program.pid(), None, file);
        let heaps = heaps_of(name, &ROUNDS_BETWEEN_CONNECTIONS, take);
        check_course(name, Course::Connections, &heaps.expect("it has run before"));
    }
}

fn check_course(name: &str, course: Course, heaps: &[Heap]) {
    let expectation = Expectation::of(name);
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 5);
    let shown = shown(&found);
    let is_by_place = matches!(course, Course::Connections);
    let numbering = |doubt: &Doubt| matches!(doubt, Doubt::OtherNumbering { .. });
    assert!(found.doubts.iter().all(numbering), "{name} {course:?}: {:?}", found.doubts);
    assert_eq!(!found.doubts.is_empty(), is_by_place, "{name} {course:?}: {:?}", found.doubts);
    // The holder of a function of the runtime does not own the variables of that function's module.
    let is_of_a_function = |suspect: &Suspect| suspect.name.contains(" of globalThis.");
    assert!(!found.suspects.iter().any(is_of_a_function), "{name} {course:?}\n{shown}");
    match found.suspects.first() {
        Some(first) => expectation.check(first, &format!("{name} {course:?}\n{shown}")),
        None => assert!(expectation.is_nothing(), "{name} {course:?} found nothing"),
    }
    let first = found.suspects.first().map(|suspect| suspect.confidence);
    match course {
        Course::FourSnapshots | Course::Connections if expectation.is_nothing() => {
            assert!(first.is_none_or(|first| first == Confidence::Low), "{name}\n{shown}");
        }
        Course::FourSnapshots | Course::Connections => {
            assert_eq!(first, Some(Confidence::High), "{name}\n{shown}")
        }
        // Filling a cache looks like a leak with two snapshots, one before and one after.
        Course::Warm if expectation.is_nothing() => {
            assert!(first.is_none_or(|first| first == Confidence::Low), "{name}\n{shown}");
        }
        Course::Warm | Course::Cold => assert!(first >= Some(Confidence::Medium), "{name}\n{shown}"),
    }
}

fn shown(found: &Suspects) -> String {
    found
        .suspects
        .iter()
        .map(|suspect| {
            format!(
                "  {} [{:?}] {:+} B, {} objects, {:?}\n",
                suspect.name,
                suspect.confidence,
                suspect.growth_bytes,
                suspect.growth_count,
                suspect.growth_bytes_at
            )
        })
        .collect()
}

macro_rules! victims {
    ($($test:ident: $file:literal;)*) => {
        $(
            #[test]
            fn $test() {
                check($file);
            }
        )*
    };
}

victims! {
    a_session_store_without_a_limit: "session_store.js";
    an_array_filled_by_timers: "interval_array.js";
    timers_that_are_never_cleared: "timers.js";
    listeners_that_are_never_removed: "listeners.js";
    closures_that_share_a_context: "closures.js";
    a_promise_that_never_settles: "pending_promise.js";
    a_map_used_as_a_cache: "map_cache.js";
    a_string_that_grows: "growing_string.js";
    an_array_on_the_global_object: "global_array.js";
    a_store_of_an_async_context: "async_context.js";
    a_set_in_a_worker: "worker_set.js";
    many_owners_that_grow_a_little: "many_owners.js";
    a_linked_list_that_grows_at_its_end: "linked_queue.js";
    objects_in_two_collections: "two_holders.js";
    a_program_that_keeps_nothing: "nothing_leaks.js";
    a_store_on_a_module_of_node: "store_on_module.js";
    a_store_on_process: "store_on_process.js";
    a_class_that_extends_itself: "subclass_chain.js";
    a_function_of_node_that_is_wrapped_again: "patched_module.js";
    listeners_of_a_server: "server_listeners.js";
    cells_of_a_registry: "registry_cells.js";
}
