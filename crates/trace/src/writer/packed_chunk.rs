//! Packed chunks: a payload with its header.

use crate::chunk::{ChunkHeader, ChunkKind};
use crate::events::{EVENT_SEARCHES, EventColumns};
use crate::payload::Packer;

/// Packs the events of a chunk, and clears their columns for the next.
pub(super) fn packed_events(columns: &mut EventColumns, packer: &mut Packer) -> (ChunkHeader, Vec<u8>) {
    let (payload, raw_bytes) = packer.pack_events(columns.streams(), EVENT_SEARCHES);
    let (count, first_ns, last_ns) = (columns.count as u32, columns.first_ns, columns.last_ns);
    columns.clear();
    (chunk_header(ChunkKind::Events, &payload, raw_bytes, count, first_ns, last_ns), payload)
}

pub(super) fn chunk_header(
    kind: ChunkKind,
    payload: &[u8],
    raw_bytes: u32,
    item_count: u32,
    first_ns: u64,
    last_ns: u64,
) -> ChunkHeader {
    ChunkHeader {
        kind: kind as u16,
        flags: 0,
        stored_bytes: payload.len() as u32,
        raw_bytes,
        item_count,
        payload_crc: crc32fast::hash(payload),
        first_ns,
        last_ns,
    }
}
