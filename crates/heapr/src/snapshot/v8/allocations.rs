//! `heapr snapshot allocations`: allocations of a program's functions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use heapr_export::{SampleFrame, Samples};
use heapr_trace::Amounts;
use heapr_v8::{CallFunction, CallTree};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::v8::heap_file::{Wanted, open};
use crate::snapshot::v8::source_maps::{maps_for, tell_unused};
use heapr_table::quantity::bytes;
use heapr_table::{Column, Table, row};

/// Arguments of `heapr snapshot allocations`.
#[derive(Debug, clap::Args)]
pub(crate) struct AllocationsArguments {
    /// A sampling profile (.heapprofile) or an allocation timeline (.heaptimeline)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: AllocationsArguments) -> anyhow::Result<ExitCode> {
    print(&arguments.file, &arguments.output)
}

/// Whether the file is a sampling profile; `false` for a pipe.
pub(crate) fn is_profile(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file())
        && CallTree::is_profile(file).unwrap_or(false)
}

pub(super) fn read(file: &Path) -> anyhow::Result<CallTree> {
    let mut tree = if is_profile(file) {
        CallTree::read_profile(file).with_context(|| file.display().to_string())?
    } else {
        let heap = open(file, Wanted::Classes)?;
        CallTree::of_timeline(&heap)
            .with_context(|| format!("{}: no allocations were recorded with this snapshot", file.display()))?
    };
    if let Some(maps) = maps_for(file) {
        tree.use_source_maps(&maps);
        tell_unused(Some(&maps));
    }
    Ok(tree)
}

/// Prints a line for each function.
pub(crate) fn print(file: &Path, output: &OutputArguments) -> anyhow::Result<ExitCode> {
    let tree = read(file)?;
    let mut sheet = Table::new(
        "heapr.snapshot.allocations/1",
        &[
            Column::text("function", "Function"),
            Column::text("place", "Place"),
            Column::bytes("live_bytes", "Live"),
            Column::count("live_count", if tree.is_sampled { "Samples" } else { "Objects" }),
            Column::bytes("live_bytes_with_calls", "Live with calls"),
            Column::bytes("allocated_bytes", "Allocated"),
            Column::count("allocated_count", "Allocations"),
        ],
    );
    sheet.fact("is_sampled", tree.is_sampled);
    let lines = tree.by_function();
    let known = |amount: u64| (!tree.is_sampled).then_some(amount);
    sheet.rows(
        output.top(),
        lines.iter().filter(|line| line.whole != Default::default()).map(|line| {
            let function = &tree.functions[line.function as usize];
            row![
                function.name.clone(),
                place(function),
                line.own.live_bytes,
                line.own.live_count,
                line.whole.live_bytes,
                known(line.own.allocated_bytes),
                known(line.own.allocated_count),
            ]
        }),
    );
    let live: u64 = tree.nodes.iter().map(|node| node.own.live_bytes).sum();
    let how = if tree.is_sampled { "estimated from samples" } else { "every allocation recorded" };
    print_table(&sheet, output.format, &[format!("{} live, {how}", bytes(live)), String::new()])?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn place(function: &CallFunction) -> Option<String> {
    match (function.script.as_str(), function.line) {
        ("", _) => None,
        (script, 0) => Some(script.to_owned()),
        (script, line) => Some(format!("{script}:{line}:{}", function.column)),
    }
}

/// Returns the stacks for export.
pub(crate) fn samples(file: &Path) -> anyhow::Result<Samples> {
    let tree = read(file)?;
    let frame = |function: &CallFunction| SampleFrame {
        name: function.name.clone(),
        module: function.script.clone(),
        file: function.script.clone(),
        line: function.line,
    };
    let held = (0..).zip(&tree.nodes).filter(|(_, node)| node.own != Default::default());
    Ok(Samples::of_stacks(held.map(|(at, node)| {
        let amounts = Amounts {
            outstanding_bytes: node.own.live_bytes,
            outstanding_count: node.own.live_count,
            total_bytes: node.own.allocated_bytes,
            total_count: node.own.allocated_count,
            ..Amounts::default()
        };
        (tree.stack(at).map(frame).collect(), amounts)
    })))
}

/// Whether the file is of a kind that [`samples`] reads: these are JSON, which traces are not.
pub(crate) fn is_v8_file(file: &Path) -> bool {
    let has_json_name = file.extension().is_some_and(|extension| {
        ["heapprofile", "heaptimeline", "heapsnapshot"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    });
    has_json_name || is_profile(file)
}
