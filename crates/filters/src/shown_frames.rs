//! Choice of the frames to show, where a program is written in a language with an interpreter.

use heapr_trace::LanguageFrames;
use serde::{Deserialize, Serialize};

/// Frames that are shown of stacks with frames of a language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownFrames {
    /// All, each where it runs.
    #[default]
    Mixed,
    /// Frames of the language, and native frames that are not its interpreter's.
    Own,
    /// Native ones.
    Native,
}

impl ShownFrames {
    /// The word of the choice in options, requests and answers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Own => "own",
            Self::Native => "native",
        }
    }
}

impl From<ShownFrames> for LanguageFrames {
    fn from(shown: ShownFrames) -> Self {
        match shown {
            ShownFrames::Mixed => Self::Mixed,
            ShownFrames::Own => Self::Own,
            ShownFrames::Native => Self::Native,
        }
    }
}

impl From<LanguageFrames> for ShownFrames {
    fn from(shown: LanguageFrames) -> Self {
        match shown {
            LanguageFrames::Mixed => Self::Mixed,
            LanguageFrames::Own => Self::Own,
            LanguageFrames::Native => Self::Native,
        }
    }
}
