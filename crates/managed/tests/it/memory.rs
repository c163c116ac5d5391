//! Memory of a program that waits, and stands still therefore.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap, NativeBlock};
use heapr_native::Memory;

struct Process(File);

impl Memory for Process {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.0.read_at(into, address_avma).unwrap_or(0)
    }
}

/// Reads the heap of a process that runs CPython.
pub(crate) fn heap_of(pid: u32) -> heapr_managed::Result<ManagedHeap> {
    heap_with_blocks(pid, &[])
}

/// Reads the heap of a process that runs Ruby.
pub(crate) fn ruby_heap_of(pid: u32) -> heapr_managed::Result<ManagedHeap> {
    read(Interpreter::Ruby, pid, &[])
}

/// Reads the heap of a process together with these blocks of the C library, which are by address.
pub(crate) fn heap_with_blocks(pid: u32, blocks: &[NativeBlock]) -> heapr_managed::Result<ManagedHeap> {
    read(Interpreter::Python, pid, blocks)
}

/// Reads the heap of an interpreter.
pub(crate) fn read(
    interpreter: Interpreter,
    pid: u32,
    blocks: &[NativeBlock],
) -> heapr_managed::Result<ManagedHeap> {
    let memory = Process(File::open(format!("/proc/{pid}/mem")).unwrap());
    let mappings = heapr_proc::mappings::read(pid).unwrap();
    let goes_on = &|| true;
    interpreter.read(&HeapRequest {
        memory: &memory,
        mappings: &mappings,
        blocks,
        contents: Contents::Names,
        goes_on,
    })
}

/// The interpreters under test.
pub(crate) fn interpreters() -> Vec<PathBuf> {
    match std::env::var_os("HEAPR_PYTHONS") {
        Some(named) => std::env::split_paths(&named).collect(),
        None => vec![PathBuf::from("/usr/bin/python3")].into_iter().filter(|it| it.exists()).collect(),
    }
}
