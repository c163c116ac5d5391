//! Tests the unwinder against gimli, against the compiler's own unwinder, and with invalid tables.

mod against_gimli;
mod expressions;
mod file_in_memory;
mod hostile_tables;
mod invented_machine;
mod live_stacks;
mod made_tables;
mod uncommon_tables;
