//! The command: what is asked, and how the answer leaves.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_findings::{Finding, Kind};

use super::answer::{Answer, Subject};
use super::resident::{self, Resident, ResidentArguments};
use super::target::{Target, client};
use super::thresholds::{Threshold, threshold};
use super::{findings, for_ci};
use crate::output::output;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::style::Style;
use heapr_table::quantity::bytes;

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
    /// End with 1 if this is found: growth, leak (growth that is never freed), churn, peak=SIZE;
    /// may be given several times
    #[arg(long, value_name = "KIND", value_parser = threshold)]
    fail_on: Vec<Threshold>,
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
    /// Annotations of a workflow on GitHub
    Github,
    /// JUnit's XML, as most CI systems read it
    Junit,
    /// A page by itself: the resident memory of a process as a treemap
    Html,
}

/// Runs the command.
pub(crate) fn run(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let target = Target::of(&arguments.target)?;
    let output_file = arguments.output.as_deref();
    if let Target::Process(pid) = target {
        let out = || output(output_file, arguments.force, false);
        if resident::series(pid, &arguments.resident, out)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let answer = match &target {
        Target::Process(pid) => {
            let resident = resident::of_process(*pid, &arguments.resident)?;
            let (findings, verdict) = (resident.findings(), resident.verdict());
            let subject = Subject { name: target.name(), findings, verdict, ..Subject::default() };
            Answer { subjects: vec![subject], resident: Some(resident) }
        }
        Target::Session(session) => {
            let mut answer = findings::of_session(session, &arguments)?;
            answer.resident = resident::of_session(&client(session)?, &arguments.names, &arguments.own)?;
            let more = answer.resident.iter().flat_map(Resident::findings);
            if let Some(subject) = answer.subjects.first_mut() {
                subject.findings.extend(more);
            }
            answer
        }
        Target::Files(files) => findings::of_files(files, &arguments)?,
    };
    let is_text = arguments.format == Form::Text;
    let mut out = output(arguments.output.as_deref(), arguments.force, is_text)?;
    let is_failure = |subject: &Subject, finding: &Finding| {
        arguments.fail_on.iter().any(|threshold| {
            threshold.is_passed_by(finding) || finding.kind == Kind::Peak && passes_peak(subject, *threshold)
        })
    };
    match arguments.format {
        Form::Text => {
            let style = if arguments.output.is_none() { Style::of_stdout() } else { Style::default() };
            answer.write_text(&mut out, style)?;
        }
        Form::Json => writeln!(out, "{:#}", answer.json()?)?,
        Form::Html => match &answer.resident {
            Some(resident) => {
                let findings: Vec<Finding> = answer.findings().map(|(_, finding)| finding.clone()).collect();
                resident.write_html(&findings, &mut out)?;
            }
            None => {
                anyhow::bail!("--format html shows the resident memory of a process that lives; this is none")
            }
        },
        Form::Github => for_ci::write_github(&mut out, &answer, &is_failure)?,
        Form::Junit => for_ci::write_junit(&mut out, &answer, &is_failure)?,
    }
    out.flush()?;
    let mut is_failed = answer.findings().any(|(subject, finding)| is_failure(subject, finding));
    for subject in &answer.subjects {
        for threshold in arguments.fail_on.iter().filter(|threshold| passes_peak(subject, **threshold)) {
            let most = threshold.peak_bytes().unwrap_or(0);
            let peak = subject.peak_bytes.unwrap_or(0);
            tell!("heapr: {}: the peak is {}, and {} are allowed", subject.name, bytes(peak), bytes(most));
            is_failed = true;
        }
    }
    Ok(if is_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether the most that was live is more than may be.
fn passes_peak(subject: &Subject, threshold: Threshold) -> bool {
    threshold.peak_bytes().zip(subject.peak_bytes).is_some_and(|(most, peak)| peak > most)
}
