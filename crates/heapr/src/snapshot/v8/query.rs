//! `heapr snapshot query`: finds objects by their properties.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::NodeSet;
use heapr_v8::view::{Listed, ObjectQuery, ObjectRow, Page, SnapshotView, TextTest};
use regex::bytes::{Regex, RegexBuilder};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::native::blocks_of_frames;
use crate::snapshot::v8::heap_file::ask;
use crate::snapshot::v8::summary::{Order, add_objects, object_sheet};
use crate::snapshot::verbs::is_trace;
use heapr_filters::quantity::parse_bytes;
use heapr_table::quantity::plural;

/// Arguments of `heapr snapshot query`.
#[derive(Debug, clap::Args)]
pub(crate) struct QueryArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the class (a regular expression, in any case)
    #[arg(long, value_name = "REGEX", value_parser = any_case)]
    class: Option<Regex>,
    /// Name of the object as lists show it
    #[arg(long, value_name = "REGEX", value_parser = any_case)]
    name: Option<Regex>,
    /// Name of a field of the object
    #[arg(long, value_name = "REGEX", value_parser = any_case)]
    property: Option<Regex>,
    /// Text of a string (case matters)
    #[arg(long, value_name = "REGEX", value_parser = exact_case)]
    text: Option<Regex>,
    /// V8's type: object, closure, string, array, native, …
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Least shallow size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_shallow: Option<u64>,
    /// Greatest shallow size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_shallow: Option<u64>,
    /// Least retained size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_retained: Option<u64>,
    /// Greatest retained size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_retained: Option<u64>,
    /// Functions that are all in the stack of the block (native heaps): MODULE!, MODULE!SYMBOL or
    /// SYMBOL
    #[arg(long, alias = "requireframes", value_name = "FRAME")]
    require_frames: Vec<String>,
    /// Only DOM nodes that no longer hang in their document
    #[arg(long)]
    detached: bool,
    /// Order of the list
    #[arg(long, value_enum, default_value_t = Order::Retained)]
    sort: Order,
    #[command(flatten)]
    output: OutputArguments,
}

fn any_case(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).case_insensitive(true).build().map_err(|error| error.to_string())
}

fn exact_case(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| format!("{error:#}"))
}

/// Runs the command.
pub(crate) fn run(arguments: QueryArguments) -> anyhow::Result<ExitCode> {
    let output = &arguments.output;
    let ids = match arguments.require_frames.as_slice() {
        [] => None,
        frames if is_trace(&arguments.file) => Some(blocks_of_frames(&arguments.file, frames)?),
        _ => anyhow::bail!("--require-frames: of native heaps only, and this is a V8 one"),
    };
    ask(
        &arguments.file,
        |view| Ok(find(&arguments, ids.as_ref(), view, Page::top(output.top()))?),
        |found| {
            let mut sheet = object_sheet("heapr.snapshot.query/1");
            sheet.fact("object_count", found.total_count);
            let title = plural(found.total_count, "object");
            add_objects(&mut sheet, found);
            print_table(&sheet, output.format, &[title, String::new()])?;
            Ok(ExitCode::SUCCESS)
        },
    )
}

fn find(
    wanted: &QueryArguments,
    ids: Option<&HashSet<u64>>,
    view: &SnapshotView,
    page: Page,
) -> heapr_v8::Result<Listed<ObjectRow>> {
    let only = ids.map(|ids| nodes_of(ids, view)).transpose()?;
    let classes: Option<Vec<u32>> = wanted.class.as_ref().map(|pattern| {
        let classes = (0..).zip(view.objects().class_list());
        classes.filter(|(_, class)| pattern.is_match(&class.name)).map(|(number, _)| number).collect()
    });
    let name = wanted.name.as_ref().map(|pattern| |text: &[u8]| pattern.is_match(text));
    let field = wanted.property.as_ref().map(|pattern| |text: &[u8]| pattern.is_match(text));
    let text = wanted.text.as_ref().map(|pattern| |text: &[u8]| pattern.is_match(text));
    let limits = |least: Option<u64>, most: Option<u64>| {
        (least.is_some() || most.is_some()).then(|| (least.unwrap_or(0), most.unwrap_or(u64::MAX)))
    };
    let query = ObjectQuery {
        classes: classes.as_deref(),
        name: name.as_ref().map(|test| test as TextTest<'_>),
        field: field.as_ref().map(|test| test as TextTest<'_>),
        text: text.as_ref().map(|test| test as TextTest<'_>),
        kind: wanted.kind.as_deref(),
        self_bytes: limits(wanted.min_shallow, wanted.max_shallow),
        retained_bytes: limits(wanted.min_retained, wanted.max_retained),
        is_detached: wanted.detached,
        only: only.as_ref(),
    };
    view.search(&query, wanted.sort.into(), page)
}

/// Returns the nodes with these ids.
fn nodes_of(ids: &HashSet<u64>, view: &SnapshotView) -> heapr_v8::Result<NodeSet> {
    let mut nodes = NodeSet::new(view.objects().node_count());
    for &id in ids {
        if let Some(node) = view.node_of_id(id)? {
            nodes.insert(node);
        }
    }
    Ok(nodes)
}
