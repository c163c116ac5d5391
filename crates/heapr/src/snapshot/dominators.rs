//! `heapr snapshot dominators`: which objects alone keep an object alive.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::commands::report::Format;
use crate::report::quantity::bytes;
use crate::snapshot::heap_file::{ObjectId, Wanted, one_line, open};
use crate::snapshot::sheet::OutputArguments;
use crate::snapshot::summary::{object_row, object_sheet};

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
    let heap = open(&arguments.file, Wanted::Everything)?;
    let snapshot = heap.snapshot();
    let node = arguments.object.map_or(Ok(snapshot.root()), |object| object.node(&heap))?;
    let mut chain = vec![node];
    while let Some(&last) = chain.last()
        && last != snapshot.root()
    {
        chain.push(heap.dominators().idom(last));
    }
    let mut children = heap.dominator_tree().children(node).to_vec();
    children.sort_by_key(|&child| std::cmp::Reverse(heap.retained()[child as usize]));
    let mut sheet = object_sheet("heapr.snapshot.dominators/1");
    let line = |node: u32| {
        serde_json::json!({
            "id": snapshot.id(node),
            "name": heap.display_text(node),
            "shallow_bytes": snapshot.self_bytes(node),
            "retained_bytes": heap.retained()[node as usize],
        })
    };
    sheet.fact("chain", chain.iter().map(|&node| line(node)).collect::<Vec<_>>());
    sheet.fact("dominated_count", heap.dominator_tree().subtree_count(node) - 1);
    let top = arguments.output.top();
    sheet.rows(top, children.iter().take(top).map(|&child| object_row(&heap, child)));
    sheet.left_off(children.len().saturating_sub(top) as u64);
    let mut title = vec!["from the root down, each gone with the one before:".to_owned()];
    for &node in chain.iter().rev() {
        let name = one_line(&heap.display_text(node));
        let retained = bytes(heap.retained()[node as usize]);
        title.push(format!(
            "  {} @{}  {retained}",
            if name.is_empty() { "(root)" } else { &name },
            snapshot.id(node)
        ));
    }
    title.extend([String::new(), "keeps alive itself:".to_owned(), String::new()]);
    sheet
        .print(arguments.output.format, if arguments.output.format == Format::Text { &title } else { &[] })?;
    Ok(ExitCode::SUCCESS)
}
