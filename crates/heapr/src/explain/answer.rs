//! The answer, as text and as JSON (schema `heapr.explain/1`).

use std::io::{self, Write};

use heapr_findings::Finding;
use serde_json::json;

use super::resident::Resident;

/// What is said of a target.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Of what: a process, a session, files.
    pub(super) subject: String,
    /// `None`: nothing was recorded that could be judged.
    pub(super) findings: Option<Vec<Finding>>,
    /// What all resident memory is; of processes alone.
    pub(super) resident: Option<Resident>,
}

impl Answer {
    /// For people.
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.subject)?;
        for (number, finding) in self.findings.iter().flatten().enumerate() {
            writeln!(out, "{}. {}", number + 1, finding.sentence)?;
            for evidence in &finding.evidence {
                writeln!(out, "   - {evidence}")?;
            }
            writeln!(out, "   {} confidence; more: {}", finding.confidence.name(), finding.command)?;
        }
        if let Some(resident) = &self.resident {
            resident.write_text(out)?;
        }
        Ok(())
    }

    /// For programs.
    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        let mut answer = json!({
            "schema": "heapr.explain/1",
            "subject": self.subject,
            "findings": self.findings.as_deref().unwrap_or_default(),
        });
        if let Some(resident) = &self.resident {
            answer["resident"] = resident.json()?;
        }
        Ok(answer)
    }
}
