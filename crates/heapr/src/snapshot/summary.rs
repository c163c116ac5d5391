//! `heapr snapshot summary`: the classes of a snapshot.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::{Aggregate, CaptureMode, Heap, NodeSet, ScriptPaths};

use crate::report::quantity::{bytes, count, plural};
use crate::snapshot::filter_arguments::FilterArguments;
use crate::snapshot::heap_file::{Wanted, open};
use crate::snapshot::limit::{Amount, Limit, TOTAL};
use crate::snapshot::sheet::{Cell, OutputArguments, Sheet};

/// Arguments of `heapr snapshot summary`.
#[derive(Debug, clap::Args)]
pub(crate) struct SummaryArguments {
    /// The snapshot (.heapsnapshot or .heaptimeline, also .gz or .zst; - is standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// List the objects of this class instead: its name as the summary has it
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    #[command(flatten)]
    filters: FilterArguments,
    /// What is listed first
    #[arg(long, value_enum, default_value_t = Order::Retained)]
    sort: Order,
    /// Exit with 1 if a class retains more than this, as in Session=10M; (total) is all of them
    #[arg(long, value_name = "CLASS=BYTES")]
    fail_if_retained: Vec<Limit>,
    #[command(flatten)]
    output: OutputArguments,
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

/// Runs the command.
pub(crate) fn run(arguments: SummaryArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let only = arguments.filters.nodes(&heap)?;
    let aggregates = heap.aggregates_of(only.as_ref());
    match &arguments.class {
        None => print_classes(&arguments, &heap, &aggregates)?,
        Some(class) => print_objects(&arguments, &heap, class, only.as_ref())?,
    }
    let mut status = ExitCode::SUCCESS;
    for limit in &arguments.fail_if_retained {
        let (allowed, found) = match limit.amount {
            Amount::Bytes(allowed) => (allowed, retained_by(&heap, &aggregates, limit)),
            Amount::Objects(allowed) => (allowed, count_of(&heap, &aggregates, limit)),
        };
        if found > allowed {
            let shown = |amount| if matches!(limit.amount, Amount::Bytes(_)) { bytes(amount) } else { plural(amount, "object") };
            eprintln!("heapr: {}: {}, more than {}", limit.class, shown(found), shown(allowed));
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}

fn retained_by(heap: &Heap, aggregates: &[Aggregate], limit: &Limit) -> u64 {
    if limit.class == TOTAL {
        return heap.retained()[heap.snapshot().root() as usize];
    }
    of_class(heap, aggregates, &limit.class).map(|line| line.retained_bytes).sum()
}

fn count_of(heap: &Heap, aggregates: &[Aggregate], limit: &Limit) -> u64 {
    let is_total = limit.class == TOTAL;
    let all = aggregates.iter().filter(|_| is_total).chain(of_class(heap, aggregates, &limit.class));
    all.map(|line| line.object_count).sum()
}

fn of_class<'a>(heap: &'a Heap, aggregates: &'a [Aggregate], name: &str) -> impl Iterator<Item = &'a Aggregate> {
    let named = heap.classes().named(name);
    aggregates.iter().filter(move |line| named.contains(&line.class))
}

fn print_classes(arguments: &SummaryArguments, heap: &Heap, aggregates: &[Aggregate]) -> anyhow::Result<()> {
    let classes = heap.classes();
    let paths = ScriptPaths::of(heap.snapshot());
    let mut sheet = Sheet::new(
        "heapr.snapshot.summary/1",
        &[
            ("class", "Class"),
            ("place", "Constructor"),
            ("object_count", "Objects"),
            ("distance", "Distance"),
            ("shallow_bytes", "Shallow"),
            ("retained_bytes", "Retained"),
            ("class_key", ""),
        ],
    );
    let mut lines = aggregates.to_vec();
    match arguments.sort {
        Order::Retained => {}
        Order::Shallow => lines.sort_by_key(|line| std::cmp::Reverse(line.self_bytes)),
        Order::Count => lines.sort_by_key(|line| std::cmp::Reverse(line.object_count)),
        Order::Distance => lines.sort_by_key(|line| line.distance),
        Order::Name => lines.sort_by(|left, right| classes.get(left.class).cmp(classes.get(right.class))),
    }
    add_facts(&mut sheet, heap);
    let is_text = arguments.output.format == crate::commands::report::Format::Text;
    sheet.rows(
        arguments.output.top(),
        lines.iter().map(|line| {
            let class = classes.get(line.class);
            let place = class.location.map(|(script_id, line, column)| paths.place_at(script_id, line, column));
            vec![
                Cell::Text(class.name_text().into_owned()),
                place.map_or(Cell::Nothing, Cell::Text),
                Cell::Count(line.object_count),
                Cell::Distance(line.distance),
                Cell::Bytes(line.self_bytes),
                Cell::Bytes(line.retained_bytes),
                if is_text { Cell::Nothing } else { Cell::Text(class.key()) },
            ]
        }),
    );
    sheet.print(arguments.output.format, &[headline(heap), String::new()])
}

/// What the whole snapshot is.
pub(crate) fn headline(heap: &Heap) -> String {
    let snapshot = heap.snapshot();
    let mode = match heap.mode() {
        CaptureMode::Default => "",
        CaptureMode::ExposeInternals => ", internals exposed",
    };
    format!(
        "{} nodes, {} edges, {} in all{mode}",
        count(u64::from(snapshot.node_count())),
        count(u64::from(snapshot.edge_count())),
        bytes(heap.statistics().total_bytes),
    )
}

fn add_facts(sheet: &mut Sheet, heap: &Heap) {
    let snapshot = heap.snapshot();
    sheet.fact("node_count", snapshot.node_count());
    sheet.fact("edge_count", snapshot.edge_count());
    sheet.fact("total_bytes", heap.statistics().total_bytes);
    sheet.fact("exposes_internals", heap.mode() == CaptureMode::ExposeInternals);
    let problems: Vec<String> = snapshot.problems().iter().map(ToString::to_string).collect();
    sheet.fact("problems", problems);
}

fn print_objects(arguments: &SummaryArguments, heap: &Heap, class: &str, only: Option<&NodeSet>) -> anyhow::Result<()> {
    let classes = heap.classes();
    let wanted = classes.named(class);
    if wanted.is_empty() {
        anyhow::bail!("{}: there is no class {class:?}", arguments.file.display());
    }
    let snapshot = heap.snapshot();
    let mut nodes: Vec<u32> = (0..snapshot.node_count())
        .filter(|&node| wanted.contains(&classes.of_node(node)))
        .filter(|&node| snapshot.self_bytes(node) != 0 && only.is_none_or(|only| only.contains(node)))
        .collect();
    sort_objects(heap, &mut nodes, arguments.sort);
    let mut sheet = object_sheet("heapr.snapshot.objects/1");
    sheet.fact("class", class);
    sheet.fact("object_count", nodes.len());
    let top = arguments.output.top();
    sheet.rows(top, nodes.iter().take(top).map(|&node| object_row(heap, node)));
    sheet.left_off(nodes.len().saturating_sub(top) as u64);
    let title = format!("{}: {}", class, plural(nodes.len() as u64, "object"));
    sheet.print(arguments.output.format, &[title, String::new()])
}

/// Sorts single objects.
pub(crate) fn sort_objects(heap: &Heap, nodes: &mut [u32], order: Order) {
    let snapshot = heap.snapshot();
    let at = |node: u32| node as usize;
    match order {
        Order::Retained => nodes.sort_by_key(|&node| (std::cmp::Reverse(heap.retained()[at(node)]), snapshot.id(node))),
        Order::Shallow => nodes.sort_by_key(|&node| (std::cmp::Reverse(snapshot.self_bytes(node)), snapshot.id(node))),
        Order::Count => nodes.sort_by_key(|&node| snapshot.id(node)),
        Order::Distance => nodes.sort_by_key(|&node| (heap.distances()[at(node)], snapshot.id(node))),
        Order::Name => nodes.sort_by_cached_key(|&node| (heap.display_text(node), snapshot.id(node))),
    }
}

/// An empty list of objects.
pub(crate) fn object_sheet(schema: &'static str) -> Sheet {
    Sheet::new(
        schema,
        &[
            ("id", "Id"),
            ("name", "Object"),
            ("class", "Class"),
            ("distance", "Distance"),
            ("shallow_bytes", "Shallow"),
            ("retained_bytes", "Retained"),
        ],
    )
}

/// One object.
pub(crate) fn object_row(heap: &Heap, node: u32) -> Vec<Cell> {
    let classes = heap.classes();
    vec![
        Cell::Id(heap.snapshot().id(node)),
        Cell::Text(heap.display_text(node)),
        Cell::Text(classes.get(classes.of_node(node)).name_text().into_owned()),
        Cell::Distance(heap.distances()[node as usize]),
        Cell::Bytes(heap.snapshot().self_bytes(node)),
        Cell::Bytes(heap.retained()[node as usize]),
    ]
}
