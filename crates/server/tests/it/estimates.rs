//! Intervals in answers: for a sampled recording each amount has half of its interval beside it.
//! Answers about a recording with exact counts contain no intervals.

use serde_json::Value;

use crate::made::{Running, write_live};

/// Number of allocations of 100 bytes, half of which are freed.
const COUNT: u64 = 400;

fn running(mean_bytes: Option<u64>) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a trace.heapr");
    write_live(&path, COUNT, mean_bytes);
    let running = Running::start(&[path]);
    (folder, running)
}

fn ask(server: &Running, name: &str, more: &str) -> Value {
    let reply = server.ask(name, &format!("{{{more}}}"));
    assert_eq!(reply.status, 200, "{name}: {}", String::from_utf8_lossy(&reply.body));
    reply.json()
}

fn numbers(column: &Value) -> Vec<f64> {
    let column = column.as_array().unwrap_or_else(|| panic!("{column} is no column"));
    column.iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Half of the interval of a sum of independent estimates.
fn together(halves: impl IntoIterator<Item = f64>) -> f64 {
    halves.into_iter().map(|half| half * half).sum::<f64>().sqrt()
}

fn assert_about(one: f64, other: f64) {
    // Variances of bytes are in KiB squared, rounded up block by block.
    assert!((one - other).abs() <= 0.02 * other.max(one) + 2.0, "{one} is not about {other}");
}

const SIDES: &str = "\"before\":{\"file\":0,\"filter\":{\"range\":[\"0ns\",\"1000ns\"]}},\
                     \"after\":{\"file\":0,\"filter\":{}}";

#[test]
fn boxes_of_a_flame_graph_have_intervals_that_add_up() {
    let (_folder, server) = running(Some(4096));
    for direction in ["top-down", "bottom-up"] {
        for value in ["outstanding_bytes", "total_count"] {
            let report = ask(&server, "report", "\"file\":0");
            let whole = report["all"][format!("{value}_plus_minus")].as_f64().unwrap();
            let asked = format!("\"file\":0,\"value\":\"{value}\",\"direction\":\"{direction}\"");
            let flame = ask(&server, "flame", &asked);
            assert!(whole > 0.0, "{report}");
            assert_eq!(flame["total_plus_minus"].as_f64(), Some(whole), "{flame}");
            let nodes = &flame["nodes"];
            assert_eq!(numbers(&nodes["value_plus_minus"])[0], whole);
            // The self values add up to the whole, in either direction.
            assert_about(together(numbers(&nodes["self_plus_minus"])), whole);
            // The part left out of a node has its own interval.
            let cut = ask(&server, "flame", &format!("{asked},\"nodes_max\":1"));
            assert_eq!(numbers(&cut["nodes"]["left_out_plus_minus"]), [whole], "{cut}");
        }
    }
    let flame = ask(&server, "diff-flame", &format!("{SIDES},\"value\":\"total_bytes\""));
    let nodes = &flame["nodes"];
    let [before, after, delta] =
        ["before", "after", "delta"].map(|side| numbers(&nodes[format!("{side}_plus_minus")]));
    assert!(before.len() > 2 && before[0] > 0.0, "{flame}");
    for node in 0..before.len() {
        assert_about(delta[node], before[node].hypot(after[node]));
    }
}

#[test]
fn rows_of_a_comparison_have_the_interval_of_the_difference() {
    let (_folder, server) = running(Some(4096));
    let diff = ask(&server, "diff", &format!("{SIDES},\"sort\":\"st\""));
    let half = |row: &Value| {
        let of = |side: &str| row[side]["total_bytes_plus_minus"].as_f64().unwrap();
        assert_about(row["delta_plus_minus"].as_f64().unwrap(), of("before").hypot(of("after")));
    };
    half(&diff);
    let groups = diff["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    groups.iter().for_each(half);
}

#[test]
fn curves_have_an_interval_in_each_bin() {
    let (_folder, server) = running(Some(4096));
    for (value, kept) in [("bytes", "live_bytes"), ("count", "live_count"), ("alloc_bytes", "alloc_bytes")] {
        let asked = format!("\"file\":0,\"bins\":10,\"by\":\"stack\",\"value\":\"{value}\"");
        let timeline = ask(&server, "timeline", &asked);
        for column in ["live_bytes", "live_count", "most_bytes", "alloc_bytes", "alloc_count", "free_count"] {
            let halves = numbers(&timeline[format!("{column}_plus_minus")]);
            let values = numbers(&timeline[column]);
            assert_eq!(halves.len(), 10, "{column}");
            for (half, value) in halves.iter().zip(&values) {
                assert_eq!(*half > 0.0, *value > 0.0, "{column}: {value} ± {half}");
            }
        }
        // For blocks of one size the variances of the parts add up to that of the whole.
        let whole = numbers(&timeline[format!("{kept}_plus_minus")]);
        let mut parts = vec![numbers(&timeline["rest_plus_minus"])];
        let series = timeline["series"].as_array().unwrap();
        assert!(!series.is_empty());
        parts.extend(series.iter().map(|series| numbers(&series["values_plus_minus"])));
        for (bin, whole) in whole.iter().enumerate() {
            assert_about(together(parts.iter().map(|part| part[bin])), *whole);
        }
    }
    let leaks = ask(&server, "leaks", "\"file\":0");
    let group = &leaks["groups"][0];
    let (growth, halves) = (numbers(&group["growth"]), numbers(&group["growth_plus_minus"]));
    assert_eq!(growth.len(), halves.len());
    assert_about(*halves.last().unwrap(), group["outstanding_bytes_plus_minus"].as_f64().unwrap());
}

#[test]
fn areas_of_a_snapshot_have_intervals() {
    let (_folder, server) = running(Some(4096));
    let summary = ask(&server, "native/summary", "\"file\":0");
    for (value, total) in [("bytes", "total_bytes_plus_minus"), ("blocks", "total_count_plus_minus")] {
        let map = ask(&server, "native/treemap", &format!("\"file\":0,\"value\":\"{value}\""));
        assert_eq!(map["total_plus_minus"], summary[total], "{map}");
        let nodes = &map["nodes"];
        let halves = numbers(&nodes["value_plus_minus"]);
        assert!(halves.len() > 3 && halves.iter().all(|half| *half > 0.0), "{map}");
        assert_about(together(numbers(&nodes["self_plus_minus"])), halves[0]);
        let cut = format!("\"file\":0,\"value\":\"{value}\",\"nodes_max\":1");
        let cut = ask(&server, "native/treemap", &cut);
        assert_eq!(cut["nodes"]["left_out_plus_minus"], cut["nodes"]["value_plus_minus"], "{cut}");
    }
}

#[test]
fn what_was_counted_has_no_intervals() {
    let (_folder, server) = running(None);
    for (name, more) in [
        ("report", ""),
        ("flame", ""),
        ("flame", ",\"direction\":\"bottom-up\""),
        ("timeline", ",\"by\":\"stack\""),
        ("timeline", ",\"value\":\"resident\""),
        ("leaks", ""),
        ("native/treemap", ""),
        ("findings", ""),
    ] {
        let answer = ask(&server, name, &format!("\"file\":0{more}")).to_string();
        assert!(!answer.contains("plus_minus"), "{name}: {answer}");
    }
    for name in ["diff", "diff-flame"] {
        let answer = ask(&server, name, SIDES).to_string();
        assert!(!answer.contains("plus_minus"), "{name}: {answer}");
    }
}
