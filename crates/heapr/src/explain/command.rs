//! The command: what is asked, and how the answer leaves.

use std::path::PathBuf;
use std::process::ExitCode;

use super::answer::Answer;
use super::findings;
use super::resident::{self, ResidentArguments};
use super::target::Target;
use crate::output::output;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;

/// Arguments of `heapr explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArguments {
    /// A process by its id, a session by its name, or files: traces, snapshots of V8
    #[arg(value_name = "PID|NAME|FILE", required = true)]
    target: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) names: NameArguments,
    #[command(flatten)]
    pub(super) own: OwnArguments,
    #[command(flatten, next_help_heading = "Resident memory of a process")]
    pub(super) resident: ResidentArguments,
    /// Format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
}

/// Forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// To be read
    Text,
    /// For programs: schema heapr.explain/1
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let target = Target::of(&arguments.target)?;
    let answer = match &target {
        Target::Process(pid) => {
            let resident = Some(resident::of_process(*pid, &arguments)?);
            Answer { subject: target.name(), resident, ..Answer::default() }
        }
        Target::Session(session) => findings::of_session(session, &arguments)?,
        Target::Files(files) => findings::of_files(files, &arguments)?,
    };
    let mut out = output(arguments.output.as_deref(), arguments.force, arguments.format == Form::Text)?;
    match arguments.format {
        Form::Text => answer.write_text(&mut out)?,
        Form::Json => writeln!(out, "{:#}", answer.json()?)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
