//! Options and files by which users say which frames are user code and which are a library's.

use std::path::PathBuf;

use anyhow::Context as _;
use heapr_query::{FramePattern, OwnCode};
use heapr_trace::Trace;

/// Options that say whose code frames are.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Own code")]
pub(crate) struct OwnArguments {
    /// Frames that are the program's own, whatever the lists say: module!, module!symbol, symbol;
    /// may be given several times
    #[arg(long, value_name = "FRAME")]
    own: Vec<String>,
    /// List of frames that are a library's, added to the built-in one and to
    /// ~/.config/heapr/library-frames; may be given several times
    #[arg(long, value_name = "FILE")]
    library_frames: Vec<PathBuf>,
}

impl OwnArguments {
    /// Returns the rules of user code for the programs of a trace.
    ///
    /// # Errors
    /// A list cannot be read, or a pattern is empty.
    pub(crate) fn code(&self, trace: &Trace) -> anyhow::Result<OwnCode> {
        let mut code = OwnCode::of_trace(trace);
        let users = users_list().filter(|path| path.exists());
        for path in users.iter().chain(&self.library_frames) {
            let text = heapr_files::read_text(path, heapr_files::LIST_BYTES_MAX)
                .with_context(|| format!("cannot read the list of library frames {}", path.display()))?;
            code.add_library_lines(&path.display().to_string(), &text)?;
        }
        for text in &self.own {
            code.add_own(FramePattern::parse(text)?);
        }
        Ok(code)
    }
}

/// Path of the user's own list: `~/.config/heapr/library-frames`.
fn users_list() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(config.join("heapr").join("library-frames"))
}
