//! Embedding symbols in a file that is already written.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::chunk::{ChunkHeader, ChunkKind, trailer};
use crate::error::{Error, Result};
use crate::payload::Packer;
use crate::writer::index_bytes;
use crate::{ChunkInfo, Trace};

/// Appends a bundle of symbols, a new index and a new trailer to the file. The old ones stay where they are: should
/// the write be cut short, the file is read without a trailer, and nothing of it is lost.
///
/// # Errors
/// The file cannot be read or written.
pub fn embed_symbols(path: &Path, bundle: &[u8]) -> Result<()> {
    let io = |action| move |source| Error::Io { action, source };
    let mut chunks: Vec<ChunkInfo> = Trace::open(path)?
        .chunks()
        .iter()
        .copied()
        .filter(|chunk| !matches!(chunk.kind, Some(ChunkKind::Symbols | ChunkKind::Index)))
        .collect();
    let mut file = OpenOptions::new().write(true).open(path).map_err(io("opening the file"))?;
    let at = file.seek(SeekFrom::End(0)).map_err(io("writing the trace"))?;
    let mut packer = Packer::new();
    let mut tail = Vec::new();
    let info = put_chunk(&mut tail, at, ChunkKind::Symbols, &mut packer, bundle, 1);
    chunks.push(info);
    let index_at = at + tail.len() as u64;
    let index = index_bytes(&chunks);
    put_chunk(&mut tail, index_at, ChunkKind::Index, &mut packer, &index, chunks.len() as u32);
    tail.extend_from_slice(&trailer(index_at));
    file.write_all(&tail).map_err(io("writing the trace"))?;
    file.sync_all().map_err(io("writing the trace"))
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
