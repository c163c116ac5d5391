//! The unwinder against gimli, against the compiler's own unwinder, and against tables that make no sense.

mod against_gimli;
mod file_in_memory;
mod invented_machine;
mod live_stacks;
