//! Findings of a trace in words, with source lines if the source exists.

use heapr_findings::{Finding, Judged};
use heapr_query::Suppressions;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::source_lines::{SourceFiles, SourceJson};
use crate::command_line::command;
use crate::error::Result;
use crate::request::{Answer, Context, read};
use crate::trace_file::{Told, TraceFile};

/// Largest number of events of a trace without a summary that is replayed at each request.
const REPLAYED_MAX: u64 = 3_000_000;
/// Growth of a longer trace, in percent of its events, at which its findings are looked for again.
/// So all of its replays take twice the time of the last one.
const REPLAYED_PERCENT: u64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingsRequest {
    file: usize,
    /// Number of source lines before and behind the own frame's line; 0: no source.
    #[serde(default = "three")]
    source_lines: u32,
}

fn three() -> u32 {
    3
}

#[derive(Serialize)]
struct SourcedFinding {
    #[serde(flatten)]
    finding: Finding,
    source: Option<SourceJson>,
}

pub(super) fn findings(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: FindingsRequest = read(body)?;
    let file = context.files.trace(request.file)?;
    let trace = file.trace();
    let is_summed = trace.summary_totals().is_ok_and(|summary| summary.is_some());
    let event_count = trace.event_count();
    let is_long = !is_summed && event_count > REPLAYED_MAX;
    if is_long && file.growth.is_none() {
        return crate::request::json(&json!({
            "schema": "heapr.view.findings/1",
            "command": command(&["explain", &file.path.display().to_string()]),
            "verdict": "What stands out is told when the recording has ended, or by heapr explain.",
            "work_end_ns": null,
            "until_ns": null,
            "findings": [],
        }));
    }
    let growth = file.growth.as_ref().filter(|_| is_long);
    let is_due = |told: &Told| {
        told.source_lines != request.source_lines
            || told.event_count.saturating_mul(REPLAYED_PERCENT) <= event_count.saturating_mul(100)
    };
    if let Some(told) = growth.and_then(|growth| growth.told()).filter(|told| !is_due(told)) {
        return crate::request::json(&told.answer);
    }
    file.wait_for_names(context.cancel)?;
    let answer = found(&file, request.source_lines, is_summed)?;
    if let Some(growth) = &file.growth {
        let source_lines = request.source_lines;
        growth.tell(Told { event_count, source_lines, answer: answer.clone() });
    }
    crate::request::json(&answer)
}

/// Looks for the findings, with the source around their lines.
fn found(file: &TraceFile, source_lines: u32, is_summed: bool) -> Result<Value> {
    let trace = file.trace();
    let path = file.path.display().to_string();
    let found = heapr_findings::of_named_recording(
        trace,
        Judged {
            own: &file.own,
            packages: &heapr_symbols::Packages::default(),
            left_out: &Suppressions::known(),
            file: &path,
        },
        file.explorer.tree(),
    )?;
    let around = source_lines.min(50);
    let mut sources = SourceFiles::new(file.modified_unix_ns);
    let findings: Vec<SourcedFinding> = found
        .findings
        .into_iter()
        .map(|finding| {
            let place = finding.own_frame.as_ref().and_then(|own| own.file.as_deref().zip(own.line));
            let source =
                place.filter(|_| around != 0).and_then(|(path, line)| sources.lines(path, line, around));
            SourcedFinding { finding, source }
        })
        .collect();
    Ok(json!({
        "schema": "heapr.view.findings/1",
        "command": command(&["explain", &path]),
        "verdict": found.verdict,
        "work_end_ns": found.work_end_ns,
        "until_ns": (!is_summed).then(|| trace.duration_ns()),
        "findings": findings,
    }))
}
