//! `heapr snapshot retainers`: what keeps an object alive.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{Naming, PathStep, retaining_paths};
use heapr_v8::devtools::{Heap, RetainersView};
use serde_json::{Value, json};

use crate::commands::report::Format;
use crate::snapshot::heap_file::{ObjectId, Wanted, one_line, open};
use crate::snapshot::sheet::{Cell, OutputArguments, Sheet};

/// Arguments of `heapr snapshot retainers`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetainersArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object
    #[arg(value_name = "@ID")]
    object: ObjectId,
    /// As if this object did not exist
    #[arg(long, value_name = "@ID")]
    ignore: Vec<ObjectId>,
    /// Ways from a root to the object, the shortest first
    #[arg(long, value_name = "N", default_value_t = 3)]
    paths: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: RetainersArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let node = arguments.object.node(&heap)?;
    let ignored =
        arguments.ignore.iter().map(|object| object.node(&heap)).collect::<anyhow::Result<Vec<u32>>>()?;
    let naming = Naming::of(&heap);
    let set: HashSet<u32> = ignored.iter().copied().collect();
    let found = retaining_paths(&heap, &naming, node, &set, arguments.paths);
    let view = RetainersView::new(&heap, &ignored);
    let mut sheet = direct(&heap, &view, node, arguments.output.top());
    sheet.fact("id", heap.snapshot().id(node));
    sheet.fact("name", heap.display_text(node));
    sheet.fact(
        "paths",
        found.paths.iter().map(|path| path.iter().map(json_step).collect()).collect::<Vec<Value>>(),
    );
    sheet.fact("is_cut", found.is_cut);
    let mut title = vec![format!("{} @{}", one_line(&heap.display_text(node)), heap.snapshot().id(node))];
    for (at, path) in found.paths.iter().enumerate() {
        title.extend([String::new(), format!("way {} from a root:", at + 1)]);
        title.extend(path.iter().map(text_step));
    }
    if found.paths.is_empty() {
        title.extend([String::new(), "no way leads here from a root".to_owned()]);
    }
    title.extend([String::new(), "referred to by:".to_owned(), String::new()]);
    sheet
        .print(arguments.output.format, if arguments.output.format == Format::Text { &title } else { &[] })?;
    Ok(ExitCode::SUCCESS)
}

fn text_step(step: &PathStep) -> String {
    let place = step.place.as_ref().map_or_else(String::new, |place| format!("  {place}"));
    let held =
        if step.held_as.is_empty() { String::new() } else { format!("{} -> ", one_line(&step.held_as)) };
    format!("  {held}{} @{}{place}", one_line(&step.name), step.id)
}

fn json_step(step: &PathStep) -> Value {
    json!({
        "name": step.name,
        "id": step.id,
        "held_as": step.held_as,
        "place": step.place.as_ref().map(ToString::to_string),
    })
}

fn direct(heap: &Heap, view: &RetainersView<'_>, node: u32, top: usize) -> Sheet {
    let snapshot = heap.snapshot();
    let mut sheet = Sheet::new(
        "heapr.snapshot.retainers/1",
        &[
            ("edge", "Edge"),
            ("edge_type", "Type"),
            ("id", "Of"),
            ("name", "Object"),
            ("distance", "Distance"),
            ("shallow_bytes", "Shallow"),
            ("retained_bytes", "Retained"),
        ],
    );
    sheet.rows(
        top,
        view.edges_into(node).into_iter().map(|edge| {
            let source = snapshot.graph().source(edge);
            vec![
                Cell::Text(heap.edge_text(edge)),
                Cell::Text(snapshot.meta().edge_kind_name(snapshot.edge_kind(edge)).to_owned()),
                Cell::Id(snapshot.id(source)),
                Cell::Text(heap.display_text(source)),
                Cell::Distance(view.edge_distance(edge)),
                Cell::Bytes(snapshot.self_bytes(source)),
                Cell::Bytes(heap.retained()[source as usize]),
            ]
        }),
    );
    sheet
}
