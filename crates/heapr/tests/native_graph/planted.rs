//! Graphs that a program prints itself: references and what blocks retain must be those.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use serde_json::Value;

use crate::Stage;

/// From, word, to.
type Edge = (u64, u64, u64);

/// What the program says of itself.
#[derive(Debug, Default)]
struct Planted {
    /// Size by address.
    blocks: BTreeMap<u64, u64>,
    edges: BTreeSet<Edge>,
    retained: Vec<(u64, u64)>,
}

impl Planted {
    fn parse(text: &str) -> Self {
        let mut planted = Self::default();
        let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["block", at, bytes] => {
                    planted.blocks.insert(address(at), bytes.parse().unwrap());
                }
                ["edge", from, word, to] => {
                    planted.edges.insert((address(from), word.parse().unwrap(), address(to)));
                }
                ["retains", at, bytes] => planted.retained.push((address(at), bytes.parse().unwrap())),
                _ => {}
            }
        }
        planted
    }
}

impl Planted {
    /// What a structure retains as a whole: the largest amounts, in order of their making.
    fn whole(&self, number: usize) -> u64 {
        let (list, table) = (self.retained[0].1, self.retained.iter().map(|it| it.1).max().unwrap());
        if number == 0 { list } else { table }
    }
}

/// Sizes of blocks, and references between them, of an exported snapshot.
fn exported(text: &str) -> (HashMap<u64, u64>, BTreeSet<Edge>) {
    let value: Value = serde_json::from_str(text).unwrap();
    let numbers = |key: &str| -> Vec<u64> {
        value[key].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
    };
    let (nodes, edges) = (numbers("nodes"), numbers("edges"));
    let strings = value["strings"].as_array().unwrap();
    let fields = value["snapshot"]["meta"]["node_fields"].as_array().unwrap().len();
    let mut edge = edges.chunks(3);
    let (mut sizes, mut found) = (HashMap::new(), BTreeSet::new());
    for node in nodes.chunks(fields) {
        sizes.insert(node[2], node[3]);
        for edge in edge.by_ref().take(node[4] as usize) {
            let name = strings.get(edge[1] as usize).and_then(Value::as_str).unwrap_or_default();
            let offset = name.strip_prefix("+0x").and_then(|text| u64::from_str_radix(text, 16).ok());
            if let Some(offset) = offset {
                found.insert((node[2], offset / 8, nodes[edge[2] as usize + 2]));
            }
        }
    }
    (sizes, found)
}

#[test]
fn references_and_retained_bytes_are_those_that_a_program_prints_of_itself() {
    let mut stage = Stage::new();
    let (program, ..) = stage.build("planted.c");
    let arguments = ["100000".to_owned(), stage.path("planted").to_str().unwrap().to_owned()];
    let pid = stage.start(&program, &arguments);
    let planted = Planted::parse(&fs::read_to_string(stage.path("planted")).unwrap());
    assert!(planted.blocks.len() > 99_000 && planted.edges.len() > 100_000 && planted.retained.len() > 100);
    stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
    stage.ok(&["snapshot", "export", "trace.heapr", "-o", "out.heapsnapshot"]);
    let (sizes, edges) = exported(&fs::read_to_string(stage.path("out.heapsnapshot")).unwrap());
    for (address, bytes) in &planted.blocks {
        assert_eq!(sizes.get(address), Some(bytes), "{address:#x}");
    }
    let of_planted = |edge: &&Edge| planted.blocks.contains_key(&edge.0);
    let found: BTreeSet<_> = edges.iter().filter(of_planted).copied().collect();
    let missing: Vec<_> = planted.edges.difference(&found).take(3).collect();
    let invented: Vec<_> = found.difference(&planted.edges).take(3).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing {missing:x?}, invented {invented:x?}");
    // Each structure hangs on one variable.
    let holders = stage.json(&["snapshot", "holders", "trace.heapr"]);
    let held_by = |name: &str| {
        let rows = holders["holders"].as_array().unwrap().iter();
        let of_it = rows.filter(|row| row["holder"] == format!("program!{name}").as_str());
        of_it.map(|row| row["retained_bytes"].as_u64().unwrap()).sum::<u64>()
    };
    for (name, first) in [("list", 0), ("table", 2)] {
        let whole = planted.whole(first);
        assert_eq!(held_by(name), whole, "{name}: {holders}");
    }
    // Of a spread of them: each is a question of its own.
    let step = planted.retained.len() / 12;
    for (address, bytes) in planted.retained.iter().step_by(step) {
        let object = stage.json(&["snapshot", "object", "trace.heapr", &format!("@{address:#x}")]);
        assert_eq!(retained_in(&object), Some(*bytes), "{address:#x}: {object}");
    }
}

fn retained_in(value: &Value) -> Option<u64> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("retained_bytes").and_then(Value::as_u64);
            own.or_else(|| fields.values().find_map(retained_in))
        }
        Value::Array(items) => items.iter().find_map(retained_in),
        _ => None,
    }
}
