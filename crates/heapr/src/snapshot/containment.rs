//! `heapr snapshot containment`: what an object refers to.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::EdgeKind;

use crate::snapshot::heap_file::{ObjectId, Wanted, open};
use crate::snapshot::sheet::{Cell, OutputArguments, Sheet};

/// Arguments of `heapr snapshot containment`.
#[derive(Debug, clap::Args)]
pub(crate) struct ContainmentArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object [default: the root]
    #[arg(value_name = "@ID")]
    object: Option<ObjectId>,
    /// Order: as in the object, or by retained size
    #[arg(long, value_enum, default_value_t = EdgeOrder::Retained)]
    sort: EdgeOrder,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EdgeOrder {
    /// Most bytes kept alive first
    Retained,
    /// As in the object
    Object,
}

/// Runs the command.
pub(crate) fn run(arguments: ContainmentArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let snapshot = heap.snapshot();
    let node = arguments.object.map_or(Ok(snapshot.root()), |object| object.node(&heap))?;
    let mut edges: Vec<u32> = snapshot
        .graph()
        .edges(node)
        .filter(|&edge| snapshot.edge_kind(edge) != EdgeKind::INVISIBLE)
        .collect();
    if arguments.sort == EdgeOrder::Retained {
        edges.sort_by_key(|&edge| std::cmp::Reverse(heap.retained()[snapshot.graph().target(edge) as usize]));
    }
    let mut sheet = Sheet::new(
        "heapr.snapshot.containment/1",
        &[
            ("edge", "Edge"),
            ("edge_type", "Type"),
            ("id", "Id"),
            ("name", "Object"),
            ("distance", "Distance"),
            ("shallow_bytes", "Shallow"),
            ("retained_bytes", "Retained"),
        ],
    );
    sheet.fact("id", snapshot.id(node));
    sheet.fact("name", heap.display_text(node));
    sheet.rows(
        arguments.output.top(),
        edges.iter().map(|&edge| {
            let target = snapshot.graph().target(edge);
            vec![
                Cell::Text(heap.edge_text(edge)),
                Cell::Text(snapshot.meta().edge_kind_name(snapshot.edge_kind(edge)).to_owned()),
                Cell::Id(snapshot.id(target)),
                Cell::Text(heap.display_text(target)),
                Cell::Distance(heap.distances()[target as usize]),
                Cell::Bytes(snapshot.self_bytes(target)),
                Cell::Bytes(heap.retained()[target as usize]),
            ]
        }),
    );
    let title =
        format!("{} @{}", crate::snapshot::heap_file::one_line(&heap.display_text(node)), snapshot.id(node));
    sheet.print(arguments.output.format, &[title, String::new()])?;
    Ok(ExitCode::SUCCESS)
}
