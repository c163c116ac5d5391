//! Lives of processes: attached, started, replaced by exec, ended.

pub(crate) mod attach_hold;
pub(crate) mod earlier_blocks;
pub(crate) mod go_children;
pub(crate) mod housekeeping;
pub(crate) mod process_ends;
pub(crate) mod unseen_exec;
