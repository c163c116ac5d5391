//! Facts of a process or of the machine, read from `/proc`.

pub(crate) mod idle_looks;
pub(crate) mod look_times;
pub(crate) mod memory_look;
pub(crate) mod own_ranges;
pub(crate) mod process_facts;
pub(crate) mod process_life;
pub(crate) mod process_tree;
pub(crate) mod system_facts;
pub(crate) mod target_view;
