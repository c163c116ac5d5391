//! `heapr snapshot strings`, `collections`, `shapes`, `fanout`, `detached`, `unreachable`,
//! `closures`.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{self, CollectionOrder, Naming};
use heapr_v8::devtools::Heap;

use crate::output::sheet::{Cell, OutputArguments, Sheet};
use crate::plain_text::one_line;
use crate::snapshot::v8::heap_file::{OpenedHeap, Wanted, open};

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

    fn print(&self, mut sheet: Sheet, rows: Vec<Vec<Cell>>) -> anyhow::Result<ExitCode> {
        sheet.rows(usize::MAX, rows);
        sheet.print(self.output.format, &[])?;
        Ok(ExitCode::SUCCESS)
    }
}

fn id(heap: &Heap, node: u32) -> Cell {
    Cell::Id(heap.snapshot().id(node))
}

fn text(text: impl AsRef<str>) -> Cell {
    Cell::Text(one_line(text.as_ref()))
}

fn place(place: Option<analysis::Place>) -> Cell {
    place.map_or(Cell::Nothing, |place| text(place.to_string()))
}

pub(super) fn strings(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns = [
        ("wasted_bytes", "Wasted"),
        ("total_bytes", "All"),
        ("count", "Copies"),
        ("example_id", "One is"),
        ("text", "Text"),
    ];
    let rows = analysis::duplicated_strings(&heap, arguments.top())
        .into_iter()
        .map(|found| {
            vec![
                Cell::Bytes(found.wasted_bytes),
                Cell::Bytes(found.total_bytes),
                Cell::Count(found.count),
                id(&heap, found.example),
                text(if found.is_cut { format!("{}…", found.text) } else { found.text }),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.strings/1", &columns), rows)
}

pub(super) fn collections(arguments: CollectionsArguments) -> anyhow::Result<ExitCode> {
    let order = if arguments.empty { CollectionOrder::Emptiest } else { CollectionOrder::Largest };
    let arguments = arguments.listing;
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        ("reference_count", "Holds"),
        ("store_bytes", "Store"),
        ("fill_percent", "Filled %"),
        ("retained_bytes", "Retained"),
        ("class", "Class"),
        ("id", "Id"),
        ("name", "Name"),
    ];
    let rows = analysis::collections(&*heap, order, arguments.top())
        .into_iter()
        .map(|found| {
            vec![
                Cell::Count(found.reference_count),
                Cell::Bytes(found.store_bytes),
                found.fill_percent.map_or(Cell::Nothing, Cell::Count),
                Cell::Bytes(found.retained_bytes),
                text(naming.own_name(found.node)),
                id(&heap, found.node),
                text(naming.call(found.node).text),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.collections/1", &columns), rows)
}

pub(super) fn shapes(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns = [
        ("self_bytes", "Own"),
        ("retained_bytes", "Retained"),
        ("count", "Objects"),
        ("example_id", "One is"),
        ("shape", "Class and fields"),
    ];
    let rows = analysis::shapes(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            vec![
                Cell::Bytes(found.self_bytes),
                Cell::Bytes(found.retained_bytes),
                Cell::Count(found.count),
                id(&heap, found.example),
                text(format!("{} {{{}}}", found.class, found.fields.join(", "))),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.shapes/1", &columns), rows)
}

pub(super) fn fanout(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        ("reference_count", "References"),
        ("main_class_count", "Of them to"),
        ("main_class", "Class"),
        ("retained_bytes", "Retained"),
        ("id", "Id"),
        ("name", "Name"),
    ];
    let rows = analysis::fanout(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            vec![
                Cell::Count(found.reference_count),
                Cell::Count(found.main_class_count),
                text(found.main_class),
                Cell::Bytes(found.retained_bytes),
                id(&heap, found.node),
                text(naming.call(found.node).text),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.fanout/1", &columns), rows)
}

pub(super) fn detached(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        ("retained_bytes", "Retained"),
        ("detached_count", "Nodes"),
        ("node", "Node"),
        ("id", "Id"),
        ("held_by", "Held by"),
        ("place", "Near"),
    ];
    let rows = analysis::detached(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            let path = analysis::path_from_root(&*heap, &naming, found.node);
            vec![
                Cell::Bytes(found.retained_bytes),
                Cell::Count(found.detached_count),
                text(heap.snapshot().name_text(found.node)),
                id(&heap, found.node),
                naming.held_by(found.node).map_or(Cell::Nothing, text),
                place(path.into_iter().rev().find_map(|step| step.place)),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.detached/1", &columns), rows)
}

pub(super) fn unreachable(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let columns =
        [("self_bytes", "Own"), ("count", "Objects"), ("example_id", "The largest is"), ("class", "Class")];
    let rows = analysis::unreachable(&*heap, arguments.top())
        .into_iter()
        .map(|found| {
            vec![
                Cell::Bytes(found.self_bytes),
                Cell::Count(found.count),
                id(&heap, found.example),
                text(found.class),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.unreachable/1", &columns), rows)
}

pub(super) fn closures(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = arguments.open()?;
    let naming = Naming::of(&*heap);
    let columns = [
        ("retained_bytes", "Retained"),
        ("function_count", "Functions"),
        ("id", "Id"),
        ("place", "First function at"),
        ("variables", "Variables, the largest first"),
    ];
    let rows = analysis::contexts_of_variables(&*heap, &naming, arguments.top())
        .into_iter()
        .map(|found| {
            let variables: Vec<String> = found.variables.into_iter().map(|variable| variable.name).collect();
            vec![
                Cell::Bytes(found.retained_bytes),
                Cell::Count(found.function_count),
                id(&heap, found.node),
                place(found.place),
                text(variables.join(", ")),
            ]
        })
        .collect();
    arguments.print(Sheet::new("heapr.snapshot.closures/1", &columns), rows)
}
