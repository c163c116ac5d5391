//! The unwinder against gimli, against the compiler's own unwinder, and against tables that make no
//! sense.

mod against_gimli;
mod expressions;
mod file_in_memory;
mod hostile_tables;
mod invented_machine;
mod live_stacks;
mod made_tables;
mod uncommon_tables;
