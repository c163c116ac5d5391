//! Symbolization of programs built by the machine's own compilers, against `llvm-symbolizer` and
//! the programs' sources.
//!
//! Requirements: `gcc`, `g++`, `rustc`, `objcopy`, `strip`, `llvm-dwp`, `llvm-symbolizer`,
//! `debuginfod-find`, `xz`. A missing one fails the test that needs it.
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
