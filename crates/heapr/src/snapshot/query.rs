//! `heapr snapshot query`: objects by what is known of them.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::Heap;
use heapr_v8::{DomState, NodeKind};
use regex::bytes::{Regex, RegexBuilder};

use crate::report::quantity::{parse_bytes, plural};
use crate::snapshot::heap_file::{Wanted, open};
use crate::snapshot::sheet::OutputArguments;
use crate::snapshot::summary::{Order, object_row, object_sheet, sort_objects};

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
    /// Only DOM nodes that no longer hang in their document
    #[arg(long)]
    detached: bool,
    /// What is listed first
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
    let heap = open(&arguments.file, Wanted::Everything)?;
    let mut nodes = matching(&heap, &arguments);
    sort_objects(&heap, &mut nodes, arguments.sort);
    let mut sheet = object_sheet("heapr.snapshot.query/1");
    sheet.fact("object_count", nodes.len());
    let top = arguments.output.top();
    sheet.rows(top, nodes.iter().take(top).map(|&node| object_row(&heap, node)));
    sheet.left_off(nodes.len().saturating_sub(top) as u64);
    sheet.print(arguments.output.format, &[plural(nodes.len() as u64, "object"), String::new()])?;
    Ok(ExitCode::SUCCESS)
}

fn matching(heap: &Heap, wanted: &QueryArguments) -> Vec<u32> {
    let snapshot = heap.snapshot();
    let strings = snapshot.strings();
    // A pattern is tried once for each name, not for each object.
    let of_strings = |pattern: &Option<Regex>| -> Option<Vec<bool>> {
        let pattern = pattern.as_ref()?;
        Some((0..strings.count()).map(|number| pattern.is_match(strings.get(number))).collect())
    };
    let properties = of_strings(&wanted.property);
    let classes: Option<Vec<bool>> = wanted.class.as_ref().map(|pattern| {
        (0..heap.classes().count()).map(|class| pattern.is_match(&heap.classes().get(class).name)).collect()
    });
    let is_within = |value: u64, min: Option<u64>, max: Option<u64>| {
        min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
    };
    let has_property = |node: u32| {
        properties.as_ref().is_none_or(|properties| {
            snapshot.graph().edges(node).any(|edge| {
                let number = snapshot.edge_name_number(edge);
                if snapshot.edge_kind(edge).has_string_name() {
                    properties.get(number as usize).copied().unwrap_or(false)
                } else {
                    wanted
                        .property
                        .as_ref()
                        .is_some_and(|pattern| pattern.is_match(number.to_string().as_bytes()))
                }
            })
        })
    };
    (0..snapshot.node_count())
        .filter(|&node| {
            let kind = snapshot.kind(node);
            is_within(snapshot.self_bytes(node), wanted.min_shallow, wanted.max_shallow)
                && is_within(heap.retained()[node as usize], wanted.min_retained, wanted.max_retained)
                && (!wanted.detached || snapshot.dom_state(node) == DomState::Detached)
                && wanted
                    .kind
                    .as_ref()
                    .is_none_or(|name| snapshot.meta().node_kind_name(kind).eq_ignore_ascii_case(name))
                && classes.as_ref().is_none_or(|classes| classes[heap.classes().of_node(node) as usize])
                && wanted.name.as_ref().is_none_or(|pattern| pattern.is_match(&heap.display_name(node)))
                && wanted.text.as_ref().is_none_or(|pattern| {
                    (kind.is_string() || kind == NodeKind::SYMBOL)
                        && pattern.is_match(&heap.display_name(node))
                })
                && has_property(node)
        })
        .collect()
}
