//! Runs `heapr explain`: resolves the target, and writes the answer.

use heapr_files::Existing;
use heapr_table::json_text::json_lines;
use std::io::Write as _;
use std::process::ExitCode;

use heapr_findings::{Finding, Kind};

use super::answer::{Answer, Subject};
use super::arguments::{ExplainArguments, Form};
use super::judged::{is_failure, passed_peaks};
use super::resident::{self, Resident};
use super::target::{Target, client};
use super::{findings, for_ci, html, where_it_is};
use crate::output::{growing_output, output};
use crate::style::Style;
use crate::trace_file::named_or_newest;

/// Runs the command.
pub(crate) fn run(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    arguments.source_maps.clone().apply();
    let target = match arguments.target.as_slice() {
        [] => Target::Files(vec![named_or_newest(None, "explain")?]),
        words => Target::of(words)?,
    };
    let output_file = arguments.output.as_deref();
    if arguments.where_it_is {
        let is_text = arguments.format == Form::Text;
        let mut out = output(output_file, Existing::replaced_if(arguments.force), is_text)?;
        where_it_is::write(&target, &arguments, &mut out)?;
        out.end()?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Target::Process(pid) = target {
        let out = || growing_output(output_file, Existing::replaced_if(arguments.force));
        if resident::series(pid, &arguments.resident, out)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let _busy = crate::busy_line::begin(format!("explaining {}", target.name()));
    let answer = match &target {
        Target::Process(pid) => {
            let resident = resident::of_process(*pid, &arguments.resident)?;
            let (findings, verdict) = (resident.findings(), resident.verdict());
            let subject = Subject { name: target.name(), findings, verdict, ..Subject::default() };
            Answer { subjects: vec![subject], resident: Some(resident), ..Answer::default() }
        }
        Target::Session(session) => {
            let mut answer = findings::of_session(session, &arguments)?;
            answer.resident = resident::of_session(&client(session)?, &arguments.names, &arguments.own)?;
            if answer.resident.is_some() {
                // A reading of the process says more than the moments of the recording.
                answer.moments = None;
            }
            let more: Vec<Finding> = answer.resident.iter().flat_map(Resident::findings).collect();
            if let Some(subject) = answer.subjects.first_mut() {
                // Findings from the pages themselves replace those of the recording on resident
                // memory.
                if more.iter().any(|finding| finding.kind == Kind::Resident) {
                    subject.findings.retain(|finding| finding.kind != Kind::Resident);
                }
                subject.findings.extend(more);
            }
            answer
        }
        Target::Files(files) => findings::of_files(files, &arguments)?,
    };
    let is_text = arguments.format == Form::Text;
    let mut out = output(arguments.output.as_deref(), Existing::replaced_if(arguments.force), is_text)?;
    let is_failure = |subject: &Subject, finding: &Finding| is_failure(subject, finding, &arguments.fail_on);
    match arguments.format {
        Form::Text => {
            let style = if arguments.output.is_none() { Style::of_stdout() } else { Style::default() };
            answer.write_text(&mut out, style)?;
        }
        Form::Json => writeln!(out, "{}", json_lines(&answer.json()?))?,
        Form::Html => html::write(&answer, &arguments, &mut out)?,
        Form::Github => for_ci::write_github(&mut out, &answer, &is_failure)?,
        Form::Junit => for_ci::write_junit(&mut out, &answer, &is_failure)?,
    }
    out.end()?;
    if let Some(subject) =
        answer.subjects.iter().find(|subject| subject.is_unread && !arguments.fail_on.is_empty())
    {
        anyhow::bail!("{}: nothing could be read, so that --fail-on judges nothing", subject.name);
    }
    let mut is_failed = answer.findings().any(|(subject, finding)| is_failure(subject, finding));
    for text in answer.subjects.iter().flat_map(|subject| passed_peaks(subject, &arguments.fail_on)) {
        tell!("heapr: {text}");
        is_failed = true;
    }
    Ok(if is_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
