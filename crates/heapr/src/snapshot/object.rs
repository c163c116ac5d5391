//! `heapr snapshot object`: all about one object.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::{BASE_SYSTEM_DISTANCE, Heap, ScriptPaths};
use heapr_v8::{DomState, EdgeKind};

use crate::commands::report::Format;
use crate::report::quantity::{bytes, count};
use crate::snapshot::heap_file::{ObjectId, Wanted, one_line, open};
use crate::snapshot::sheet::{Cell, OutputArguments, Sheet};

/// Arguments of `heapr snapshot object`.
#[derive(Debug, clap::Args)]
pub(crate) struct ObjectArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object
    #[arg(value_name = "@ID")]
    object: ObjectId,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: ObjectArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let node = arguments.object.node(&heap)?;
    let snapshot = heap.snapshot();
    let mut sheet = Sheet::new(
        "heapr.snapshot.object/1",
        &[
            ("field", "Field"),
            ("edge_type", "Type"),
            ("id", "Id"),
            ("value", "Value"),
            ("retained_bytes", "Retained"),
        ],
    );
    let mut title = Vec::new();
    for (key, heading, fact) in facts(&heap, node) {
        title.push(format!("{heading:16} {}", fact.text));
        sheet.fact(key, fact.value);
    }
    title.push(String::new());
    let edges = snapshot.graph().edges(node).filter(|&edge| snapshot.edge_kind(edge) != EdgeKind::INVISIBLE);
    sheet.rows(
        arguments.output.top(),
        edges.map(|edge| {
            let target = snapshot.graph().target(edge);
            vec![
                Cell::Text(heap.edge_text(edge)),
                Cell::Text(snapshot.meta().edge_kind_name(snapshot.edge_kind(edge)).to_owned()),
                Cell::Id(snapshot.id(target)),
                Cell::Text(value_text(&heap, target)),
                Cell::Bytes(heap.retained()[target as usize]),
            ]
        }),
    );
    sheet
        .print(arguments.output.format, if arguments.output.format == Format::Text { &title } else { &[] })?;
    Ok(ExitCode::SUCCESS)
}

struct Fact {
    text: String,
    value: serde_json::Value,
}

fn facts(heap: &Heap, node: u32) -> Vec<(&'static str, &'static str, Fact)> {
    let snapshot = heap.snapshot();
    let text = |text: String| Fact { value: text.clone().into(), text: one_line(&text) };
    let size =
        |amount: u64| Fact { value: amount.into(), text: format!("{} ({} B)", bytes(amount), count(amount)) };
    let class = heap.classes().get(heap.classes().of_node(node));
    let distance = heap.distances()[node as usize];
    let distance_text = match distance {
        BASE_SYSTEM_DISTANCE.. => {
            format!("{} from the root; no global object leads here", distance - BASE_SYSTEM_DISTANCE)
        }
        ..0 => "none: not reachable".to_owned(),
        _ => distance.to_string(),
    };
    let dominator = heap.dominators().idom(node);
    let mut facts = vec![
        ("id", "object", Fact { value: snapshot.id(node).into(), text: format!("@{}", snapshot.id(node)) }),
        ("name", "name", text(heap.display_text(node))),
        ("class", "class", text(class.name_text().into_owned())),
        ("type", "type", text(snapshot.meta().node_kind_name(snapshot.kind(node)).to_owned())),
        ("shallow_bytes", "shallow size", size(snapshot.self_bytes(node))),
        ("retained_bytes", "retained size", size(heap.retained()[node as usize])),
        ("distance", "distance", Fact { value: distance.into(), text: distance_text }),
        (
            "dominator_id",
            "dominated by",
            Fact {
                value: snapshot.id(dominator).into(),
                text: format!("@{} {}", snapshot.id(dominator), one_line(&heap.display_text(dominator))),
            },
        ),
    ];
    if let Some(location) = snapshot.locations().of(node) {
        facts.push(("place", "made in", text(ScriptPaths::of(snapshot).place(location))));
    }
    match snapshot.dom_state(node) {
        DomState::Unknown => {}
        state => facts.push(("dom_state", "DOM node", text(format!("{state:?}").to_lowercase()))),
    }
    if snapshot.trace_node_id(node) != 0 {
        let trace_node_id = snapshot.trace_node_id(node);
        facts.push((
            "trace_node_id",
            "allocated at",
            Fact {
                value: trace_node_id.into(),
                text: format!("node {trace_node_id} of the allocation trace"),
            },
        ));
    }
    facts
}

/// A field's value: strings in quotes, numbers as they are where the snapshot has them.
fn value_text(heap: &Heap, node: u32) -> String {
    let snapshot = heap.snapshot();
    if snapshot.kind(node).is_string() {
        return format!("\"{}\"", heap.display_text(node));
    }
    match snapshot.target_of(node, EdgeKind::INTERNAL, b"value") {
        Some(value) if snapshot.kind(node) == heapr_v8::NodeKind::NUMBER => {
            snapshot.name_text(value).into_owned()
        }
        _ => heap.display_text(node),
    }
}
