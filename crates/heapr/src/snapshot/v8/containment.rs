//! `heapr snapshot containment`: lists the references of an object.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::view::{FieldOrder, FieldRow, Listed, Page};

use super::distance;
use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;
use crate::snapshot::v8::heap_file::{ObjectId, ask};
use heapr_table::{Column, Table, row};

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
    /// Order of the object's own references
    Object,
}

/// Runs the command.
pub(crate) fn run(arguments: ContainmentArguments) -> anyhow::Result<ExitCode> {
    let output = &arguments.output;
    ask(
        &arguments.file,
        |view| {
            let node = arguments.object.map_or(Ok(view.root()), |object| object.node_in(view))?;
            Ok((view.row(node)?, view.children(node, arguments.sort.into(), Page::top(output.top()))?))
        },
        |(object, fields)| {
            let mut sheet = edge_sheet("heapr.snapshot.containment/1", "Id");
            sheet.fact("id", object.id);
            sheet.fact("name", object.name.clone());
            add_edges(&mut sheet, fields);
            let title = format!("{} @{}", one_line(&object.name), object.id);
            print_table(&sheet, output.format, &[title, String::new()])?;
            Ok(ExitCode::SUCCESS)
        },
    )
}

/// Returns an empty table of edges; `id_heading` says which end's id a row shows.
pub(crate) fn edge_sheet(schema: &'static str, id_heading: &'static str) -> Table {
    Table::new(
        schema,
        &[
            Column::text("edge", "Edge"),
            Column::text("edge_type", "Type"),
            Column::id("id", id_heading),
            Column::text("name", "Object"),
            Column::number("distance", "Distance"),
            Column::bytes("shallow_bytes", "Shallow"),
            Column::bytes("retained_bytes", "Retained"),
        ],
    )
}

/// Adds edges with the objects at their other ends.
pub(crate) fn add_edges(sheet: &mut Table, fields: Listed<FieldRow>) {
    sheet.left_off(fields.total_count - fields.rows.len() as u64);
    sheet.rows(
        usize::MAX,
        fields.rows.into_iter().map(|field| {
            row![
                field.field,
                field.edge_kind,
                field.object.id,
                field.object.name,
                distance(field.distance),
                field.object.self_bytes,
                field.object.retained_bytes,
            ]
        }),
    );
}

impl From<EdgeOrder> for FieldOrder {
    fn from(order: EdgeOrder) -> Self {
        match order {
            EdgeOrder::Retained => Self::Retained,
            EdgeOrder::Object => Self::Object,
        }
    }
}
