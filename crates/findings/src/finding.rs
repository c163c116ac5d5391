//! A finding: a sentence with figures, evidence, a degree of certainty, and the command that shows
//! more.

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

/// Which allocations of a recording a finding is about, in the words of the options of `heapr
/// report`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// `peak`, or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Only what was freed at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// Only stacks with this frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_frames: Vec<String>,
    /// The order of stacks; empty: by what is outstanding.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub sort: &'static str,
}

impl Chosen {
    /// The command that shows them.
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

/// A word of a shell's command line.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:+,=@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
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
    /// Half of the 95 % interval of that, where it is an estimate.
    #[serde(skip_serializing_if = "is_none")]
    pub bytes_plus_minus: u64,
    /// It is never freed, not even at the program's end.
    #[serde(rename = "left")]
    pub is_left: bool,
    /// What speaks for it, a sentence each.
    pub evidence: Vec<String>,
    /// The command that shows more.
    pub command: String,
    /// What that command chooses; of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// What the own frame held over time: moments in ns, and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(u64, u64)>,
    /// Half of the 95 % interval of each of its amounts, where they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve_plus_minus: Vec<u64>,
}

impl Finding {
    /// With what shows more.
    #[must_use]
    pub(crate) fn choosing(mut self, chosen: Chosen, file: &str) -> Self {
        self.command = chosen.command(file);
        self.chosen = Some(chosen);
        self
    }
}

impl Default for Finding {
    /// Of nothing, and not sure.
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
