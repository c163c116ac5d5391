//! `heapr snapshot summary`: lists the classes of a snapshot.

use std::path::Path;
use std::process::ExitCode;

use heapr_v8::devtools::NodeSet;
use heapr_v8::view::{Listed, ObjectOrder, ObjectQuery, ObjectRow, Page, SnapshotView};
use heapr_v8::{StoredClass, StoredSummary};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::limit::{ByteLimit, TOTAL};
use crate::snapshot::v8::filter_arguments::ObjectFilterArguments;
use crate::snapshot::v8::heap_file::{Wanted, ask, open};
use crate::snapshot::v8::source_maps::{maps_for, tell_unused};
use crate::snapshot::v8::summary_file;
use crate::snapshot::v8::{allocations, distance};
use crate::snapshot::verbs::{HeapKind, SummaryOrder, SummaryQuestion};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, plural};
use heapr_table::{Column, Table, row};

/// Options for V8 heaps only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SummaryOptions {
    /// List the objects of this class instead: its name as the summary has it
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    #[command(flatten)]
    filters: ObjectFilterArguments,
    /// Exit with 1 if a class retains more bytes than this, as in Session=10M or Session=10000;
    /// (total) is all of them
    #[arg(long, value_name = "CLASS=BYTES")]
    fail_if_retained: Vec<ByteLimit>,
}

/// Orders of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// Most bytes kept alive
    Retained,
    /// Most bytes of the objects themselves
    Shallow,
    /// Most objects (of single objects: the smallest id)
    Count,
    /// Nearest to a root
    Distance,
    /// By name
    Name,
}

impl Order {
    /// Converts the order of any summary into one of V8 heaps.
    fn of(order: Option<SummaryOrder>) -> anyhow::Result<Self> {
        Ok(match order.unwrap_or(SummaryOrder::Retained) {
            SummaryOrder::Retained => Self::Retained,
            SummaryOrder::Bytes => Self::Shallow,
            SummaryOrder::Count => Self::Count,
            SummaryOrder::Distance => Self::Distance,
            SummaryOrder::Name => Self::Name,
            other => return other.refuse(HeapKind::V8),
        })
    }
}

/// Arguments of a summary.
struct SummaryArguments<'a> {
    file: &'a Path,
    sort: Order,
    output: &'a OutputArguments,
    options: &'a SummaryOptions,
}

/// Runs the command.
pub(super) fn run(asked: &SummaryQuestion, options: &SummaryOptions) -> anyhow::Result<ExitCode> {
    let sort = Order::of(asked.sort)?;
    list(&SummaryArguments { file: &asked.file, sort, output: &asked.output, options })
}

fn list(arguments: &SummaryArguments<'_>) -> anyhow::Result<ExitCode> {
    if allocations::is_profile(arguments.file) {
        return allocations::print(arguments.file, arguments.output);
    }
    let is_whole = arguments.options.class.is_none() && arguments.options.filters.is_empty();
    let part = arguments.options.filters.name().filter(|_| arguments.options.class.is_none());
    if let Some(part) = &part
        && let Some(summary) = summary_file::load(arguments.file, part)
    {
        return finish(arguments, &summary);
    }
    if let Some(class) = arguments.options.class.as_deref().filter(|_| arguments.options.filters.is_empty()) {
        return run_class(arguments, class);
    }
    let heap = open(arguments.file, Wanted::Everything)?;
    if is_whole {
        let status = finish(arguments, heap.summary())?;
        summary_file::store(arguments.file, "", heap.summary());
        return Ok(status);
    }
    let only = arguments.options.filters.nodes(&heap)?;
    let summary = StoredSummary::of_some(&heap, only.as_ref());
    let Some(class) = &arguments.options.class else {
        let status = finish(arguments, &summary)?;
        if let Some(part) = part {
            summary_file::store(arguments.file, &part, &summary);
        }
        return Ok(status);
    };
    let view = heap.view();
    print_objects(arguments, class, objects_of(arguments, &view, class, only.as_ref())?)?;
    Ok(exit_status(&arguments.options.fail_if_retained, &summary))
}

/// Prints the objects of a class, which come from the index if there is one.
fn run_class(arguments: &SummaryArguments<'_>, class: &str) -> anyhow::Result<ExitCode> {
    ask(
        arguments.file,
        |view| Ok((objects_of(arguments, view, class, None)?, view.summary()?.clone())),
        |(objects, summary)| {
            print_objects(arguments, class, objects)?;
            Ok(exit_status(&arguments.options.fail_if_retained, &summary))
        },
    )
}

fn finish(arguments: &SummaryArguments<'_>, summary: &StoredSummary) -> anyhow::Result<ExitCode> {
    print_classes(arguments, summary)?;
    Ok(exit_status(&arguments.options.fail_if_retained, summary))
}

fn exit_status(limits: &[ByteLimit], summary: &StoredSummary) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for limit in limits {
        let of_class =
            summary.classes.iter().filter(|line| line.name == limit.class || line.key == limit.class);
        let found: u64 = match limit.class.as_str() {
            TOTAL => summary.statistics.total_bytes,
            _ => of_class.map(|line| line.retained_bytes).fold(0, u64::saturating_add),
        };
        if found > limit.bytes {
            tell!("heapr: {}: {}, more than {}", limit.class, bytes(found), bytes(limit.bytes));
            status = ExitCode::FAILURE;
        }
    }
    status
}

