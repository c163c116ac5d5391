//! Commands of `heapr snapshot` that explain growth, retention and waste.

mod closures;
mod kept_suspects;
mod listings;
mod path_text;
mod single;
mod suspects;
mod suspects_text;

use std::process::ExitCode;

use heapr_v8::analysis::Listing;

pub(super) use suspects::run as suspects;

/// Commands over one or more snapshot files.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AnalysisCommand {
    /// List texts that are in memory more than once, by waste.
    Strings(Box<listings::ListingArguments>),
    /// List large Maps, Sets, arrays and dictionaries, or those that are mostly empty.
    Collections(Box<listings::CollectionsArguments>),
    /// List objects by class and fields.
    Shapes(Box<listings::ListingArguments>),
    /// List the objects that refer to most others.
    Fanout(Box<listings::ListingArguments>),
    /// List DOM trees that no document shows and something still holds.
    Detached(Box<listings::ListingArguments>),
    /// List what no strong reference leads to, by class.
    Unreachable(Box<listings::ListingArguments>),
    /// List the variables that functions keep alive, by what they retain; or those that no
    /// function uses any more
    Closures(Box<closures::ClosuresArguments>),
    /// List what waits: functions behind unsettled promises, timers, listeners, handles, stores of
    /// AsyncLocalStorage
    Pending(Box<listings::ListingArguments>),
}

/// Runs the command.
pub(crate) fn run(command: AnalysisCommand) -> anyhow::Result<ExitCode> {
    match command {
        AnalysisCommand::Strings(arguments) => listings::print(*arguments, Listing::Strings),
        AnalysisCommand::Collections(arguments) => listings::collections(*arguments),
        AnalysisCommand::Shapes(arguments) => listings::print(*arguments, Listing::Shapes),
        AnalysisCommand::Fanout(arguments) => listings::print(*arguments, Listing::Fanout),
        AnalysisCommand::Detached(arguments) => listings::print(*arguments, Listing::Detached),
        AnalysisCommand::Unreachable(arguments) => listings::print(*arguments, Listing::Unreachable),
        AnalysisCommand::Closures(arguments) => closures::run(*arguments),
        AnalysisCommand::Pending(arguments) => listings::print(*arguments, Listing::Pending),
    }
}
