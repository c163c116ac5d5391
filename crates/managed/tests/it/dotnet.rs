//! Programs of `victims/dotnet/heaps` that leak by one step for each line on their input, or do
//! not, on the runtimes that `HEAPR_DOTNETS` names.

use std::path::Path;
use std::time::Duration;

use heapr_managed::{DotnetHeap, DotnetProcess};
use heapr_testkit::{DotnetProgram, dotnets};
use heapr_v8::analysis::{Confidence, Suspects, suspects};
use heapr_v8::devtools::Heap;

/// Number of snapshots of each program.
const SNAPSHOTS: usize = 3;

/// Longest pause that the programs' heaps could need, on any machine.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Memory that the events of the programs may need.
const ROOM_BYTES: u64 = 256 << 20;

fn snapshot(pid: u32) -> Heap {
    let process = DotnetProcess::of(pid).unwrap_or_else(|error| panic!("{error}"));
    let told = DotnetHeap::of(&process, ROOM_BYTES, MAX_PAUSE).unwrap_or_else(|error| panic!("{error}"));
    assert!(told.pause.is_some_and(|pause| pause > Duration::ZERO && pause < MAX_PAUSE), "{:?}", told.pause);
    Heap::with_summary(told.heap.snapshot).unwrap()
}

/// Suspects of a program over three snapshots; `None` without a compiler.
fn suspects_of(dotnet: &Path, name: &str, main: &str) -> Option<Suspects> {
    let mut program = DotnetProgram::start(dotnet, name, main, &[])?;
    let mut heaps = Vec::new();
    for number in 0..SNAPSHOTS {
        if number > 0 {
            program.step();
        }
        heaps.push(snapshot(program.pid()));
    }
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 10);
    for suspect in &found.suspects {
        let collects: Vec<String> =
            suspect.collects.iter().map(|it| format!("{} {}", it.count, it.class)).collect();
        println!(
            "{} {name}: {:?} {} {:?} {}; {}",
            dotnet.display(),
            suspect.confidence,
            suspect.name,
            suspect.growth_bytes_at,
            collects.join(", "),
            suspect.reasons.join("; "),
        );
    }
    Some(found)
}

/// Checks that the first suspect is this one, and that it collects so many of a class.
fn leaks(name: &str, main: &str, owner: &str, class: &str, count: i64) {
    for dotnet in dotnets() {
        let label = format!("{} {name}", dotnet.display());
        let Some(found) = suspects_of(&dotnet, name, main) else { return };
        let first = found.suspects.first().unwrap_or_else(|| panic!("{label}: no suspects"));
        assert_eq!(first.name, owner, "{label}");
        assert_eq!(first.confidence, Confidence::High, "{label}: {:?}", first.reasons);
        let collected = first.collects.iter().find(|it| it.class == class);
        let collected = collected.unwrap_or_else(|| panic!("{label}: {:?}", first.collects));
        assert!((collected.count - count).abs() * 50 <= count, "{label}: {collected:?}");
    }
}

#[test]
fn a_dictionary_of_a_static_variable_is_named_by_its_class() {
    leaks("static-map", "StaticMap", "class Shop.Registry: ById (Dictionary)", "Shop.Session", 4_000);
}

#[test]
fn handlers_of_an_event_are_named_by_the_variable_that_holds_the_bus() {
    let owner = "class Desk.Bus: Main.Resized (EventHandler)";
    leaks("event-handlers", "Handlers", owner, "Desk.View", 2_000);
}

#[test]
fn nothing_is_said_of_a_cache_that_turns_over() {
    for dotnet in dotnets() {
        let Some(found) = suspects_of(&dotnet, "healthy-lru", "Lru") else { return };
        let sure = found.suspects.iter().find(|suspect| suspect.confidence > Confidence::Low);
        assert!(sure.is_none(), "{}: {sure:?}", dotnet.display());
    }
}