fn print_classes(arguments: &SummaryArguments<'_>, summary: &StoredSummary) -> anyhow::Result<()> {
    let maps = maps_for(arguments.file);
    let in_sources = |place: &String| maps.as_ref().map_or_else(|| place.clone(), |maps| maps.place(place));
    let mut sheet = Table::new(
        "heapr.snapshot.summary/1",
        &[
            Column::text("class", "Class"),
            Column::text("place", "Constructor"),
            Column::count("object_count", "Objects"),
            Column::number("distance", "Distance"),
            Column::bytes("shallow_bytes", "Shallow"),
            Column::bytes("retained_bytes", "Retained"),
            Column::text("class_key", "").hidden(),
        ],
    );
    let mut lines: Vec<&StoredClass> = summary.classes.iter().collect();
    match arguments.sort {
        Order::Retained => {}
        Order::Shallow => lines.sort_rows_by_key(|line| std::cmp::Reverse(line.self_bytes)),
        Order::Count => lines.sort_rows_by_key(|line| std::cmp::Reverse(line.object_count)),
        Order::Distance => lines.sort_rows_by_key(|line| line.distance),
        Order::Name => lines.sort_rows_by(|left, right| left.name.cmp(&right.name)),
    }
    sheet.fact("heap", "v8");
    sheet.fact("node_count", summary.node_count);
    sheet.fact("edge_count", summary.edge_count);
    sheet.fact("total_bytes", summary.statistics.total_bytes);
    sheet.fact("exposes_internals", summary.exposes_internals);
    sheet.fact("problems", summary.problems.clone());
    sheet.rows(
        arguments.output.top(),
        lines.iter().map(|line| {
            row![
                line.name.clone(),
                line.place.as_ref().map(in_sources),
                line.object_count,
                distance(line.distance),
                line.self_bytes,
                line.retained_bytes,
                line.key.clone(),
            ]
        }),
    );
    tell_unused(maps.as_ref());
    print_table(&sheet, arguments.output.format, &[headline(summary), String::new()])
}

/// Returns a sentence on the whole snapshot.
pub(crate) fn headline(summary: &StoredSummary) -> String {
    format!(
        "{}, {}, {} in all{}",
        plural(u64::from(summary.node_count), "node"),
        plural(u64::from(summary.edge_count), "edge"),
        bytes(summary.statistics.total_bytes),
        if summary.exposes_internals { ", internals exposed" } else { "" },
    )
}

fn objects_of(
    arguments: &SummaryArguments<'_>,
    view: &SnapshotView,
    class: &str,
    only: Option<&NodeSet>,
) -> anyhow::Result<Listed<ObjectRow>> {
    let mut classes = view.classes_named(class)?;
    if classes.is_empty() {
        anyhow::bail!("there is no class {class:?}");
    }
    classes.sort_unstable();
    let query = ObjectQuery {
        classes: Some(&classes),
        // Counted as in the summary: an object without bytes of its own is part of another one.
        self_bytes: Some((1, u64::MAX)),
        only,
        ..ObjectQuery::default()
    };
    Ok(view.search(&query, arguments.sort.into(), Page::top(arguments.output.top()))?)
}

fn print_objects(
    arguments: &SummaryArguments<'_>,
    class: &str,
    objects: Listed<ObjectRow>,
) -> anyhow::Result<()> {
    let mut sheet = object_sheet("heapr.snapshot.objects/1");
    sheet.fact("class", class);
    sheet.fact("object_count", objects.total_count);
    let title = format!("{}: {}", class, plural(objects.total_count, "object"));
    add_objects(&mut sheet, objects);
    print_table(&sheet, arguments.output.format, &[title, String::new()])
}

impl From<Order> for ObjectOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Retained => Self::Retained,
            Order::Shallow => Self::Shallow,
            Order::Count => Self::Id,
            Order::Distance => Self::Distance,
            Order::Name => Self::Name,
        }
    }
}

/// Returns an empty table of objects.
pub(crate) fn object_sheet(schema: &'static str) -> Table {
    traced_object_sheet(schema, &[])
}

/// Returns an empty table of objects, with the functions that allocated them if any are known.
pub(crate) fn traced_object_sheet(schema: &'static str, stacks: &[Option<String>]) -> Table {
    let mut columns = vec![
        Column::id("id", "Id"),
        Column::text("name", "Object"),
        Column::text("class", "Class"),
        Column::number("distance", "Distance"),
        Column::bytes("shallow_bytes", "Shallow"),
        Column::bytes("retained_bytes", "Retained"),
    ];
    if stacks.iter().any(Option::is_some) {
        columns.push(Column::text("allocated_by", "Allocated by"));
    }
    Table::new(schema, &columns)
}

/// Adds objects.
pub(crate) fn add_objects(sheet: &mut Table, objects: Listed<ObjectRow>) {
    add_traced_objects(sheet, objects, Vec::new());
}

/// Adds objects with the functions that allocated each, for which the table has a column if any are
/// known.
pub(crate) fn add_traced_objects(sheet: &mut Table, objects: Listed<ObjectRow>, stacks: Vec<Option<String>>) {
    sheet.left_off(objects.total_count - objects.rows.len() as u64);
    let is_traced = stacks.iter().any(Option::is_some);
    let stacks = stacks.into_iter().chain(std::iter::repeat(None));
    sheet.rows(
        usize::MAX,
        objects.rows.into_iter().zip(stacks).map(|(object, stack)| {
            let mut cells = row![
                object.id,
                object.name,
                object.class,
                distance(object.distance),
                object.self_bytes,
                object.retained_bytes,
            ];
            if is_traced {
                cells.extend(row![stack]);
            }
            cells
        }),
    );
}
