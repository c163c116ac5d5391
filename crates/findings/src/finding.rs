//! Finding: a sentence with figures, evidence, a degree of certainty, and the command that shows
//! more.

use heapr_query::Confidence;
use serde::{Serialize, Serializer};

/// Subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Live memory that increases and does not fall back.
    Growth,
    /// Largest amount of live memory, and the code that allocated it.
    Peak,
    /// Memory that is allocated and freed again soon, over and over.
    Churn,
    /// Memory that is old and never freed, and does not grow.
    Idle,
    /// Memory that the kernel holds for the process and that is in no live block.
    Resident,
    /// Memory that the allocator needs for itself around small blocks.
    Overhead,
    /// Large blocks of which only slices are used.
    Slices,
    /// Equal contents that exist several times.
    Duplicates,
    /// Frees of freed blocks or of unknown addresses.
    Frees,
    /// Parts that were not recorded, so that numbers are too small.
    Unseen,
}

impl Kind {
    /// Name of the kind, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Peak => "peak",
            Self::Churn => "churn",
            Self::Idle => "idle",
            Self::Resident => "resident",
            Self::Overhead => "overhead",
            Self::Slices => "slices",
            Self::Duplicates => "duplicates",
            Self::Frees => "frees",
            Self::Unseen => "unseen",
        }
    }
}

/// Own frame that a finding names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OwnFrame {
    /// Path of the module.
    pub module: Option<String>,
    /// Demangled name of the function.
    pub symbol: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in `file`, from 1.
    pub line: Option<u32>,
}

/// Allocations of a recording that a finding is about, as options of `heapr report`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// Moment: `peak`, or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether only temporary allocations are chosen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// Names of frames that a stack must contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_frames: Vec<String>,
    /// Order of stacks; empty: by outstanding bytes.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub sort: &'static str,
}

impl Chosen {
    /// Command that shows the allocations.
    #[must_use]
    pub fn command(&self, file: &str) -> String {
        let mut words = vec!["heapr report".to_owned(), quoted(file)];
        words.extend(self.at.as_ref().map(|at| format!("--at {at}")));
        words.extend(self.temporary.then(|| "--temporary".to_owned()));
        if !self.sort.is_empty() {
            words.push(format!("--stacks {}", self.sort));
        }
        words.extend(self.require_frames.iter().map(|frame| format!("--require-frames {}", quoted(frame))));
        words.join(" ")
    }
}

/// Quotes a word for a shell's command line.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:+,=@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Sentence about a fact that stands out, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Subject of the finding.
    pub kind: Kind,
    /// One or two sentences, with the own frame's name and the figures.
    pub sentence: String,
    /// Degree of certainty.
    #[serde(serialize_with = "confidence_name")]
    pub confidence: Confidence,
    /// Own frame of the memory; `None`: unknown, or no code of the program.
    pub own_frame: Option<OwnFrame>,
    /// Amount of memory in bytes.
    pub bytes: u64,
    /// Half of the 95 % interval of `bytes`, if that is an estimate; else 0.
    #[serde(skip_serializing_if = "is_none")]
    pub bytes_plus_minus: u64,
    /// Whether at least half of the memory is never freed, not even at the program's end.
    #[serde(rename = "left")]
    pub is_left: bool,
    /// Sentences with evidence.
    pub evidence: Vec<String>,
    /// Command that shows more.
    pub command: String,
    /// Allocations that the command chooses; only in findings of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// Live bytes of the own frame over time: pairs of a time in nanoseconds and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(u64, u64)>,
    /// Half of the 95 % interval of each amount of `curve`, if they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve_plus_minus: Vec<u64>,
}

impl Finding {
    /// Sets the command that shows more.
    #[must_use]
    pub(crate) fn choosing(mut self, chosen: Chosen, file: &str) -> Self {
        self.command = chosen.command(file);
        self.chosen = Some(chosen);
        self
    }
}

impl Default for Finding {
    /// Finding without content, of low certainty.
    fn default() -> Self {
        Self {
            kind: Kind::Peak,
            sentence: String::new(),
            confidence: Confidence::Low,
            own_frame: None,
            bytes: 0,
            bytes_plus_minus: 0,
            is_left: false,
            evidence: Vec::new(),
            command: String::new(),
            chosen: None,
            curve: Vec::new(),
            curve_plus_minus: Vec::new(),
        }
    }
}

fn is_none(plus_minus: &u64) -> bool {
    *plus_minus == 0
}

fn confidence_name<S: Serializer>(confidence: &Confidence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(confidence.name())
}
