//! Identity of a module.

use std::path::PathBuf;

/// A module: its path as the process saw it, and its build-id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleKey {
    /// Path as the process saw it.
    pub path: PathBuf,
    /// GNU build-id; may be empty.
    pub build_id: Vec<u8>,
}
