//! Which frames of stacks are shown, where a program is written in a language with an interpreter.

use std::path::Path;

use heapr_trace::{LanguageFrames, Trace};

use crate::trace_file::open;

/// See the module.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ShownFrames {
    /// Of stacks with frames of a language (Python, JavaScript, …): all, those without the
    /// interpreter's, or native ones
    #[arg(long, value_enum, default_value_t, value_name = "mixed|own|native", help_heading = "Filters")]
    lang_frames: Shown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Shown {
    #[default]
    Mixed,
    Own,
    Native,
}

impl ShownFrames {
    pub(crate) fn language_frames(self) -> LanguageFrames {
        match self.lang_frames {
            Shown::Mixed => LanguageFrames::Mixed,
            Shown::Own => LanguageFrames::Own,
            Shown::Native => LanguageFrames::Native,
        }
    }

    /// Opens a trace to be looked at so.
    pub(crate) fn open(self, file: &Path) -> anyhow::Result<Trace> {
        Ok(open(file)?.with_language_frames(self.language_frames()))
    }
}
