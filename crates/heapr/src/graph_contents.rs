//! Option that says which contents of blocks are recorded with their references.

use heapr_session::GraphContents;

/// Contents of blocks that a graph includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Contents {
    /// Text at the start of a block or behind a header, up to 64 bytes of it
    Strings,
}

/// Converts the option's value into the session's type.
pub(crate) fn contents(asked: Option<Contents>) -> GraphContents {
    asked.map_or(GraphContents::None, |Contents::Strings| GraphContents::Strings)
}
