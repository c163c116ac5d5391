//! Answer of `heapr explain`, as text and as JSON (schema `heapr.explain/1`).

use std::io::{self, Write};

use heapr_findings::Finding;
use serde_json::json;

use super::resident::{Moments, Resident};
use crate::finding_text;
use crate::style::Style;

/// Answer for a target.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// One subject for each file; a process may have no findings.
    pub(super) subjects: Vec<Subject>,
    /// Breakdown of resident memory, for processes only.
    pub(super) resident: Option<Resident>,
    /// Resident memory at several moments, for files only.
    pub(super) moments: Option<Moments>,
}

/// Findings on a process, a session, a trace or a series of snapshots.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// Name as the user gave it.
    pub(super) name: String,
    pub(super) findings: Vec<Finding>,
    /// Sentence above the findings, or in their place.
    pub(super) verdict: String,
    /// Most live bytes of a recording.
    pub(super) peak_bytes: Option<u64>,
    /// Half of the 95 % interval of the peak if it is an estimate.
    pub(super) peak_bytes_plus_minus: u64,
    /// Whether the subject could not be read at all.
    pub(super) is_unread: bool,
}

impl Answer {
    /// Returns all findings with their subjects.
    pub(super) fn findings(&self) -> impl Iterator<Item = (&Subject, &Finding)> {
        self.subjects
            .iter()
            .flat_map(|subject| subject.findings.iter().map(move |finding| (subject, finding)))
    }

    /// Writes the answer as text.
    pub(super) fn write_text(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        for (number, subject) in self.subjects.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            writeln!(out, "{}", style.faint(&subject.name))?;
            finding_text::write(out, &subject.verdict, &subject.findings, style, true)?;
        }
        if let Some(resident) = &self.resident {
            resident.write_text(out)?;
        }
        if let Some(moments) = &self.moments {
            moments.write_text(out)?;
        }
        Ok(())
    }

    /// Returns the answer as JSON.
    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name.as_str()).collect();
        let verdicts: Vec<&str> = self.subjects.iter().map(|subject| subject.verdict.as_str()).collect();
        let findings = self
            .findings()
            .map(|(subject, finding)| {
                let mut value = serde_json::to_value(finding)?;
                value["subject"] = subject.name.as_str().into();
                Ok(value)
            })
            .collect::<serde_json::Result<Vec<_>>>()?;
        let mut answer = json!({
            "schema": "heapr.explain/1",
            "subjects": names,
            "verdict": verdicts.join(" "),
            "findings": findings,
        });
        if let Some(resident) = &self.resident {
            answer["resident"] = resident.json()?;
        }
        if let Some(moments) = &self.moments {
            (answer["resident"], answer["moments"]) = moments.json();
        }
        Ok(answer)
    }
}
