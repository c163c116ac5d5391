//! `heapr snapshot strings`, `collections`, `shapes`, `fanout`, `detached`, `unreachable`,
//! `closures`.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{self, CollectionOrder, Naming};
use heapr_v8::devtools::Heap;

use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;
use crate::snapshot::v8::heap_file::{OpenedHeap, Wanted, open};
use heapr_table::{Cell, Column, Table, row};

/// Arguments of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListingArguments {
    /// The snapshot; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

/// Arguments of `heapr snapshot collections`.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionsArguments {
    #[command(flatten)]
    listing: ListingArguments,
    /// Those first that keep room for most that is not there
    #[arg(long)]
    empty: bool,
}

/// Every line has a name to be looked for: a list of all objects of a large heap would take
/// minutes.
const MOST_LINES: usize = 10_000;

impl ListingArguments {
    fn top(&self) -> usize {
        self.output.top().min(MOST_LINES)
    }

    fn open(&self) -> anyhow::Result<OpenedHeap> {
        open(&self.file, Wanted::Everything)
    }

    fn print(&self, mut sheet: Table, rows: Vec<Vec<Cell>>) -> anyhow::Result<ExitCode> {
        sheet.rows(usize::MAX, rows);
        print_table(&sheet, self.output.format, &[])?;
        Ok(ExitCode::SUCCESS)
    }
}

fn id(heap: &Heap, node: u32) -> u64 {
    heap.snapshot().id(node)
}

fn text(text: impl AsRef<str>) -> String {
    one_line(text.as_ref())
}

fn place(place: Option<analysis::Place>) -> Option<String> {
    place.map(|place| text(place.to_string()))
}

pub(super) fn strings(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns = [
        Column::bytes("wasted_bytes", "Wasted"),
        Column::bytes("total_bytes", "All"),
        Column::count("count", "Copies"),
        Column::id("example_id", "One is"),
        Column::text("text", "Text"),
    ];
    let rows = analysis::duplicated_strings(&heap, arguments.top())
        .into_iter()
        .map(|found| {
            row![
                found.wasted_bytes,
                found.total_bytes,
                found.count,
                id(&heap, found.example),
                text(if found.is_cut { format!("{}…", found.text) } else { found.text }),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.strings/1", &columns), rows)
}

pub(super) fn collections(arguments: CollectionsArguments) -> anyhow::Result<ExitCode> {
    let order = if arguments.empty { CollectionOrder::Emptiest } else { CollectionOrder::Largest };
    let arguments = arguments.listing;
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        Column::count("reference_count", "Holds"),
        Column::bytes("store_bytes", "Store"),
        Column::percent("fill_percent", "Filled %"),
        Column::bytes("retained_bytes", "Retained"),
        Column::text("class", "Class"),
        Column::id("id", "Id"),
        Column::text("name", "Name"),
    ];
    let rows = analysis::collections(&*heap, order, arguments.top())
        .into_iter()
        .map(|found| {
            row![
                found.reference_count,
                found.store_bytes,
                found.fill_percent,
                found.retained_bytes,
                text(naming.own_name(found.node)),
                id(&heap, found.node),
                text(naming.call(found.node).text),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.collections/1", &columns), rows)
}

pub(super) fn shapes(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns = [
        Column::bytes("self_bytes", "Own"),
        Column::bytes("retained_bytes", "Retained"),
        Column::count("count", "Objects"),
        Column::id("example_id", "One is"),
        Column::text("shape", "Class and fields"),
    ];
    let rows = analysis::shapes(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            row![
                found.self_bytes,
                found.retained_bytes,
                found.count,
                id(&heap, found.example),
                text(format!("{} {{{}}}", found.class, found.fields.join(", "))),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.shapes/1", &columns), rows)
}

pub(super) fn fanout(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        Column::count("reference_count", "References"),
        Column::count("main_class_count", "Of them to"),
        Column::text("main_class", "Class"),
        Column::bytes("retained_bytes", "Retained"),
        Column::id("id", "Id"),
        Column::text("name", "Name"),
    ];
    let rows = analysis::fanout(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            row![
                found.reference_count,
                found.main_class_count,
                text(found.main_class),
                found.retained_bytes,
                id(&heap, found.node),
                text(naming.call(found.node).text),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.fanout/1", &columns), rows)
}

pub(super) fn detached(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        Column::bytes("retained_bytes", "Retained"),
        Column::count("detached_count", "Nodes"),
        Column::text("node", "Node"),
        Column::id("id", "Id"),
        Column::text("held_by", "Held by"),
        Column::text("place", "Near"),
    ];
    let rows = analysis::detached(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            let path = analysis::path_from_root(&*heap, &naming, found.node);
            row![
                found.retained_bytes,
                found.detached_count,
                text(heap.snapshot().name_text(found.node)),
                id(&heap, found.node),
                naming.held_by(found.node).map(text),
                place(path.into_iter().rev().find_map(|step| step.place)),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.detached/1", &columns), rows)
}

pub(super) fn unreachable(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns = [
        Column::bytes("self_bytes", "Own"),
        Column::count("count", "Objects"),
        Column::id("example_id", "The largest is"),
        Column::text("class", "Class"),
    ];
    let rows = analysis::unreachable(&*heap, arguments.top())
        .into_iter()
        .map(|found| row![found.self_bytes, found.count, id(&heap, found.example), text(found.class),])
        .collect();
    arguments.print(Table::new("heapr.snapshot.unreachable/1", &columns), rows)
}

pub(super) fn closures(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        Column::bytes("retained_bytes", "Retained"),
        Column::count("function_count", "Functions"),
        Column::id("id", "Id"),
        Column::text("place", "First function at"),
        Column::text("variables", "Variables, the largest first"),
    ];
    let rows = analysis::contexts_of_variables(&*heap, &naming, arguments.top())
        .into_iter()
        .map(|found| {
            let variables: Vec<String> = found.variables.into_iter().map(|variable| variable.name).collect();
            row![
                found.retained_bytes,
                found.function_count,
                id(&heap, found.node),
                place(found.place),
                text(variables.join(", ")),
            ]
        })
        .collect();
    arguments.print(Table::new("heapr.snapshot.closures/1", &columns), rows)
}
