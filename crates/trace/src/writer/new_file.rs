//! The file that a trace is written to: private, replacing an existing one on request.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapr_files::Existing;

use super::{TraceWriter, write_failed};
use crate::chunk::{CHUNK_HEADER_BYTES, ChunkKind, SAMPLED_FORMAT_VERSION};
use crate::error::{Error, Result};

impl TraceWriter<BufWriter<File>> {
    /// Makes a file of mode 0600 and begins a trace in it. An existing file is an error unless
    /// `overwrite`; a symbolic link always is.
    ///
    /// See [`heapr_files::make`].
    ///
    /// # Errors
    /// Making or writing the file fails.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new(new_file(path, overwrite)?)
    }

    /// Variant of [`TraceWriter::create`] for [`TraceWriter::new_sampled`].
    ///
    /// # Errors
    /// The errors of [`TraceWriter::create`].
    pub fn create_sampled(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new_sampled(new_file(path, overwrite)?)
    }

    /// Turns a trace in which everything is recorded into one of [`TraceWriter::new_sampled`],
    /// because some of its allocations are samples.
    ///
    /// # Errors
    /// Writing the file fails.
    pub fn has_samples(&mut self) -> Result<()> {
        /// Offset of the version, behind the magic.
        const VERSION_AT: u64 = 8;
        if self.version == SAMPLED_FORMAT_VERSION {
            return Ok(());
        }
        self.version = SAMPLED_FORMAT_VERSION;
        self.sink.flush().map_err(write_failed)?;
        self.sink
            .get_ref()
            .write_all_at(&SAMPLED_FORMAT_VERSION.to_le_bytes(), VERSION_AT)
            .map_err(write_failed)
    }

    /// Whether the file on disk contains whole chunks of events or snapshots. After a failed write,
    /// chunks of the index may be missing in it.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        let file_bytes = self.sink.get_ref().metadata().map_or(0, |metadata| metadata.len());
        self.index.iter().any(|chunk| {
            let is_content = matches!(chunk.kind, Some(ChunkKind::Events | ChunkKind::SnapshotBlocks));
            let end = chunk.offset + CHUNK_HEADER_BYTES as u64 + u64::from(chunk.stored_bytes);
            is_content && end <= file_bytes
        })
    }
}

/// Makes only the file, like [`TraceWriter::create`]; for [`TraceWriter::go_on_in`].
///
/// # Errors
/// The errors of [`TraceWriter::create`].
pub fn new_file(path: &Path, overwrite: bool) -> Result<BufWriter<File>> {
    let file = heapr_files::make(path, Existing::replaced_if(overwrite))
        .map_err(|source| Error::Io { action: "making the file", source })?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Action, Event, HeapId, StackIndex, ThreadIndex};

    #[test]
    fn a_file_is_readable_once_whole_chunks_of_events_are_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut writer = TraceWriter::create(&path, false).unwrap();
        assert!(!writer.is_readable());
        let (stack, is_moved_realloc) = (StackIndex::EMPTY, false);
        let action = Action::Alloc { address_avma: 0x1000, size_bytes: 16, stack, is_moved_realloc };
        writer.event(&Event { time_ns: 1, thread: ThreadIndex(0), heap: HeapId::MALLOC, action }).unwrap();
        assert!(!writer.is_readable());
        writer.flush().unwrap();
        assert!(writer.is_readable());
        let written_bytes = std::fs::metadata(&path).unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(written_bytes - 1).unwrap();
        assert!(!writer.is_readable());
    }
}
