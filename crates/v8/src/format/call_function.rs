//! Function that allocated, as named by timelines and sampling profiles.

use serde::{Deserialize, Serialize};

/// Function. Two functions of one name at different locations are distinct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct CallFunction {
    /// Name; `(anonymous function)` for a function without one.
    pub name: String,
    /// Path or URL of the script; empty for functions of the engine.
    pub script: String,
    /// Line from 1; 0 if unknown.
    pub line: u32,
    /// Column from 1; 0 if unknown.
    pub column: u32,
}

impl std::fmt::Display for CallFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.script.as_str(), self.line) {
            ("", _) => f.write_str(&self.name),
            (script, 0) => write!(f, "{} ({script})", self.name),
            (script, line) => write!(f, "{} ({script}:{line}:{})", self.name, self.column),
        }
    }
}

/// Returns the name that DevTools shows, also for a function without a name.
pub(crate) fn named(name: String) -> String {
    if name.is_empty() { "(anonymous function)".to_owned() } else { name }
}
