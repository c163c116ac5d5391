//! V8 heap snapshots: one file for each command.

pub(crate) mod allocations;
mod analysis;
mod anonymize;
mod check;
mod containment;
mod diff;
mod dominators;
mod doubts;
mod export;
mod filter_arguments;
pub(crate) mod heap_file;
pub(crate) mod index_cache;
mod native_contexts;
pub(crate) mod native_holders;
mod object;
mod packages;
pub(crate) mod profile_diff;
mod query;
mod retainers;
pub(crate) mod source_maps;
mod statistics;
mod summary;
mod summary_file;
mod trend;

use std::process::ExitCode;

use heapr_table::Cell;
use heapr_v8::devtools::BASE_SYSTEM_DISTANCE;

use super::verbs::{DiffQuestion, Heaps, SummaryQuestion, SuspectsQuestion};

/// V8 heaps, for the commands of all kinds of heaps.
pub(crate) struct V8;

impl Heaps for V8 {
    type SummaryOptions = summary::SummaryOptions;
    type DiffOptions = diff::DiffOptions;
    type SuspectsOptions = NoOptions;

    fn summary(asked: &SummaryQuestion, options: &Self::SummaryOptions) -> anyhow::Result<ExitCode> {
        summary::run(asked, options)
    }

    fn diff(asked: &DiffQuestion, options: &Self::DiffOptions) -> anyhow::Result<ExitCode> {
        diff::run(asked, options)
    }

    fn suspects(asked: &SuspectsQuestion, _options: &NoOptions) -> anyhow::Result<ExitCode> {
        analysis::suspects(asked)
    }
}

/// Formats a distance; `-` if no path leads from a global object to the node.
fn distance(distance: i32) -> Cell {
    match distance {
        0..BASE_SYSTEM_DISTANCE => Cell::worded(distance, distance.to_string()),
        _ => Cell::worded(distance, "-"),
    }
}

/// No options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct NoOptions {}

/// The commands that only V8 snapshots have an answer to.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum V8Command {
    #[command(flatten)]
    Analysis(analysis::AnalysisCommand),
    /// List what the functions of a program allocated, from a sampling profile or an allocation
    /// timeline
    Allocations(Box<allocations::AllocationsArguments>),
    /// List whose code fills the heap, by npm package or source file; of several snapshots,
    /// whose grows
    Packages(Box<packages::PackagesArguments>),
    /// Print what kinds of things fill the heap: code, strings, arrays, buffers
    Statistics(Box<statistics::StatisticsArguments>),
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
pub(crate) fn run(command: V8Command) -> anyhow::Result<ExitCode> {
    match command {
        V8Command::Analysis(command) => analysis::run(command),
        V8Command::Allocations(arguments) => allocations::run(*arguments),
        V8Command::Packages(arguments) => packages::run(&arguments),
        V8Command::Statistics(arguments) => statistics::run(*arguments),
        V8Command::NativeContexts(arguments) => native_contexts::run(*arguments),
        V8Command::Containment(arguments) => containment::run(*arguments),
        V8Command::Retainers(arguments) => retainers::run(*arguments),
        V8Command::Dominators(arguments) => dominators::run(*arguments),
        V8Command::Object(arguments) => object::run(*arguments),
        V8Command::Query(arguments) => query::run(*arguments),
        V8Command::Check(arguments) => check::run(*arguments),
        V8Command::Anonymize(arguments) => anonymize::run(*arguments),
        V8Command::Export(arguments) => export::run(*arguments),
    }
}
