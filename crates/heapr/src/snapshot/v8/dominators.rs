//! `heapr snapshot dominators`: lists the objects that alone keep an object alive.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::view::{ObjectDetails, ObjectRow, Page};

use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;
use crate::snapshot::v8::heap_file::{ObjectId, ask, details_with_stack};
use crate::snapshot::v8::object::stack_text;
use crate::snapshot::v8::summary::{add_traced_objects, traced_object_sheet};
use heapr_table::quantity::bytes;

/// Arguments of `heapr snapshot dominators`.
#[derive(Debug, clap::Args)]
pub(crate) struct DominatorsArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object [default: the root]
    #[arg(value_name = "@ID")]
    object: Option<ObjectId>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: DominatorsArguments) -> anyhow::Result<ExitCode> {
    let output = &arguments.output;
    ask(
        &arguments.file,
        |view| {
            let node = arguments.object.map_or(Ok(view.root()), |object| object.node_in(view))?;
            let details = details_with_stack(view, node)?;
            let dominated = view.dominated(node, Page::top(output.top()))?;
            let mut stacks = Vec::new();
            for row in &dominated.rows {
                stacks.push(allocated_by(&details_with_stack(view, row.node)?));
            }
            Ok((view.dominators(node)?, details, dominated, stacks))
        },
        |(chain, details, dominated, stacks)| {
            let mut sheet = traced_object_sheet("heapr.snapshot.dominators/1", &stacks);
            let line = |object: &ObjectRow| {
                serde_json::json!({
                    "id": object.id,
                    "name": object.name,
                    "shallow_bytes": object.self_bytes,
                    "retained_bytes": object.retained_bytes,
                })
            };
            sheet.fact("chain", chain.iter().map(line).collect::<Vec<_>>());
            sheet.fact("dominated_count", details.dominated_count);
            add_traced_objects(&mut sheet, dominated, stacks);
            let mut title = vec!["from the root down, each gone with the one before:".to_owned()];
            for object in chain.iter().rev() {
                let name = one_line(&object.name);
                let name = if name.is_empty() { "(root)" } else { &name };
                title.push(format!("  {name} @{}  {}", object.id, bytes(object.retained_bytes)));
            }
            if let Some(functions) = allocated_by(&details) {
                title.push(format!("  allocated by {functions}"));
                sheet.fact("allocated_by", functions);
            }
            title.extend([String::new(), "keeps alive itself:".to_owned(), String::new()]);
            print_table(&sheet, output.format, &title)?;
            Ok(ExitCode::SUCCESS)
        },
    )
}

/// Functions that allocated an object, in one line; `None` if they are unknown.
fn allocated_by(details: &ObjectDetails) -> Option<String> {
    let functions: Vec<String> = details.allocated_by.iter().map(ToString::to_string).collect();
    (!functions.is_empty()).then(|| stack_text(&functions))
}
