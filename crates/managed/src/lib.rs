//! Heaps of managed languages as graphs: objects, their references with names, and what holds them
//! from outside. They are read from the memory of a stopped process, of a copy, or of a core file.
//!
//! Nothing runs in the process, and every length, list and chain is bounded, because the memory may
//! be caught in the middle of a change.
#![forbid(unsafe_code)]

mod allocation_stacks;
mod block_table;
mod dotnet;
mod dump;
mod dump_error;
mod dumped_heap;
mod error;
mod heap;
mod hotspot;
mod hprof;
mod id_map;
mod interpreter;
mod object_map;
mod own_slots;
mod pages;
mod python;
mod reach;
mod request;
mod ruby;
mod ruby_dump;
mod snapshot_file;
mod strings;
mod symbols;

pub use allocation_stacks::CallText;
pub use dotnet::{
    DotnetError, DotnetHeap, DotnetProcess, GCDUMP_BEGINNING_BYTES, is_gcdump, is_nettrace, read_gcdump,
    read_nettrace,
};
pub use dump_error::DumpError;
pub use dumped_heap::DumpedHeap;
pub use error::{Error, Result};
pub use heap::{
    Edge, EdgeKind, EdgeName, Label, ManagedHeap, NativeBlock, Node, NodeKind, Place, Root, RootKind,
    RuntimePage,
};
pub use hotspot::{AttachError, Attached, HeapDump, check_hotspot};
pub use hprof::{HPROF_BEGINNING_BYTES, OpenDump, is_hprof, read_hprof};
pub use interpreter::Interpreter;
pub use request::{Contents, HeapRequest};
pub use ruby_dump::{RUBY_BEGINNING_BYTES, is_ruby_dump, read_ruby_dump};
pub use snapshot_file::write_snapshot;
pub use strings::Strings;
