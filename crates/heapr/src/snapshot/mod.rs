//! `heapr snapshot`: one family of commands for V8 heaps and native ones.
//!
//! The kind of heap is determined from the files or processes, after the arguments are parsed.

mod graph_of_core;
mod kept_folder;
mod limit;
pub(crate) mod managed;
pub(crate) mod native;
mod take;
pub(crate) mod v8;
pub(crate) mod verbs;

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use managed::dump_file::DumpArguments;
use native::Native;
use v8::V8;
use v8::source_maps::SourceMapArguments;
use verbs::{DiffQuestion, HeapKind, Heaps, OnlyOf, SummaryQuestion, SuspectsQuestion};

/// Arguments of `heapr snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArguments {
    #[command(subcommand)]
    command: SnapshotCommand,
    #[command(flatten, next_help_heading = "V8 heaps")]
    source_maps: SourceMapArguments,
    #[command(flatten, next_help_heading = "Heap dumps of Java and Ruby")]
    dumps: DumpArguments,
}

/// The commands of `heapr snapshot`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Take a snapshot of running processes: of the objects of JavaScript (Node, Deno, Electron,
    /// Chrome), Python or Java, or of any other's native heap
    Take(Box<take::TakeArguments>),
    /// Take snapshots at intervals, or when the heap passes a size
    Every(Box<take::EveryArguments>),
    /// List the classes of a V8 heap: count, distance, shallow and retained size; or the snapshots
    /// of a trace, and the stacks of one
    Summary(Box<SummaryArguments>),
    /// Compare snapshots: V8 heaps by class, native ones by stack, frame or image
    Diff(Box<DiffArguments>),
    /// Rank what keeps growing from snapshot to snapshot: the likeliest leak first
    Suspects(Box<SuspectsArguments>),
    /// List the blocks of a native heap that nothing leads to any more, by where they were made
    Leaks(Box<native::LeaksArguments>),
    /// Read the graph of a process that is gone from its core file: leaks, holders and the other
    /// verbs then read the trace
    Graph(Box<graph_of_core::GraphOfArguments>),
    /// Rank what holds a native heap: variables, stack frames, mappings, with all that would go
    /// with each, and how it grows
    Holders(Box<native::HoldersArguments>),
    #[command(flatten)]
    V8(v8::V8Command),
}

impl SnapshotCommand {
    /// True for the commands that read files, and no process.
    fn reads(&self) -> bool {
        !matches!(self, Self::Take(_) | Self::Every(_))
    }
}

/// Arguments of `heapr snapshot summary`.
#[derive(Debug, clap::Args)]
pub(crate) struct SummaryArguments {
    #[command(flatten)]
    asked: SummaryQuestion,
    #[command(flatten, next_help_heading = "V8 heaps")]
    v8: OnlyOf<<V8 as Heaps>::SummaryOptions>,
    #[command(flatten, next_help_heading = "Native heaps")]
    native: OnlyOf<<Native as Heaps>::SummaryOptions>,
}

/// Arguments of `heapr snapshot diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    asked: DiffQuestion,
    #[command(flatten, next_help_heading = "V8 heaps")]
    v8: OnlyOf<<V8 as Heaps>::DiffOptions>,
    #[command(flatten, next_help_heading = "Native heaps")]
    native: OnlyOf<<Native as Heaps>::DiffOptions>,
}

/// Arguments of `heapr snapshot suspects`.
#[derive(Debug, clap::Args)]
pub(crate) struct SuspectsArguments {
    #[command(flatten)]
    asked: SuspectsQuestion,
    #[command(flatten, next_help_heading = "V8 heaps")]
    v8: OnlyOf<<V8 as Heaps>::SuspectsOptions>,
    #[command(flatten, next_help_heading = "Native heaps")]
    native: OnlyOf<<Native as Heaps>::SuspectsOptions>,
}

/// Runs the command.
pub(crate) fn run(arguments: SnapshotArguments) -> anyhow::Result<ExitCode> {
    arguments.source_maps.apply();
    arguments.dumps.apply();
    let _busy = arguments.command.reads().then(|| crate::busy_line::begin("reading snapshots"));
    match arguments.command {
        SnapshotCommand::Take(arguments) => take::take(*arguments),
        SnapshotCommand::Every(arguments) => take::every(*arguments),
        SnapshotCommand::Summary(arguments) => {
            let SummaryArguments { asked, v8, native } = *arguments;
            match kind(slice::from_ref(&asked.file), &v8, &native)? {
                HeapKind::V8 => V8::summary(&asked, &v8.options),
                HeapKind::Native => Native::summary(&asked, &native.options),
            }
        }
        SnapshotCommand::Diff(arguments) => {
            let DiffArguments { asked, v8, native } = *arguments;
            match kind(&asked.files, &v8, &native)? {
                HeapKind::V8 => V8::diff(&asked, &v8.options),
                HeapKind::Native => Native::diff(&asked, &native.options),
            }
        }
        SnapshotCommand::Suspects(arguments) => {
            let SuspectsArguments { asked, v8, native } = *arguments;
            match kind(&asked.files, &v8, &native)? {
                HeapKind::V8 => V8::suspects(&asked, &v8.options),
                HeapKind::Native => Native::suspects(&asked, &native.options),
            }
        }
        SnapshotCommand::Leaks(arguments) => native::leaks(&arguments),
        SnapshotCommand::Graph(arguments) => graph_of_core::run(*arguments),
        SnapshotCommand::Holders(arguments) => match arguments.of_objects()? {
            Some((file, output)) => v8::native_holders::run(file, output),
            None => native::holders(&arguments),
        },
        SnapshotCommand::V8(command) => v8::run(command),
    }
}

/// Returns the kind of heap in files, and refuses the options of the other kind.
fn kind<A, B>(files: &[PathBuf], v8: &OnlyOf<A>, native: &OnlyOf<B>) -> anyhow::Result<HeapKind> {
    let kind = HeapKind::of(files)?;
    match kind {
        HeapKind::V8 => native.refuse(kind)?,
        HeapKind::Native => v8.refuse(kind)?,
    }
    Ok(kind)
}
