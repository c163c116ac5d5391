//! The answer, as text and as JSON (schema `heapr.explain/1`).

use std::io::{self, Write};

use heapr_findings::Finding;
use serde_json::json;

use super::resident::{Moments, Resident};
use crate::finding_text;
use crate::style::Style;

/// What is said of a target.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Of each file; of a process the findings may be none.
    pub(super) subjects: Vec<Subject>,
    /// What all resident memory is; of processes alone.
    pub(super) resident: Option<Resident>,
    /// What was resident at moments; of files alone.
    pub(super) moments: Option<Moments>,
}

/// What is found of a process, a session, a trace or a series of snapshots.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// As the user named it.
    pub(super) name: String,
    pub(super) findings: Vec<Finding>,
    /// Stands above the findings, or in their place.
    pub(super) verdict: String,
    /// The most that was live; of a recording.
    pub(super) peak_bytes: Option<u64>,
    /// Half of the 95 % interval of that, where it is an estimate.
    pub(super) peak_bytes_plus_minus: u64,
    /// Nothing of it could be read.
    pub(super) is_unread: bool,
}

impl Answer {
    /// All findings, each with what it is of.
    pub(super) fn findings(&self) -> impl Iterator<Item = (&Subject, &Finding)> {
        self.subjects
            .iter()
            .flat_map(|subject| subject.findings.iter().map(move |finding| (subject, finding)))
    }

    /// For people.
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

    /// For programs.
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
