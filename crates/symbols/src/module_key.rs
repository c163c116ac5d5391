//! Which module is meant.

use std::path::PathBuf;

/// A module: its path as the process saw it, and its build-id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleKey {
    /// Path.
    pub path: PathBuf,
    /// GNU build-id; empty if it has none.
    pub build_id: Vec<u8>,
}
