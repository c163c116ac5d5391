//! Programs of `victims/python/heaps` that leak by one step for each line on their input, or do
//! not. The owner of each leak is named first, and nothing is said of the healthy ones.

use std::path::Path;

use heapr_managed::Interpreter;
use heapr_testkit::{Growing, not_run};
use heapr_v8::analysis::{Confidence, Suspects, suspects};
use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};

use crate::memory::{interpreters, read};

/// Number of snapshots of each program.
const SNAPSHOTS: usize = 3;

fn snapshot(program: &Growing, interpreter: Interpreter) -> Heap {
    let mut heap = read(interpreter, program.pid(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut file = Vec::new();
    heapr_managed::write_snapshot(&mut heap, &mut file).unwrap();
    let snapshot = Snapshot::read(std::io::Cursor::new(file), &ReadOptions::default()).unwrap();
    assert_eq!(snapshot.problems().len(), 0, "{:?}", snapshot.problems());
    Heap::with_dominators(snapshot).unwrap()
}

/// Suspects of a program over three snapshots; `None` if it does not run here.
fn suspects_of(python: &Path, name: &str) -> Option<Suspects> {
    let program = Growing::start(python, name)?;
    println!("{} {name}", python.display());
    Some(suspects_between(program, Interpreter::Python))
}

/// Suspects of a program over three snapshots, between which it does a step.
pub(crate) fn suspects_between(mut program: Growing, interpreter: Interpreter) -> Suspects {
    let mut heaps = Vec::new();
    for number in 0..SNAPSHOTS {
        if number > 0 {
            program.step();
        }
        heaps.push(snapshot(&program, interpreter));
    }
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 10);
    for suspect in &found.suspects {
        let collects: Vec<String> =
            suspect.collects.iter().map(|it| format!("{} {}", it.count, it.class)).collect();
        println!(
            "{:?} {} x{} {:?} {}; {}",
            suspect.confidence,
            suspect.name,
            suspect.owner_count,
            suspect.growth_bytes_at,
            collects.join(", "),
            suspect.reasons.join("; "),
        );
    }
    found
}

/// Checks that the first suspect is this one, and that it collects so many of a class.
fn leaks(name: &str, owner: &str, class: &str, count: i64) {
    let mut is_checked = false;
    for python in interpreters() {
        let label = format!("{} {name}", python.display());
        let Some(found) = suspects_of(&python, name) else { continue };
        is_checked = true;
        let first = found.suspects.first().unwrap_or_else(|| panic!("{label}: no suspects"));
        assert_eq!(first.name, owner, "{label}");
        assert_eq!(first.confidence, Confidence::High, "{label}: {:?}", first.reasons);
        let collected = first.collects.iter().find(|it| it.class == class);
        let collected = collected.unwrap_or_else(|| panic!("{label}: {:?}", first.collects));
        assert!((collected.count - count).abs() * 50 <= count, "{label}: {collected:?}");
    }
    if !is_checked {
        not_run(format!("{name}: no python3 here runs it"));
    }
}

fn is_healthy(name: &str) {
    for python in interpreters() {
        let Some(found) = suspects_of(&python, name) else { continue };
        let sure = found.suspects.iter().find(|suspect| suspect.confidence > Confidence::Low);
        assert!(sure.is_none(), "{} {name}: {sure:?}", python.display());
    }
}

#[test]
fn a_dict_of_a_module_is_named() {
    leaks("module-cache", "module pricing: _quotes (dict)", "pricing.Quote", 10_000);
}

#[test]
fn a_list_of_a_class_is_named() {
    leaks("class-list", "class __main__.Basket: items (list)", "dict", 10_000);
}

#[test]
fn a_list_of_handlers_is_named_with_its_key() {
    leaks("event-handlers", "module __main__: BUS.handlers['resize'] (list)", "__main__.Widget", 4_000);
}

#[test]
fn the_cache_of_a_method_is_named() {
    leaks("lru-method", "class __main__.Report: totals.cache (dict)", "__main__.Report", 2_000);
}

#[test]
fn a_list_of_each_thread_is_named_once() {
    leaks("threading-local", "module __main__: CONTEXT.history (list)", "dict", 16_000);
}

#[test]
fn a_list_of_errors_is_named() {
    leaks("tracebacks", "module __main__: ERRORS (list)", "IndexError", 800);
}

#[test]
fn a_dict_of_views_is_named_with_the_native_data() {
    leaks("numpy-views", "module __main__: THUMBS (dict)", "numpy.ndarray", 800);
}

#[test]
fn nothing_is_said_of_a_cache_that_turns_over() {
    is_healthy("healthy-lru");
}

#[test]
fn garbage_is_no_leak() {
    is_healthy("healthy-cycles");
}
