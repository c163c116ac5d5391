//! Symbolization of programs that the machine's own compilers build, against `llvm-symbolizer` and
//! the programs' sources.
//!
//! Needed: `gcc`, `g++`, `rustc`, `objcopy`, `strip`, `llvm-dwp`, `llvm-symbolizer`,
//! `debuginfod-find`, `xz`. A missing one fails the test that needs it: nothing is passed over.
#![forbid(unsafe_code)]

mod against_llvm;
mod built_program;
mod bundles;
mod caching;
mod debug_servers;
mod hostile_files;
mod separate_files;
mod symbol_tables;
mod whole_names;
