//! Findings of files and of sessions that run.

use std::path::{Path, PathBuf};

use heapr_filters::read_suppressions;
use heapr_findings::{Found, Judged};
use heapr_query::Suppressions;
use heapr_session::{Answer as SessionAnswer, Request};
use heapr_trace::Trace;

use super::answer::{Answer, Subject};
use super::arguments::ExplainArguments;
use super::elapsed_line::ElapsedLine;
use super::resident;
use super::target::client;
use crate::own_arguments::OwnArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::verbs::HeapKind;
use crate::trace_file::{open, other_builds};

/// Explains what a session has written so far.
pub(super) fn of_session(name: &str, arguments: &ExplainArguments) -> anyhow::Result<Answer> {
    match client(name)?.ask(Request::Status)? {
        SessionAnswer::Status(status) => of_files(&[PathBuf::from(status.output)], arguments),
        _ => anyhow::bail!("session {name} gives an answer that makes no sense"),
    }
}

/// Explains files: traces one by one, V8 snapshots together.
pub(super) fn of_files(files: &[PathBuf], arguments: &ExplainArguments) -> anyhow::Result<Answer> {
    let mut answer = Answer::default();
    match (files, HeapKind::of(files)?) {
        ([file], HeapKind::Native) => {
            let trace = open(file)?;
            answer.moments = resident::of_recording(&trace)?;
            answer.subjects.push(asked_of(file, &trace, arguments)?);
        }
        (files, HeapKind::Native) => {
            for file in files {
                answer.subjects.push(asked_of(file, &open(file)?, arguments)?);
            }
        }
        (files, HeapKind::V8) => {
            if let [file] = files {
                answer.moments = resident::of_answers(file)?;
            }
            answer.subjects.push(match &answer.moments {
                Some(_) => Subject { name: files[0].display().to_string(), ..Subject::default() },
                None => super::v8_snapshots::explain(files)?,
            });
        }
    }
    if let (Some(moments), Some(old)) = (&mut answer.moments, arguments.resident.old()) {
        moments.compare_with(old)?;
    }
    Ok(answer)
}

fn asked_of(file: &Path, trace: &Trace, arguments: &ExplainArguments) -> anyhow::Result<Subject> {
    of_trace(file, trace, &arguments.names, &arguments.own, &arguments.suppress)
}

/// Explains one trace.
pub(super) fn of_trace(
    file: &Path,
    trace: &Trace,
    names: &NameArguments,
    own: &OwnArguments,
    suppress: &[PathBuf],
) -> anyhow::Result<Subject> {
    let name = file.display().to_string();
    let line = ElapsedLine::new(format!("explaining {name}"));
    let mut names = TraceNames::new(trace, names);
    let own = own.code(trace)?;
    let left_out = suppress
        .iter()
        .try_fold(Suppressions::known(), |all, path| anyhow::Ok(all.and(&read_suppressions(path)?)))?;
    let judged =
        Judged { own: &own, packages: &heapr_symbols::Packages::default(), left_out: &left_out, file: &name };
    let Found { findings, verdict, peak_bytes, peak_bytes_plus_minus, is_unread, .. } =
        heapr_findings::of_recording(trace, judged, &mut names)?;
    drop(line);
    let warnings = heapr_export::warnings(trace, &[], false);
    for warning in warnings.into_iter().chain(other_builds(trace)) {
        warn!("{name}: {warning}");
    }
    Ok(Subject { name, findings, verdict, peak_bytes, peak_bytes_plus_minus, is_unread })
}
