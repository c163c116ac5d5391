//! A finding: a sentence with figures, evidence, a degree of certainty, and the command that shows more.

use heapr_query::Confidence;
use serde::{Serialize, Serializer};

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Live memory that increases and does not fall back.
    Growth,
    /// The most that was live at one moment, and who made it.
    Peak,
    /// Memory that is allocated and freed again soon, over and over.
    Churn,
    /// Memory that is old and never freed, and does not grow.
    Idle,
    /// Memory that the kernel holds for the process and that is in no live block.
    Resident,
    /// Memory that is lost to the allocator's own needs around small blocks.
    Overhead,
    /// The same contents several times.
    Duplicates,
    /// Frees of what was free already, or of what is unknown.
    Frees,
    /// What was not recorded, so that numbers are too small.
    Unseen,
}

impl Kind {
    /// In a word, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Peak => "peak",
            Self::Churn => "churn",
            Self::Idle => "idle",
            Self::Resident => "resident",
            Self::Overhead => "overhead",
            Self::Duplicates => "duplicates",
            Self::Frees => "frees",
            Self::Unseen => "unseen",
        }
    }
}

/// The program's own code that a finding names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OwnFrame {
    /// Path of the module.
    pub module: Option<String>,
    /// Demangled.
    pub symbol: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u32>,
}

/// A sentence about what stands out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// One or two sentences, with the own frame's name and the figures.
    pub sentence: String,
    /// How sure it is.
    #[serde(serialize_with = "confidence_name")]
    pub confidence: Confidence,
    /// Whose it is; `None`: nobody's of the program's code.
    pub own_frame: Option<OwnFrame>,
    /// How much memory it is about.
    pub bytes: u64,
    /// It is never freed, not even at the program's end.
    #[serde(rename = "left")]
    pub is_left: bool,
    /// What speaks for it, a sentence each.
    pub evidence: Vec<String>,
    /// The command that shows more.
    pub command: String,
}

fn confidence_name<S: Serializer>(confidence: &Confidence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(confidence.name())
}
