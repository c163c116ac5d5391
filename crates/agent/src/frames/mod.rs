//! A thread's cached frames and the tables of its recent stacks: see [`crate::stack`].

pub(crate) mod bounds;
pub(crate) mod cached_stack;
pub(crate) mod control_block;
pub(crate) mod frame;
pub(crate) mod known_rules;
pub(crate) mod path_node;
pub(crate) mod repairs;
pub(crate) mod shortcut;
pub(crate) mod stack_range;
pub(crate) mod suffix;
pub(crate) mod suffix_table;
