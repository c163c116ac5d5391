//! All that a kept answer says of its moment: lines with their parts, pages by address, findings.

use serde::{Deserialize, Serialize};

use crate::class::class_label;
use crate::page_cells::PageCells;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct KeptDetail {
    /// They add up to what is resident.
    pub lines: Vec<KeptLine>,
    /// Pages by address, where they were kept.
    pub pages: Option<PageCells>,
    /// What stood out.
    pub findings: Vec<KeptFinding>,
}

/// A class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptLine {
    /// Its key.
    pub class: String,
    /// Its name.
    pub label: String,
    /// What is resident.
    pub bytes: u64,
    /// Half of the 95 % interval of that; 0: it was counted.
    pub bytes_plus_minus: u64,
    /// What other processes have mapped, too.
    pub shared_bytes: u64,
    /// What stands beside the number in texts.
    pub note: String,
    /// The largest first; some may be missing.
    pub parts: Vec<KeptPart>,
}

/// What belongs to a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptPart {
    /// Which of that kind.
    pub name: String,
    /// What is resident of it.
    pub bytes: u64,
}

/// A finding's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptFinding {
    /// What is so.
    pub sentence: String,
    /// How sure that is.
    pub confidence: String,
    /// What speaks for it.
    pub evidence: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    resident: Resident,
    findings: Vec<KeptFinding>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resident {
    lines: Vec<KeptLine>,
    pages: Option<PageCells>,
}

impl KeptDetail {
    /// Reads an answer; of one that has another form what is understood.
    pub(crate) fn parse(text: &str) -> Self {
        let Ok(answer) = serde_json::from_str::<Answer>(text) else { return Self::default() };
        let mut lines = answer.resident.lines;
        for line in lines.iter_mut().filter(|line| line.label.is_empty()) {
            line.label = class_label(&line.class);
        }
        Self { lines, pages: answer.resident.pages.filter(PageCells::is_whole), findings: answer.findings }
    }
}

impl PageCells {
    /// Whether its parts fit together.
    fn is_whole(&self) -> bool {
        let count = self.class.len();
        self.cell_bytes > 0
            && self.resident_bytes.len() == count
            && self.class.iter().flatten().all(|place| *place < self.classes.len())
            && self.runs.is_sorted_by_key(|run| run.cell)
            && self.runs.iter().all(|run| run.cell < count)
    }
}
