//! Contents of blocks in a graph: absent unless text is requested.

use heapr_testkit::Outcome;

use crate::{Stage, check};

/// Returns the texts of blocks that contain a pattern.
fn texts_of(stage: &Stage, pattern: &str) -> Vec<String> {
    let found = stage.json(&["snapshot", "query", "trace.heapr", "--text", pattern]);
    let objects = found["rows"].as_array().unwrap_or_else(|| panic!("{found}"));
    objects.iter().map(|object| object["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn text_is_written_where_it_is_asked_for_and_stands_below_its_block() {
    let mut stage = Stage::new();
    let (program, arguments, text) = stage.build("texts.c");
    let pid = stage.start(&program, &arguments).to_string();
    stage.ok(&["snapshot", "take", "--graph", &pid]);
    assert!(texts_of(&stage, ".").is_empty());
    let info = stage.ok(&["info", "trace.heapr"]);
    assert!(info.contains("graph_roots") && !info.contains("graph_texts"), "{info}");
    stage.ok(&["snapshot", "take", "--graph", "--contents", "strings", &pid]);
    let held = texts_of(&stage, "^held text");
    assert_eq!(held.len(), 40, "{held:?}");
    assert!(held.iter().any(|text| text == "held text 17 of many"), "{held:?}");
    let lost = texts_of(&stage, "secret|größer");
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert_eq!(texts_of(&stage, "^behind (redis|python|a table)$").len(), 3);
    // The path to the text leads through its block.
    let found = stage.json(&["snapshot", "query", "trace.heapr", "--text", "held text 17 "]);
    let id = found["rows"][0]["id"].as_u64().unwrap();
    let ways = stage.ok(&["snapshot", "retainers", "trace.heapr", &format!("@{id}")]);
    assert!(ways.contains("!held+0x88") && ways.contains("block of program!held_text"), "{ways}");
    // A text adds nothing to the sums.
    let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
    check(&leaks, &text);
}

#[test]
fn contents_are_asked_for_with_a_graph_only() {
    let stage = Stage::new();
    for command in ["run", "start"] {
        let Outcome { status, stderr, .. } = stage.heapr(&[command, "--contents", "strings", "--", "true"]);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains("--graph|--graph-at-exit"), "{stderr}");
    }
}
