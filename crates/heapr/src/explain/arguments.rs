//! Arguments of `heapr explain`.

use std::path::PathBuf;

use super::resident::ResidentArguments;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::snapshot::v8::source_maps::SourceMapArguments;
use crate::thresholds::{Threshold, threshold};

/// Arguments of `heapr explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArguments {
    /// A process by its id or its program's name, a session by its name, or files. Files are traces
    /// or snapshots of V8 [default: the newest trace in this folder]
    #[arg(value_name = "PID|NAME|FILE")]
    pub(super) target: Vec<PathBuf>,
    /// Tell where all memory of a recording is at a moment: functions, what malloc keeps, files,
    /// the rest
    #[arg(long = "where", conflicts_with_all = ["fail_on", "suppress"])]
    pub(super) where_it_is: bool,
    /// Moment of --where [default: peak]
    #[arg(long, value_name = "peak|TIME", requires = "where_it_is", allow_negative_numbers = true)]
    pub(super) at: Option<String>,
    #[command(flatten)]
    pub(super) names: NameArguments,
    #[command(flatten)]
    pub(super) own: OwnArguments,
    #[command(flatten, next_help_heading = "Snapshots of V8")]
    pub(super) source_maps: SourceMapArguments,
    #[command(flatten, next_help_heading = "Resident memory of a process")]
    pub(super) resident: ResidentArguments,
    /// Say nothing of stacks that a file of suppressions names, in LeakSanitizer's or Valgrind's
    /// syntax
    #[arg(long, value_name = "FILE")]
    pub(super) suppress: Vec<PathBuf>,
    /// End with 1 if this is found: growth, leak (growth that is never freed), churn, peak=SIZE;
    /// may be given several times
    #[arg(long, value_name = "KIND", value_parser = threshold)]
    pub(super) fail_on: Vec<Threshold>,
    /// Format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub(super) format: Form,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    pub(super) force: bool,
}

/// Forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// To be read
    Text,
    /// For programs: schema heapr.explain/1
    Json,
    /// Annotations of a workflow on GitHub
    Github,
    /// JUnit's XML, as most CI systems read it
    Junit,
    /// A page by itself: the resident memory of a process as a treemap
    Html,
}
