//! Findings of a trace in words, with source lines if the source exists.

use heapr_findings::{Finding, Judged};
use heapr_query::Suppressions;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::source_lines::{SourceFiles, SourceJson};
use crate::command_line::command;
use crate::error::Result;
use crate::request::{Answer, Context, read};

/// Largest number of events of a trace without a summary that is replayed for findings.
const REPLAYED_MAX: u64 = 3_000_000;

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
    let path = file.path.display().to_string();
    let trace = file.trace();
    let is_summed = trace.summary_totals().is_ok_and(|summary| summary.is_some());
    if !is_summed && trace.event_count() > REPLAYED_MAX {
        return crate::request::json(&json!({
            "schema": "heapr.view.findings/1",
            "command": command(&["explain", &path]),
            "verdict": "What stands out is told when the recording has ended.",
            "work_end_ns": null,
            "findings": [],
        }));
    }
    file.wait_for_names(context.cancel)?;
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
    let around = request.source_lines.min(50);
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
    crate::request::json(&json!({
        "schema": "heapr.view.findings/1",
        "command": command(&["explain", &path]),
        "verdict": found.verdict,
        "work_end_ns": found.work_end_ns,
        "findings": findings,
    }))
}
