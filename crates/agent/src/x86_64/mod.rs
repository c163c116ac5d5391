//! Code that depends on the processor: unwinding, the entries' assembly, the thread pointer. It
//! imports no other module of the agent.

pub(crate) mod all_registers_entry;
mod byte_reader;
mod call_frame;
pub(crate) mod entries;
mod equal_pairs;
mod equal_words;
mod expression;
mod frame_entry;
pub(crate) mod frame_index;
mod frame_instructions;
pub(crate) mod full_unwind;
mod go_stacks;
pub(crate) mod leaving;
pub(crate) mod light_entry;
#[cfg(any(feature = "cdylib", test))]
mod memory_functions;
mod ordered_time;
mod prefetch;
mod rule;
pub(crate) mod sampling_entries;
pub(crate) mod section_index;
mod signal_return;
pub(crate) mod stack_switch;
#[cfg(test)]
mod tests;
pub(crate) mod thread_pointer;
pub(crate) mod thread_variable;
mod unwind_row;
pub(crate) mod usdt;
pub(crate) mod weak_symbols;
pub(crate) mod wide_registers;

pub use byte_reader::SEGMENTS_MAX;
pub use call_frame::UnwindTables;
pub(crate) use equal_pairs::{AllEqual, Pair};
pub(crate) use equal_words::equal_words;
pub(crate) use frame_entry::Form;
pub(crate) use ordered_time::{Late, wait_for_loads};
pub(crate) use prefetch::prefetch;
pub use rule::{Rule, Step, rule_for};
