//! Attaching to a running process: stop it, load the agent, hook its allocator, let it go on; and all of it backwards.
mod maps;
mod memory;
mod report;

pub use maps::{Mapping, find as find_mapping, read as read_mappings};
pub use memory::{ProcessMemory, TargetMemory, Unreachable};
pub use report::{AttachReport, DetachReport};
