//! Graphs that a program prints itself: references and retained sizes must be equal.

use std::fs;

use serde_json::Value;

use crate::Stage;

/// Number of blocks, all of which are compared. `HEAPR_PLANTED=10000000` tests more, with some 6 GB
/// of memory.
const BLOCKS: u32 = 100_000;

/// Edge: from, word, to.
type Edge = (u64, u64, u64);

/// Graph as the program prints it, or as heapr answers; sorted.
#[derive(Debug, Default)]
struct Planted {
    /// Address and size of each block.
    blocks: Vec<(u64, u64)>,
    edges: Vec<Edge>,
    retained: Vec<(u64, u64)>,
}

impl Planted {
    fn parse(text: &str) -> Self {
        let mut planted = Self::default();
        let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
        for line in text.lines() {
            let mut words = line.split(' ');
            let mut next = || words.next().unwrap();
            match next() {
                "block" => planted.blocks.push((address(next()), next().parse().unwrap())),
                "edge" => planted.edges.push((address(next()), next().parse().unwrap(), address(next()))),
                "retains" => planted.retained.push((address(next()), next().parse().unwrap())),
                _ => {}
            }
        }
        planted.in_order()
    }

    fn in_order(mut self) -> Self {
        self.blocks.sort_unstable();
        self.edges.sort_unstable();
        self
    }

    fn size_of(&self, address: u64) -> Option<u64> {
        let place = self.blocks.binary_search_by_key(&address, |block| block.0).ok()?;
        Some(self.blocks[place].1)
    }

    /// Returns what a structure retains as a whole: the list (`number` 0) the first amount, the
    /// table the largest.
    fn whole(&self, number: usize) -> u64 {
        let (list, table) = (self.retained[0].1, self.retained.iter().map(|it| it.1).max().unwrap());
        if number == 0 { list } else { table }
    }

    /// Parses an exported snapshot: sizes of blocks, and references between them.
    fn exported(text: &str) -> Self {
        let mut found = Self::default();
        let head = &text[..text.find(",\n\"nodes\"").unwrap()];
        let head: Value = serde_json::from_str(&format!("{head}}}")).unwrap();
        let fields = head["snapshot"]["meta"]["node_fields"].as_array().unwrap().len();
        let strings = text.rfind("\"strings\":").unwrap() + "\"strings\":".len();
        let strings: Vec<String> = serde_json::from_str(&text[strings..text.trim_end().len() - 1]).unwrap();
        let offsets: Vec<Option<u64>> = strings
            .iter()
            .map(|name| name.strip_prefix("+0x").and_then(|text| u64::from_str_radix(text, 16).ok()))
            .collect();
        // Id and number of references of each node.
        let mut nodes = Vec::new();
        let mut numbers = numbers(text, "nodes");
        while let Some(_kind) = numbers.next() {
            let mut next = || numbers.next().unwrap();
            let (_name, id, bytes, edge_count) = (next(), next(), next(), next());
            let _: u64 = (5..fields).map(|_| next()).sum();
            found.blocks.push((id, bytes));
            nodes.push((id, edge_count));
        }
        let mut numbers = self::numbers(text, "edges");
        for &(id, edge_count) in &nodes {
            for _ in 0..edge_count {
                let (_kind, name, target) =
                    (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
                if let Some(offset) = offsets.get(name as usize).copied().flatten() {
                    found.edges.push((id, offset / 8, nodes[target as usize / fields].0));
                }
            }
        }
        found.in_order()
    }
}

/// Parses the numbers of a list.
fn numbers<'t>(text: &'t str, key: &str) -> impl Iterator<Item = u64> + 't {
    let start = format!("\"{key}\":[");
    let start = text.find(&start).unwrap() + start.len();
    let list = &text[start..start + text[start..].find(']').unwrap()];
    list.split(',').filter(|text| !text.trim().is_empty()).map(|text| text.trim().parse().unwrap())
}

#[test]
fn references_and_retained_bytes_are_those_that_a_program_prints_of_itself() {
    let count = std::env::var("HEAPR_PLANTED").ok().and_then(|text| text.parse().ok()).unwrap_or(BLOCKS);
    let mut stage = Stage::new();
    let (program, ..) = stage.build("planted.c");
    let arguments = [count.to_string(), stage.path("planted").to_str().unwrap().to_owned()];
    let pid = stage.start(&program, &arguments);
    let planted = Planted::parse(&fs::read_to_string(stage.path("planted")).unwrap());
    let least = count as usize * 99 / 100;
    assert!(planted.blocks.len() > least && planted.edges.len() > least && planted.retained.len() > 100);
    stage.ok(&["snapshot", "take", "--graph", "--max-pause", "600000", &pid.to_string()]);
    stage.ok(&["snapshot", "export", "trace.heapr", "-o", "out.heapsnapshot"]);
    let found = Planted::exported(&fs::read_to_string(stage.path("out.heapsnapshot")).unwrap());
    for &(address, bytes) in &planted.blocks {
        assert_eq!(found.size_of(address), Some(bytes), "{address:#x}");
    }
    let edges = found.edges.iter().filter(|edge| planted.size_of(edge.0).is_some());
    let mut wanted = planted.edges.iter();
    for edge in edges {
        assert_eq!(wanted.next(), Some(edge), "from, word, to");
    }
    assert_eq!(wanted.next(), None);
    println!("{} blocks and {} references are equal", planted.blocks.len(), planted.edges.len());
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
    // Only some blocks are checked, because each needs a question of its own.
    let step = planted.retained.len() / 12;
    for (address, bytes) in planted.retained.iter().step_by(step) {
        let object = stage.json(&["snapshot", "object", "trace.heapr", &format!("@{address:#x}")]);
        assert_eq!(retained_in(&object), Some(*bytes), "{address:#x}: {object}");
    }
    answers_are_kept(&stage);
}

/// Answers are saved beside the file; foreign contents there are not believed.
fn answers_are_kept(stage: &Stage) {
    stage.ok(&["stop", "graph", "-q"]);
    let ask = |verb: &str| {
        let mut answer = stage.json(&["snapshot", verb, "trace.heapr"]);
        // Sorted by name if amounts are equal.
        answer.as_object_mut().unwrap().remove("notes");
        answer
    };
    let kept = || {
        let folder = fs::read_dir(stage.path("cache/heapr/snapshots")).into_iter().flatten().flatten();
        let mut files = folder.map(|entry| entry.path());
        files.find(|path| path.to_string_lossy().contains(".graph"))
    };
    let first = [ask("leaks"), ask("holders")];
    let file = kept().expect("nothing is kept");
    assert_eq!([ask("leaks"), ask("holders")], first);
    let text = fs::read_to_string(&file).unwrap();
    for damage in
        ["", "{}", &text[..text.len() / 2], &text.replace("\"stack\":", "\"stack\":4294967295,\"was\":")]
    {
        fs::write(&file, damage).unwrap();
        assert_eq!([ask("leaks"), ask("holders")], first, "{damage}");
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
