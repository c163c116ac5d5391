//! What fills a native heap, by what is known of its blocks.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use heapr_query::{CullList, GroupBy, StackGroups};
use heapr_table::quantity::{bytes, percent, plural};
use heapr_table::{Cell, Column, Table, row};

use super::block_names::BlockNames;
use super::graph_file::{GraphArguments, GraphFile};
use crate::output::{Format, print_table};
use crate::report::names::TraceNames;

/// How the names of each kind end; what none of these does is told by the object itself, and what
/// begins with `block` by nothing.
const KINDS: [(&str, &str, &str); 5] = [
    ("cpython", "objects of CPython", "(of CPython)"),
    ("debug_information", "types by debug information", "(by debug information)"),
    ("allocation", "types by the functions that allocated them", "(by its allocation)"),
    ("shape", "containers by their shape", "(by its shape)"),
    ("holder", "parts of a known type, by their holder", "(by its holder)"),
];
const OBJECTS: (&str, &str) = ("virtual_functions", "objects with virtual functions");
const UNTOLD: (&str, &str) = ("site", "by the function that allocated them only");

/// Prints the table.
pub(crate) fn statistics(path: &Path, format: Format) -> anyhow::Result<ExitCode> {
    let asked = GraphArguments::default();
    let file = GraphFile::open(path, &asked)?;
    let mut names = TraceNames::new(&file.trace, &asked.names);
    let stacks: HashSet<_> = file.blocks.iter().map(|block| block.stack).collect();
    let groups = StackGroups::of_all(&file.trace, stacks, GroupBy::Stacks, &CullList::built_in(), &mut names);
    let of_blocks = BlockNames::of(&file, &groups, &mut names);
    let kinds: Vec<(&str, &str)> =
        [OBJECTS].into_iter().chain(KINDS.map(|(key, heading, _)| (key, heading))).chain([UNTOLD]).collect();
    let mut sums = vec![(0_u64, 0_u64); kinds.len()];
    for (node, block) in file.blocks.iter().enumerate() {
        let name = of_blocks.name(node as u32);
        let told = KINDS.iter().position(|(_, _, end)| name.ends_with(end)).map(|kind| kind + 1);
        let is_untold = name == "block" || name.starts_with("block of ");
        let kind = told.unwrap_or(if is_untold { kinds.len() - 1 } else { 0 });
        sums[kind].0 += 1;
        sums[kind].1 += block.size_bytes;
    }
    let all_bytes: u64 = sums.iter().map(|(_, bytes)| bytes).sum();
    let all_count = file.blocks.len() as u64;
    let mut table = Table::new(
        "heapr.snapshot.statistics/1",
        &[
            Column::text("kind", "What tells it"),
            Column::count("count", "Blocks"),
            Column::bytes("bytes", "Bytes"),
            Column::text("share", "Share"),
        ],
    );
    table.fact("heap", "native");
    let rows = kinds.iter().zip(&sums).map(|(&(key, heading), &(count, sum_bytes))| {
        row![Cell::worded(key, heading), count, sum_bytes, percent(sum_bytes, all_bytes)]
    });
    let total = row![Cell::worded("total", "(total)"), all_count, all_bytes, percent(all_bytes, all_bytes)];
    table.rows(usize::MAX, rows.chain([total]));
    let title = format!(
        "{}: snapshot {} of {}: {} in {}",
        path.display(),
        file.snapshot.number,
        file.process_name(),
        bytes(all_bytes),
        plural(all_count, "block")
    );
    print_table(&table, format, &[title, String::new()])?;
    Ok(ExitCode::SUCCESS)
}
