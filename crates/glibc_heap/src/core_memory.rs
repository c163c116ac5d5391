//! The heap of a process that has ended, from its core file.

use std::io;

use heapr_proc::{CoreFile, Mapping};

use super::error::Error;
use super::heap_memory::HeapMemory;

impl HeapMemory for CoreFile {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.read_memory(address_avma, into)
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(CoreFile::mappings(self).to_vec())
    }

    fn open(&self, path: &str) -> io::Result<std::fs::File> {
        self.file(path).ok_or(io::ErrorKind::NotFound)?.try_clone()
    }
}
