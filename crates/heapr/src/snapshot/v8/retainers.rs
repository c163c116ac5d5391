//! `heapr snapshot retainers`: lists what keeps an object alive.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{PathStep, RetainingPaths};
use heapr_v8::devtools::RetainersView;
use heapr_v8::view::{FieldRow, Listed, ObjectRow, Page, SnapshotView};
use serde_json::{Value, json};

use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;
use crate::snapshot::v8::containment::{add_edges, edge_sheet};
use crate::snapshot::v8::heap_file::{ObjectId, Wanted, ask, details_with_stack, open};
use crate::snapshot::v8::object::stack_text;
use heapr_table::quantity::count;

/// Arguments of `heapr snapshot retainers`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetainersArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object
    #[arg(value_name = "@ID")]
    object: ObjectId,
    /// Leave out this object, as if it did not exist
    #[arg(long, value_name = "@ID")]
    ignore: Vec<ObjectId>,
    /// Ways from a root to the object, the shortest first
    #[arg(long, value_name = "N", default_value_t = 3)]
    paths: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Steps printed at each end of a long path; JSON has all of them.
const END_OF_WAY: usize = 40;

/// Runs the command.
pub(crate) fn run(arguments: RetainersArguments) -> anyhow::Result<ExitCode> {
    if arguments.ignore.is_empty() {
        return ask(
            &arguments.file,
            |view| {
                let node = arguments.object.node_in(view)?;
                Ok(Answer {
                    object: view.row(node)?,
                    allocated_by: allocated_by(view, node)?,
                    paths: view.retaining_paths(node, &HashSet::new(), arguments.paths)?,
                    retainers: view.retainers(node, Page::top(arguments.output.top()))?,
                })
            },
            |answer| print(&arguments.output, answer),
        );
    }
    // Ignored references change distances, so that all of them are computed anew.
    let heap = open(&arguments.file, Wanted::Everything)?;
    let view = heap.view();
    let node = arguments.object.node(&heap)?;
    let ignored =
        arguments.ignore.iter().map(|object| object.node(&heap)).collect::<anyhow::Result<Vec<u32>>>()?;
    let set: HashSet<u32> = ignored.iter().copied().collect();
    let answer = Answer {
        object: view.row(node)?,
        allocated_by: allocated_by(&view, node)?,
        paths: view.retaining_paths(node, &set, arguments.paths)?,
        retainers: view.retainers_ignoring(
            &RetainersView::new(&heap, &ignored),
            node,
            Page::top(arguments.output.top()),
        )?,
    };
    print(&arguments.output, answer)
}

/// Data of the answer.
struct Answer {
    object: ObjectRow,
    /// Functions that allocated the object, the innermost first; empty if they are unknown.
    allocated_by: Vec<String>,
    paths: RetainingPaths,
    retainers: Listed<FieldRow>,
}

fn allocated_by(view: &SnapshotView, node: u32) -> anyhow::Result<Vec<String>> {
    let details = details_with_stack(view, node)?;
    Ok(details.allocated_by.iter().map(ToString::to_string).collect())
}

fn print(output: &OutputArguments, answer: Answer) -> anyhow::Result<ExitCode> {
    let Answer { object, allocated_by, paths: found, retainers } = answer;
    let mut sheet = edge_sheet("heapr.snapshot.retainers/1", "Of");
    add_edges(&mut sheet, retainers);
    sheet.fact("id", object.id);
    sheet.fact("name", object.name.clone());
    sheet.fact(
        "paths",
        found.paths.iter().map(|path| path.iter().map(json_step).collect()).collect::<Vec<Value>>(),
    );
    sheet.fact("is_cut", found.is_cut);
    let mut title = vec![format!("{} @{}", one_line(&object.name), object.id)];
    if !allocated_by.is_empty() {
        title.push(format!("allocated by {}", stack_text(&allocated_by)));
        sheet.fact("allocated_by", allocated_by);
    }
    for (at, path) in found.paths.iter().enumerate() {
        title.extend([String::new(), format!("way {} from a root:", at + 1)]);
        let (start, end) = match path.len() > 2 * END_OF_WAY {
            true => (END_OF_WAY, path.len() - END_OF_WAY),
            false => (path.len(), path.len()),
        };
        title.extend(path[..start].iter().map(text_step));
        if start < end {
            title.push(format!("  … {} more of the way", count((end - start) as u64)));
        }
        title.extend(path[end..].iter().map(text_step));
    }
    if found.paths.is_empty() {
        title.extend([String::new(), "no way leads here from a root".to_owned()]);
    }
    title.extend([String::new(), "referred to by:".to_owned(), String::new()]);
    print_table(&sheet, output.format, &title)?;
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
