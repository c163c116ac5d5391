//! Locations of files with names, and of the cache.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::debuginfod;
use crate::module_key::ModuleKey;

/// Use of debug files from debuginfod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugServers {
    /// Not used.
    Unused,
    /// Files downloaded before; no requests are made.
    Kept,
    /// Files downloaded before, and from the servers that the user has named.
    Asked,
}

/// Locations of files with names, and of the cache.
#[derive(Debug, Clone)]
pub struct SymbolOptions {
    /// Directories with modules and debug files, searched first.
    pub symbol_paths: Vec<PathBuf>,
    /// Root of a copy of another machine's files.
    pub sysroot: Option<PathBuf>,
    /// Use of debug files from debuginfod.
    pub debug_servers: DebugServers,
    /// Directory of the cache; `None`: no cache.
    pub cache_dir: Option<PathBuf>,
    /// Files of modules that are not at their paths.
    pub files: HashMap<ModuleKey, PathBuf>,
}

impl Default for SymbolOptions {
    /// The system's files, the user's cache, debuginfod if `DEBUGINFOD_URLS` is set.
    fn default() -> Self {
        Self {
            symbol_paths: Vec::new(),
            sysroot: None,
            debug_servers: if debuginfod::has_servers() { DebugServers::Asked } else { DebugServers::Unused },
            cache_dir: default_cache(),
            files: HashMap::new(),
        }
    }
}

/// `$XDG_CACHE_HOME/heapr/symbols` or `~/.cache/heapr/symbols`.
fn default_cache() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(base) => base,
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(base.join("heapr/symbols"))
}
