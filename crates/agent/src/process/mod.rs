//! What the agent does with the process that it is in: its start, the programs that it turns into, what it forbids itself.

pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod exec_lists;
pub(crate) mod flagged;
pub(crate) mod locking;
pub(crate) mod program_file;
pub(crate) mod sandbox;
pub(crate) mod sanitizers;
pub(crate) mod start;
