//! Unwinding by DWARF's call frame information, from tables in memory.
//!
//! [`crate::arch`] has the processor's part: the registers' numbers, the rules in one word, and
//! code that is recognised without a table.

mod byte_reader;
mod call_frame;
mod expression;
mod frame_entry;
pub(crate) mod frame_index;
mod frame_instructions;
pub(crate) mod full_unwind;
mod recognised_code;
mod rule_of_row;
pub(crate) mod section_index;
#[cfg(test)]
mod tests;
mod unwind_row;

pub(crate) use byte_reader::SEGMENTS_MAX;
pub(crate) use call_frame::UnwindTables;
pub(crate) use frame_entry::Form;
pub(crate) use rule_of_row::rule_for;
