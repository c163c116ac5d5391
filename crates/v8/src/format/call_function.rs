//! A function that allocated, as timelines and sampling profiles name it.

/// A function. Two of the same name at different places are two.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CallFunction {
    /// `(anonymous function)` where it has none.
    pub name: String,
    /// Path or URL of its script; empty for functions of the engine.
    pub script: String,
    /// From 1; 0 if there is none.
    pub line: u32,
    /// From 1; 0 if there is none.
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

/// As DevTools calls functions without a name.
pub(crate) fn named(name: String) -> String {
    if name.is_empty() { "(anonymous function)".to_owned() } else { name }
}
