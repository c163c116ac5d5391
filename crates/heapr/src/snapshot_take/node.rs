//! `heapr node`: starts Node ready for snapshots, or inspects a running one at low cost.

use std::process::ExitCode;

use super::node_prepare::{self, PrepareArguments};
use super::node_run::{self, RunArguments};
use super::node_sample::{self, SampleArguments};
use super::node_timeline::{self, TimelineArguments};

/// Arguments of `heapr node`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct NodeArguments {
    #[command(subcommand)]
    command: Option<NodeCommand>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, clap::Subcommand)]
enum NodeCommand {
    /// Make a running process ready for snapshots that can be compared object by object.
    Prepare(Box<PrepareArguments>),
    /// Sample the allocations of a running process, at next to no cost, into a .heapprofile.
    Sample(Box<SampleArguments>),
    /// Record what a running process allocates and where, into a .heaptimeline.
    Timeline(Box<TimelineArguments>),
}

/// Runs the command.
pub(crate) fn run(arguments: NodeArguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(NodeCommand::Prepare(arguments)) => node_prepare::run(*arguments),
        Some(NodeCommand::Sample(arguments)) => node_sample::run(*arguments),
        Some(NodeCommand::Timeline(arguments)) => node_timeline::run(*arguments),
        None => node_run::run(arguments.run),
    }
}
