//! Options for source maps of a snapshot's scripts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use heapr_v8::SourceMaps;

/// Options of all commands that name places in scripts.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SourceMapArguments {
    /// Look for source maps (app.js.map) in this folder, too; may be given several times [default:
    /// beside the scripts, and in them]
    #[arg(long, value_name = "DIR", global = true)]
    source_map_dir: Vec<PathBuf>,
    /// Name places as they are in the scripts that ran
    #[arg(long, global = true, conflicts_with = "source_map_dir")]
    no_source_maps: bool,
}

/// Options of the command line, for all snapshots that are opened.
static ASKED: OnceLock<SourceMapArguments> = OnceLock::new();

impl SourceMapArguments {
    /// Applies the options to all snapshots opened later.
    pub(crate) fn apply(self) {
        ASKED.get_or_init(|| self);
    }
}

/// Returns the maps for a snapshot; `None` if they are turned off.
pub(crate) fn maps_for(snapshot: &Path) -> Option<Arc<SourceMaps>> {
    let asked = ASKED.get_or_init(SourceMapArguments::default);
    (!asked.no_source_maps).then(|| Arc::new(SourceMaps::of_file(&asked.source_map_dir, snapshot)))
}

/// Most unused maps that are named: a new build changes all scripts at once.
const TOLD_MAX: usize = 3;

/// Prints warnings on maps that could not be used.
pub(crate) fn tell_unused(maps: Option<&Arc<SourceMaps>>) {
    let unused = maps.map(|maps| maps.take_unused()).unwrap_or_default();
    for one in unused.iter().take(TOLD_MAX) {
        warn!("{one}");
    }
    if let Some(more @ 1..) = unused.len().checked_sub(TOLD_MAX) {
        warn!("and {more} more source maps are not used");
    }
}
