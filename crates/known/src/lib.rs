//! Facts about other people's programs, each in one table: runtimes by their files' names,
//! allocator libraries, processors. Also structures of the C library, of CPython and of Go.
//!
//! Agent, injector, recorder and analysis read these tables. A new runtime or allocator library is
//! a row here and nowhere else. Allocators that are linked into programs have a table that users
//! can extend: `crates/allocators/src/allocators.txt`.
#![no_std]
#![forbid(unsafe_code)]

pub mod allocator_libraries;
mod arch;
pub mod cpython;
pub mod glibc;
pub mod go;
pub mod machine;
mod machine_facts;
pub mod musl;
pub mod runtimes;
mod thread_descriptor;
