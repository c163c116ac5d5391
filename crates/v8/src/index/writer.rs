//! Writer of an index's columns, one after the other.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;

use crate::index::layout::{BLOCK_BYTES, Column, ColumnEntry, Directory, HEADER_BYTES, MAGIC, VERSION};

/// Number of bytes written at once.
const BUFFER_BYTES: usize = 64 * BLOCK_BYTES;

/// Index file that is being written.
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    file: File,
    buffer: Vec<u8>,
    checksums: Vec<u32>,
    columns: Vec<ColumnEntry>,
}

impl ColumnWriter {
    /// Starts an index in an empty file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let mut writer =
            Self { file, buffer: Vec::with_capacity(BUFFER_BYTES), checksums: vec![0], columns: Vec::new() };
        writer.file.write_all(&[0; BLOCK_BYTES])?;
        Ok(writer)
    }

    /// Appends a column of bytes.
    pub(crate) fn bytes(&mut self, column: Column, bytes: &[u8]) -> io::Result<()> {
        let first_block = self.checksums.len() as u64;
        for piece in bytes.chunks(BUFFER_BYTES) {
            self.buffer.extend_from_slice(piece);
            self.write_buffer()?;
        }
        self.columns.push(ColumnEntry { column, count: bytes.len() as u64, first_block });
        Ok(())
    }

    /// Appends a column of numbers.
    pub(crate) fn numbers(
        &mut self,
        column: Column,
        numbers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        self.values(column, numbers.into_iter().map(u32::to_le_bytes))
    }

    /// Appends a column of bytes that are computed one by one.
    pub(crate) fn byte_values(&mut self, column: Column, bytes: impl Iterator<Item = u8>) -> io::Result<()> {
        self.values(column, bytes.map(|byte| [byte]))
    }

    fn values<const BYTES: usize>(
        &mut self,
        column: Column,
        mut values: impl Iterator<Item = [u8; BYTES]>,
    ) -> io::Result<()> {
        let first_block = self.checksums.len() as u64;
        let mut count = 0;
        loop {
            self.buffer.resize(BUFFER_BYTES, 0);
            let mut filled = 0;
            // `values` is second in the zip, so that no value is consumed without a slot.
            for (slot, value) in self.buffer.as_chunks_mut::<BYTES>().0.iter_mut().zip(values.by_ref()) {
                *slot = value;
                filled += 1;
            }
            count += filled as u64;
            let is_last = filled < BUFFER_BYTES / BYTES;
            self.buffer.truncate(filled * BYTES);
            self.write_buffer()?;
            if is_last {
                break;
            }
        }
        self.columns.push(ColumnEntry { column, count, first_block });
        Ok(())
    }

    /// Writes the buffer, padded to the end of a block.
    fn write_buffer(&mut self) -> io::Result<()> {
        self.buffer.resize(self.buffer.len().next_multiple_of(BLOCK_BYTES), 0);
        self.checksums.extend(self.buffer.chunks_exact(BLOCK_BYTES).map(crc32fast::hash));
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the directory, then the header that makes the file an index.
    pub(crate) fn finish(mut self, directory: Directory) -> io::Result<File> {
        let directory = Directory { columns: self.columns, ..directory };
        let offset = (self.checksums.len() * BLOCK_BYTES) as u64;
        let mut text: Vec<u8> = self.checksums.iter().flat_map(|checksum| checksum.to_le_bytes()).collect();
        text.extend(serde_json::to_vec(&directory)?);
        self.file.write_all(&text)?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(crc32fast::hash(&text).to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend((text.len() as u64).to_le_bytes());
        self.file.write_all_at(&header, 0)?;
        Ok(self.file)
    }
}
