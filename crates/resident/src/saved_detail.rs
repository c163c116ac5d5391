//! Details of a saved answer of `heapr explain`: lines with their parts, pages by address,
//! findings.

use serde::{Deserialize, Serialize};

use crate::class::class_label;
use crate::page_cells::PageCells;

/// Details of one moment of a saved answer.
#[derive(Debug, Clone, Default)]
pub struct SavedDetail {
    /// Lines, which add up to the resident set.
    pub lines: Vec<SavedLine>,
    /// Pages by address, if the answer has them.
    pub pages: Option<PageCells>,
    /// Findings.
    pub findings: Vec<SavedFinding>,
}

/// Line of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedLine {
    /// Key of the class.
    pub class: String,
    /// Name of the class.
    pub label: String,
    /// Resident bytes.
    pub bytes: u64,
    /// Half of the 95 % interval of `bytes`; 0: counted exactly.
    pub bytes_plus_minus: u64,
    /// Bytes that other processes have mapped, too.
    pub shared_bytes: u64,
    /// Text beside the number.
    pub note: String,
    /// Parts, largest first; small ones may be missing.
    pub parts: Vec<SavedPart>,
}

/// Part of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedPart {
    /// Name of the part.
    pub name: String,
    /// Resident bytes.
    pub bytes: u64,
}

/// Texts of a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedFinding {
    /// Statement.
    pub sentence: String,
    /// Confidence: low, medium or high.
    pub confidence: String,
    /// Evidence.
    pub evidence: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    resident: Resident,
    findings: Vec<SavedFinding>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resident {
    lines: Vec<SavedLine>,
    pages: Option<PageCells>,
}

impl SavedDetail {
    /// Reads an answer; parts of another form are left at their defaults.
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
    /// Whether the lengths and indices fit together.
    fn is_whole(&self) -> bool {
        let count = self.class.len();
        self.cell_bytes > 0
            && self.resident_bytes.len() == count
            && self.class.iter().flatten().all(|place| *place < self.classes.len())
            && self.runs.is_sorted_by_key(|run| run.cell)
            && self.runs.iter().all(|run| run.cell < count)
    }
}
