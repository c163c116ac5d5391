//! Readings of a process's mappings during a recording: what its resident memory is.

use crate::ProcessIndex;
use crate::bytes::{PutBytes, Take};
use crate::error::Malformed;
use crate::tables::Entry;

/// Division of the resident memory of a process at a time, as the mappings tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryReading {
    /// Time of the reading.
    pub time_ns: u64,
    /// The process.
    pub process: ProcessIndex,
    /// Memory without a file, without that of heapr itself.
    pub anonymous_bytes: u64,
    /// Part of it in the C library's heap: from `brk`, and in its arenas.
    pub heap_bytes: u64,
    /// Number of pieces of that heap.
    pub heap_pieces: u64,
    /// Part of it in stacks of threads.
    pub stack_bytes: u64,
    /// Part of it in written data of programs and libraries, and in data that began as zeros.
    pub data_bytes: u64,
    /// Resident files that are no programs or libraries, largest first.
    pub files: Vec<ResidentFile>,
}

/// Resident part of a mapped file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResidentFile {
    /// Path of the file, as the kernel names it.
    pub path: String,
    /// Resident bytes, without pages that a private mapping has written.
    pub bytes: u64,
    /// Mapped bytes.
    pub mapped_bytes: u64,
}

impl Entry for MemoryReading {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.time_ns);
        out.put_varint(u64::from(self.process.0));
        for value in [
            self.anonymous_bytes,
            self.heap_bytes,
            self.heap_pieces,
            self.stack_bytes,
            self.data_bytes,
            self.files.len() as u64,
        ] {
            out.put_varint(value);
        }
        for file in &self.files {
            out.put_text(&file.path);
            out.put_varint(file.bytes);
            out.put_varint(file.mapped_bytes);
        }
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let time_ns = take.varint()?;
        let process = ProcessIndex(take.varint32()?);
        let mut reading = Self { time_ns, process, ..Self::default() };
        for value in [
            &mut reading.anonymous_bytes,
            &mut reading.heap_bytes,
            &mut reading.heap_pieces,
            &mut reading.stack_bytes,
            &mut reading.data_bytes,
        ] {
            *value = take.varint()?;
        }
        for _ in 0..take.count()? {
            let path = take.text()?;
            let (bytes, mapped_bytes) = (take.varint()?, take.varint()?);
            reading.files.push(ResidentFile { path, bytes, mapped_bytes });
        }
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_cut_entry_is_refused() {
        let file = |path: &str, bytes| ResidentFile { path: path.to_owned(), bytes, mapped_bytes: bytes * 2 };
        let reading = MemoryReading {
            time_ns: 9,
            process: ProcessIndex(2),
            anonymous_bytes: 1 << 40,
            heap_bytes: 5,
            heap_pieces: 3,
            stack_bytes: 2,
            data_bytes: 1,
            files: vec![file("/srv/data.mdb", 236 << 20), file("/srv/data.mdb (deleted)", 1)],
        };
        let mut bytes = Vec::new();
        reading.put(&mut bytes);
        assert_eq!(MemoryReading::take(&mut Take::new(&bytes)), Ok(reading));
        for end in 0..bytes.len() {
            assert!(MemoryReading::take(&mut Take::new(&bytes[..end])).is_err(), "{end}");
        }
    }
}
