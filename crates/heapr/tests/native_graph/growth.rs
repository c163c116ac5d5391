//! Holders that grow from graph to graph: in suspects, diff and summary.

use std::fs;
use std::process::Command;

use heapr_testkit::wait_until;
use serde_json::Value;

use crate::{Stage, values};

/// Returns the row of a holder that a header claims, with the claimed amounts.
fn grown<'v>(answer: &'v Value, text: &str) -> (&'v Value, u64, u64, String) {
    let claim = values(text, "grows").next().unwrap();
    let value =
        |key: &str| claim.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('=')).unwrap();
    let holders = answer["holders"].as_array().unwrap_or_else(|| panic!("no holders: {answer}"));
    let row = holders.iter().find(|row| row["holder"] == value("holder"));
    let row = row.unwrap_or_else(|| panic!("{} is not there: {answer}", value("holder")));
    (row, value("by").parse().unwrap(), value("count").parse().unwrap(), value("collects").to_owned())
}

#[test]
fn what_holds_ever_more_is_named_with_what_it_gathers_where() {
    let mut stage = Stage::new();
    let (program, arguments, text) = stage.build("growing.c");
    let pid = stage.start(&program, &arguments).to_string();
    let grow = |number: u32| {
        assert!(Command::new("kill").args(["-USR1", &pid]).status().unwrap().success());
        wait_until("it has grown", || {
            let out = fs::read_to_string(stage.path("out")).unwrap();
            out.contains(&format!("grown {number}\n")).then_some(())
        });
    };
    stage.ok(&["snapshot", "take", "--graph", &pid]);

    // A single graph lists the largest holders, and where they collect blocks.
    let largest = stage.json(&["snapshot", "suspects", "trace.heapr"]);
    let (row, ..) = grown(&largest, &text);
    assert_eq!(row["gathered_in"]["reference_count"], 1000, "{row}");

    grow(1);
    stage.ok(&["snapshot", "take", "--graph", &pid]);
    grow(2);
    stage.ok(&["snapshot", "take", "--graph", &pid]);

    let suspects = stage.json(&["snapshot", "suspects", "trace.heapr"]);
    let (row, by, count, collects) = grown(&suspects, &text);
    let at: Vec<u64> = row["bytes_at"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    assert_eq!([at[1] - at[0], at[2] - at[1]], [by, by], "{row}");
    assert_ne!(row["confidence"], "low", "{row}");
    let first = &row["collects"][0];
    assert!(first["name"].as_str().unwrap().contains(&collects), "{row}");
    assert_eq!(first["count"], 2 * count);
    assert_eq!(row["gathered_in"]["reference_count"], 3 * count, "{row}");
    for steady in ["program!g_steady", "program!g_replaced"] {
        let others = suspects["holders"].as_array().unwrap();
        assert!(others.iter().all(|row| row["holder"] != steady), "{suspects}");
    }
    let said = stage.ok(&["snapshot", "suspects", "trace.heapr"]);
    assert!(said.contains("1. program!g_cache: likely a leak"), "{said}");

    let changes = stage.json(&["snapshot", "diff", "trace.heapr", "--snapshots", "1", "2"]);
    let (row, ..) = grown(&changes, &text);
    assert_eq!(row["growth_bytes"], by, "{row}");
    // The table has grown, and the blocks to which it points are new.
    assert_eq!(row["new_count"], count + 1);
    let replaced = changes["holders"].as_array().unwrap().iter();
    let replaced: Vec<&Value> = replaced.filter(|row| row["holder"] == "program!g_replaced").collect();
    assert!(replaced.is_empty(), "it holds as much as before: {replaced:?}");

    let summary = stage.json(&["snapshot", "summary", "trace.heapr"]);
    let top = &summary["graph"]["holders"][0];
    assert_eq!((&top["holder"], &top["retained_bytes"]), (&"program!g_cache".into(), &at[2].into()));
    assert_eq!(summary["graph"]["definite_count"], 0, "{}", summary["graph"]);

    // A graph of the running process is not compared with those of the stopped one.
    stage.ok(&["snapshot", "take", "--graph", "--pause", "none", &pid]);
    let again = stage.json(&["snapshot", "suspects", "trace.heapr"]);
    assert_eq!(again["holders"], suspects["holders"]);
    assert!(again["warnings"].to_string().contains("its graph is not compared"), "{}", again["warnings"]);
}
