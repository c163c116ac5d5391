//! Embedding of symbols in a file that is already written.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::chunk::{CHUNK_BYTES_MAX, ChunkHeader, ChunkKind, TRAILER_BYTES, trailer};
use crate::error::{Error, Result};
use crate::payload::Packer;
use crate::source::read_up_to;
use crate::writer::index_bytes;
use crate::{ChunkInfo, Trace};

/// A complete and sound trace file that symbols can be embedded in.
///
/// Other files are refused. The recorder still appends to a file that is being recorded, and a new
/// index of a damaged file would hide its losses.
#[derive(Debug)]
pub struct SymbolEmbedder {
    file: File,
    trace: Trace,
    size: u64,
    trailer: [u8; TRAILER_BYTES],
}

impl SymbolEmbedder {
    /// Opens a file and reads all of it once.
    ///
    /// # Errors
    /// The file cannot be read and written, is no trace, has not ended, is damaged, or symbols are
    /// being embedded in it.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { action: "opening the file", source };
        let file = heapr_files::open_regular(OpenOptions::new().read(true).write(true), path).map_err(io)?;
        // Where the file system has no locks, comparing the trailer before the write must do.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::InUse);
        }
        let size = file.metadata().map_err(io)?.len();
        let trace = Trace::from_source(Box::new(file.try_clone().map_err(io)?))?;
        let mut trailer = [0; TRAILER_BYTES];
        read_up_to(&file, &mut trailer, size.saturating_sub(TRAILER_BYTES as u64))?;
        if !trace.is_complete() {
            return Err(Error::Unfinished);
        }
        if let Some(damage) = trace.check().first() {
            return Err(Error::Damaged { offset: damage.offset, what: damage.what });
        }
        Ok(Self { file, trace, size, trailer })
    }

    /// The trace in the file.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Appends a bundle of symbols, a new index and a new trailer. Returns `false` without writing
    /// if the file has this bundle already. The old index stays: if heapr is killed in between, the
    /// file is read without a trailer, and no data is lost. If the write fails, the file is
    /// truncated to its old size.
    ///
    /// # Errors
    /// The bundle is too large, the file was changed meanwhile, or the write fails.
    pub fn embed(self, bundle: &[u8]) -> Result<bool> {
        if self.trace.embedded_symbols()?.is_some_and(|known| known == bundle) {
            return Ok(false);
        }
        // 64 bytes of margin for the sizes of the streams.
        if bundle.len() > CHUNK_BYTES_MAX as usize - 64 {
            return Err(Error::SymbolsTooLarge { bytes: bundle.len() as u64 });
        }
        let tail = self.tail(bundle);
        let io = |source| Error::Io { action: "writing the trace", source };
        // Reading took time, and a recorder that was told to overwrite the file takes no lock.
        let mut trailer = [0; TRAILER_BYTES];
        read_up_to(&self.file, &mut trailer, self.size.saturating_sub(TRAILER_BYTES as u64))?;
        if self.file.metadata().map_err(io)?.len() != self.size || trailer != self.trailer {
            return Err(Error::InUse);
        }
        self.file.write_all_at(&tail, self.size).and_then(|()| self.file.sync_all()).map_err(|error| {
            // A part of the tail would read as damage, and the trailer before it would not be
            // found.
            let _ = self.file.set_len(self.size);
            io(error)
        })?;
        Ok(true)
    }

    /// The bytes to append: symbols, index, trailer.
    fn tail(&self, bundle: &[u8]) -> Vec<u8> {
        let is_kept = |chunk: &ChunkInfo| !matches!(chunk.kind, Some(ChunkKind::Symbols | ChunkKind::Index));
        let mut chunks: Vec<ChunkInfo> = self.trace.chunks().iter().copied().filter(is_kept).collect();
        let mut packer = Packer::new();
        let mut tail = Vec::new();
        chunks.push(put_chunk(&mut tail, self.size, ChunkKind::Symbols, &mut packer, bundle, 1));
        let index_at = self.size + tail.len() as u64;
        let index = index_bytes(&chunks);
        put_chunk(&mut tail, index_at, ChunkKind::Index, &mut packer, &index, chunks.len() as u32);
        tail.extend_from_slice(&trailer(index_at));
        tail
    }
}

fn put_chunk(
    out: &mut Vec<u8>,
    offset: u64,
    kind: ChunkKind,
    packer: &mut Packer,
    stream: &[u8],
    item_count: u32,
) -> ChunkInfo {
    let (payload, raw_bytes) = packer.pack(&[stream]);
    let header = ChunkHeader {
        kind: kind as u16,
        flags: 0,
        stored_bytes: payload.len() as u32,
        raw_bytes,
        item_count,
        payload_crc: crc32fast::hash(&payload),
        first_ns: 0,
        last_ns: 0,
    };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&payload);
    header.info(offset)
}
