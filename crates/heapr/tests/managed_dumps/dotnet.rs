//! .NET's heaps: events that a runtime recorded, and running programs of `victims/dotnet/heaps`.

use heapr_testkit::{DotnetProgram, Stage, dotnets};

use crate::{HEAPR, rows};

/// Events of .NET 8.0.4: the program `static-map` with 20 sessions.
const EVENTS: &[u8] = include_bytes!("../../../managed/tests/data/static-map.nettrace");

#[test]
fn recorded_events_are_read_by_all_commands() {
    let stage = Stage::new(HEAPR);
    std::fs::write(stage.path("a.nettrace"), EVENTS).unwrap();
    let classes = rows(&stage, &["summary", "a.nettrace"]);
    let count = |class: &str| {
        let row = classes.iter().find(|row| row["class"] == class).unwrap_or_else(|| panic!("{class}"));
        row["object_count"].as_u64()
    };
    assert_eq!((count("Shop.Session"), count("Shop.Line")), (Some(20), Some(60)));
    let sessions = rows(&stage, &["query", "a.nettrace", "--class", r"^Shop\.Session$"]);
    assert_eq!(sessions.len(), 20);
    let largest = rows(&stage, &["collections", "a.nettrace"]);
    let has_sessions = |class: &str| class.contains("Dictionary<System.Int32, Shop.Session>");
    assert!(largest.iter().any(|row| row["class"].as_str().is_some_and(has_sessions)), "{largest:#?}");
    let id = format!("@{}", sessions[0]["id"]);
    for words in [&["dominators"][..], &["containment"], &["statistics"], &["diff", "a.nettrace"]] {
        let answer = stage.json(&[&["snapshot", words[0], "a.nettrace"], &words[1..]].concat());
        assert!(answer["schema"].is_string(), "{words:?}: {answer}");
    }
    let answer = stage.json(&["snapshot", "retainers", "a.nettrace", &id]);
    assert!(answer["schema"].is_string(), "{answer}");
    std::fs::write(stage.path("cut.nettrace"), &EVENTS[..20_000]).unwrap();
    stage
        .heapr(&["snapshot", "summary", "cut.nettrace"])
        .fails_with(&["cut.nettrace", "ends at offset 20000"]);
}

#[test]
fn a_running_runtime_is_asked_for_its_objects() {
    let Some(dotnet) = dotnets().into_iter().next() else { return };
    let Some(mut program) = DotnetProgram::start(&dotnet, "static-map", "StaticMap", &[]) else { return };
    let stage = Stage::new(HEAPR);
    let pid = program.pid().to_string();
    let take = ["snapshot", "take", "--heap", "dotnet", "-o", "a.heapsnapshot"];
    let refused = |words: &[&str], reasons: &[&str]| {
        stage.heapr(&[&take, words, &[&pid]].concat()).fails_with(reasons);
        assert!(!stage.path("a.heapsnapshot").exists());
    };
    refused(&["--max-pause", "1"], &["would stand still", "it did not stop", "--max-pause allows more"]);
    refused(&["--contents", "strings"], &[".NET tells no contents of its strings"]);
    let taken = &stage.json(&[&take[..], &[&pid]].concat())["snapshots"][0];
    assert_eq!(taken["heap"], "dotnet", "{taken}");
    assert!(taken["object_count"].as_u64() > Some(20_000) && taken["pause_ns"].as_u64() > Some(0), "{taken}");
    program.step();
}
