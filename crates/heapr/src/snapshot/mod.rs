//! `heapr snapshot`: V8 heap snapshots. One file for each command.

pub(crate) mod allocations;
mod anonymize;
mod check;
mod containment;
mod diff;
mod dominators;
mod export;
mod filter_arguments;
pub(crate) mod heap_file;
pub(crate) mod index_cache;
mod limit;
mod native_contexts;
mod object;
mod query;
mod retainers;
pub(crate) mod sheet;
mod statistics;
mod summary;
mod summary_file;
mod trend;

use std::process::ExitCode;

use crate::{snapshot_analysis, snapshot_take};

/// The commands of `heapr snapshot`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotCommand {
    #[command(flatten)]
    Taking(snapshot_take::SnapshotCommand),
    #[command(flatten)]
    Analysis(snapshot_analysis::AnalysisCommand),
    /// List the classes of a snapshot: count, distance, shallow and retained size; of a FILE.heapr its snapshots and stacks
    Summary(Box<summary::SummaryArguments>),
    /// List what the functions of a program allocated, from a sampling profile or an allocation timeline
    Allocations(Box<allocations::AllocationsArguments>),
    /// Print what kinds of things fill the heap: code, strings, arrays, buffers
    Statistics(Box<statistics::StatisticsArguments>),
    /// Compare two snapshots by class; with more of them, the course of each class; of a FILE.heapr by stack
    Diff(Box<diff::DiffArguments>),
    /// List whose objects fill the heap, where pages or vm contexts share it
    NativeContexts(Box<native_contexts::NativeContextsArguments>),
    /// List what an object refers to
    Containment(Box<containment::ContainmentArguments>),
    /// List what refers to an object, and the shortest ways to it from a root
    Retainers(Box<retainers::RetainersArguments>),
    /// Print which objects alone keep an object alive, and what it keeps alive itself
    Dominators(Box<dominators::DominatorsArguments>),
    /// Print an object: class, sizes, place in the source, fields
    Object(Box<object::ObjectArguments>),
    /// Find objects by name, class, property, text, type or size
    Query(Box<query::QueryArguments>),
    /// Say what is wrong with a snapshot file, and where
    Check(Box<check::CheckArguments>),
    /// Write a snapshot in which texts are replaced and the structure is kept
    Anonymize(Box<anonymize::AnonymizeArguments>),
    /// Write a smaller snapshot: one object with all that it keeps alive
    Export(Box<export::ExportArguments>),
}

/// Runs the command.
pub(crate) fn run(command: SnapshotCommand) -> anyhow::Result<ExitCode> {
    match command {
        SnapshotCommand::Taking(command) => snapshot_take::run(command),
        SnapshotCommand::Analysis(command) => snapshot_analysis::run(command),
        SnapshotCommand::Summary(arguments) => summary::run(*arguments),
        SnapshotCommand::Allocations(arguments) => allocations::run(*arguments),
        SnapshotCommand::Statistics(arguments) => statistics::run(*arguments),
        SnapshotCommand::Diff(arguments) => diff::run(*arguments),
        SnapshotCommand::NativeContexts(arguments) => native_contexts::run(*arguments),
        SnapshotCommand::Containment(arguments) => containment::run(*arguments),
        SnapshotCommand::Retainers(arguments) => retainers::run(*arguments),
        SnapshotCommand::Dominators(arguments) => dominators::run(*arguments),
        SnapshotCommand::Object(arguments) => object::run(*arguments),
        SnapshotCommand::Query(arguments) => query::run(*arguments),
        SnapshotCommand::Check(arguments) => check::run(*arguments),
        SnapshotCommand::Anonymize(arguments) => anonymize::run(*arguments),
        SnapshotCommand::Export(arguments) => export::run(*arguments),
    }
}
