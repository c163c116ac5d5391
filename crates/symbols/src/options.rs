//! Where names are looked for, and where answers are kept.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::debuginfod;
use crate::module_key::ModuleKey;

/// Whether debug files of debuginfod are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugServers {
    /// No.
    Unused,
    /// What was fetched before: no server is asked.
    Kept,
    /// Those that the user has named are asked.
    Asked,
}

/// Where to look.
#[derive(Debug, Clone)]
pub struct SymbolOptions {
    /// Directories with modules and debug files, looked at first.
    pub symbol_paths: Vec<PathBuf>,
    /// Root of another machine's files.
    pub sysroot: Option<PathBuf>,
    /// Debug files of debuginfod.
    pub debug_servers: DebugServers,
    /// Directory of the cache; `None`: no cache.
    pub cache_dir: Option<PathBuf>,
    /// Files of modules to which their paths do not lead.
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
