//! `heapr snapshot strings`, `collections`, `shapes`, `fanout`, `detached`, `unreachable`, `closures`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{self, CollectionOrder, Naming};
use heapr_v8::devtools::Heap;
use serde_json::{Value, json};

use super::listing::{Column, Unit, print};
use super::opening::open;
use crate::commands::report::Format;

/// Arguments of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListingArguments {
    /// The snapshot; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Most lines
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
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

fn list(
    arguments: &ListingArguments,
    schema: &str,
    columns: &[Column],
    flexible: usize,
    rows: Vec<Vec<Value>>,
) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    print(&mut out, arguments.format, schema, columns, flexible, rows)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn id(heap: &Heap, node: u32) -> Value {
    json!(heap.snapshot().id(node))
}

pub(super) fn strings(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let rows = analysis::duplicated_strings(&heap, arguments.top)
        .into_iter()
        .map(|found| {
            let example = id(&heap, found.example);
            let text = if found.is_cut { format!("{}…", found.text) } else { found.text };
            vec![
                json!(found.wasted_bytes),
                json!(found.total_bytes),
                json!(found.count),
                example,
                json!(text),
            ]
        })
        .collect();
    let columns = [
        ("wasted_bytes", "wasted", Unit::Bytes),
        ("total_bytes", "all", Unit::Bytes),
        ("count", "copies", Unit::Count),
        ("example_id", "one is", Unit::Id),
        ("text", "text", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-strings-1", &columns, 4, rows)
}

pub(super) fn collections(arguments: CollectionsArguments) -> anyhow::Result<ExitCode> {
    let order = if arguments.empty { CollectionOrder::Emptiest } else { CollectionOrder::Largest };
    let arguments = arguments.listing;
    let heap = open(&arguments.file)?;
    let naming = Naming::of(&heap);
    let rows = analysis::collections(&heap, order, arguments.top)
        .into_iter()
        .map(|found| {
            vec![
                json!(found.reference_count),
                json!(found.store_bytes),
                json!(found.fill_percent),
                json!(found.retained_bytes),
                json!(naming.own_name(found.node)),
                id(&heap, found.node),
                json!(naming.call(found.node).text),
            ]
        })
        .collect();
    let columns = [
        ("reference_count", "holds", Unit::Count),
        ("store_bytes", "store", Unit::Bytes),
        ("fill_percent", "filled", Unit::Percent),
        ("retained_bytes", "retained", Unit::Bytes),
        ("class", "class", Unit::Text),
        ("id", "id", Unit::Id),
        ("name", "name", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-collections-1", &columns, 6, rows)
}

pub(super) fn shapes(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let rows = analysis::shapes(&heap, arguments.top)
        .into_iter()
        .map(|found| {
            vec![
                json!(found.self_bytes),
                json!(found.retained_bytes),
                json!(found.count),
                id(&heap, found.example),
                json!(format!("{} {{{}}}", found.class, found.fields.join(", "))),
            ]
        })
        .collect();
    let columns = [
        ("self_bytes", "own", Unit::Bytes),
        ("retained_bytes", "retained", Unit::Bytes),
        ("count", "objects", Unit::Count),
        ("example_id", "one is", Unit::Id),
        ("shape", "class and fields", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-shapes-1", &columns, 4, rows)
}

pub(super) fn fanout(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let naming = Naming::of(&heap);
    let rows = analysis::fanout(&heap, arguments.top)
        .into_iter()
        .map(|found| {
            vec![
                json!(found.reference_count),
                json!(found.main_class_count),
                json!(found.main_class),
                json!(found.retained_bytes),
                id(&heap, found.node),
                json!(naming.call(found.node).text),
            ]
        })
        .collect();
    let columns = [
        ("reference_count", "references", Unit::Count),
        ("main_class_count", "of them to", Unit::Count),
        ("main_class", "class", Unit::Text),
        ("retained_bytes", "retained", Unit::Bytes),
        ("id", "id", Unit::Id),
        ("name", "name", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-fanout-1", &columns, 5, rows)
}

pub(super) fn detached(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let naming = Naming::of(&heap);
    let rows = analysis::detached(&heap, arguments.top)
        .into_iter()
        .map(|found| {
            let holder = analysis::path_from_root(&heap, &naming, found.node);
            let held_by = holder.iter().rev().skip(1).find(|step| step.place.is_some());
            let place = held_by.and_then(|step| step.place.as_ref()).map(ToString::to_string);
            vec![
                json!(found.retained_bytes),
                json!(found.detached_count),
                json!(heap.snapshot().name_text(found.node)),
                id(&heap, found.node),
                json!(naming.held_by(found.node)),
                json!(place),
            ]
        })
        .collect();
    let columns = [
        ("retained_bytes", "retained", Unit::Bytes),
        ("detached_count", "nodes", Unit::Count),
        ("node", "node", Unit::Text),
        ("id", "id", Unit::Id),
        ("held_by", "held by", Unit::Text),
        ("place", "near", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-detached-1", &columns, 4, rows)
}

pub(super) fn unreachable(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let rows = analysis::unreachable(&heap, arguments.top)
        .into_iter()
        .map(|found| {
            vec![json!(found.self_bytes), json!(found.count), id(&heap, found.example), json!(found.class)]
        })
        .collect();
    let columns = [
        ("self_bytes", "own", Unit::Bytes),
        ("count", "objects", Unit::Count),
        ("example_id", "the largest is", Unit::Id),
        ("class", "class", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-unreachable-1", &columns, 3, rows)
}

pub(super) fn closures(arguments: ListingArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file)?;
    let naming = Naming::of(&heap);
    let rows = analysis::contexts_of_variables(&heap, &naming, arguments.top)
        .into_iter()
        .map(|found| {
            let variables: Vec<String> = found.variables.into_iter().map(|variable| variable.name).collect();
            vec![
                json!(found.retained_bytes),
                json!(found.function_count),
                id(&heap, found.node),
                json!(found.place.map(|place| place.to_string())),
                json!(variables.join(", ")),
            ]
        })
        .collect();
    let columns = [
        ("retained_bytes", "retained", Unit::Bytes),
        ("function_count", "functions", Unit::Count),
        ("id", "id", Unit::Id),
        ("place", "first function at", Unit::Text),
        ("variables", "variables, the largest first", Unit::Text),
    ];
    list(&arguments, "heapr-snapshot-closures-1", &columns, 3, rows)
}
