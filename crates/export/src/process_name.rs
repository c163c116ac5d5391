//! Processes as reports name them.

use heapr_trace::Process;

/// Process as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessName {
    /// Process id.
    pub pid: u32,
    /// File name of the executable.
    pub name: String,
}

impl From<&Process> for ProcessName {
    fn from(process: &Process) -> Self {
        Self { pid: process.pid, name: process.name().to_owned() }
    }
}

impl std::fmt::Display for ProcessName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}
