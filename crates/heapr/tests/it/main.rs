//! Tests of heapr as its users run it: the built binary on real programs.
//!
//! `victims/` holds small programs whose header states what heapr must find in them
//! (`docs/testing.md`); the oracles compare heapr with Valgrind and gdb. No test can hang: every
//! process has a time-out.
#![forbid(unsafe_code)]

mod compared;
mod ended_threads;
mod explain_figures;
mod explain_files;
mod explain_limits;
mod explain_resident;
mod explain_running;
mod explained;
mod free_stacks;
mod gdb_oracle;
mod go_heap;
mod header;
mod info;
mod inner_allocators;
mod installed;
mod java;
mod javascript;
mod limits;
mod lives;
mod mappings;
mod names;
mod native_snapshots;
mod other_tools_growth;
mod own_files;
mod own_heaps;
mod own_operators;
mod passthrough;
mod python;
mod reading;
mod recording;
mod sampling;
mod sanitizers;
mod scripts;
mod signals;
mod static_programs;
mod symbolize;
mod telling_programs;
mod valgrind_oracle;
mod victim_build;
mod victims;
mod waiting_programs;
