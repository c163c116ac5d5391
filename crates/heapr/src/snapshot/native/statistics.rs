//! Bytes of a native heap by the evidence for its blocks' names.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use heapr_query::{CullList, GroupBy, StackGroups};
use heapr_server::GraphKind;
use heapr_table::quantity::{bytes, percent, plural};
use heapr_table::{Cell, Column, Table, row};

use super::block_names::{BlockNames, TypeSource};
use super::graph_file::{GraphArguments, GraphFile};
use crate::output::{Format, print_table};
use crate::report::names::TraceNames;

/// Kinds of evidence: key and heading of the row.
const KINDS: [(Option<TypeSource>, &str, &str); 7] = [
    (Some(TypeSource::VirtualFunctions), "virtual_functions", "objects with virtual functions"),
    (Some(TypeSource::Python), "cpython", "objects of CPython"),
    (Some(TypeSource::DebugInformation), "debug_information", "types by debug information"),
    (Some(TypeSource::Allocation), "allocation", "types by the functions that allocated them"),
    (Some(TypeSource::Shape), "shape", "containers by their shape"),
    (Some(TypeSource::Holder), "holder", "parts of a known type, by their holder"),
    (None, "site", "by the function that allocated them only"),
];

/// Number and bytes of blocks of each kind in `KINDS`.
type Sums = [(u64, u64); KINDS.len()];

fn sums(file: &GraphFile, asked: &GraphArguments) -> Sums {
    let mut names = TraceNames::new(&file.trace, &asked.names);
    let stacks: HashSet<_> = file.blocks.iter().map(|block| block.stack).collect();
    let groups = StackGroups::of_all(&file.trace, stacks, GroupBy::Stacks, &CullList::built_in(), &mut names);
    let of_blocks = BlockNames::of(file, &groups, &mut names);
    let mut sums = [(0, 0); KINDS.len()];
    for (node, block) in (0..).zip(&file.blocks) {
        let source = of_blocks.source(node);
        if let Some(kind) = KINDS.iter().position(|(of_kind, ..)| *of_kind == source) {
            sums[kind].0 += 1;
            sums[kind].1 += block.size_bytes;
        }
    }
    sums
}

/// Returns the sums for the page, with a row for all.
pub(crate) fn graph_kinds(path: &Path, asked: &GraphArguments) -> anyhow::Result<Vec<GraphKind>> {
    let file = GraphFile::open(path, asked)?;
    let sums = sums(&file, asked);
    let kinds = KINDS.iter().zip(sums);
    let kinds = kinds.map(|(&(_, kind, heading), (count, bytes))| GraphKind { kind, heading, count, bytes });
    let all = GraphKind {
        kind: "total",
        heading: "total",
        count: sums.iter().map(|(count, _)| count).sum(),
        bytes: sums.iter().map(|(_, bytes)| bytes).sum(),
    };
    Ok(kinds.chain([all]).collect())
}

/// Prints the table of sums.
pub(crate) fn statistics(path: &Path, format: Format) -> anyhow::Result<ExitCode> {
    let asked = GraphArguments::default();
    let file = GraphFile::open(path, &asked)?;
    let sums = sums(&file, &asked);
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
    let rows = KINDS.iter().zip(&sums).map(|(&(_, key, heading), &(count, sum_bytes))| {
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
