//! Blocks of a graph of which only slices seem to be used, and their chunks.
//!
//! ```text
//!  | place | length |  ---> inside of a block        views: a length stands beside the reference
//!  block: ....[16 bytes]...........................   covered: 16 of 16,384 bytes
//! ```
//! The block numbers are those of the graph. A file of an earlier version has no such chunk.

use crate::ProcessIndex;
use crate::bytes::{PutBytes as _, Take};
use crate::error::Malformed;
use crate::heap_graph::{GraphHead, HeapGraph, SlicedBlock, place_of, place_stream};

/// Number of streams of a chunk of sliced blocks: place, fields.
pub(crate) const GRAPH_SLICE_STREAMS: usize = 2;
/// Number of blocks per chunk.
const SLICES_PER_CHUNK: usize = 1 << 16;

/// Passes the chunks of sliced blocks to `write`: number of blocks, streams.
pub(crate) fn for_each_slice_chunk<E>(
    snapshot: u32,
    process: ProcessIndex,
    sliced: &[SlicedBlock],
    mut write: impl FnMut(u32, [&[u8]; GRAPH_SLICE_STREAMS]) -> Result<(), E>,
) -> Result<(), E> {
    for (part, blocks) in sliced.chunks(SLICES_PER_CHUNK).enumerate() {
        let place = place_stream(snapshot, process, (part * SLICES_PER_CHUNK) as u64);
        let (mut fields, mut last) = (Vec::new(), 0);
        for block in blocks {
            fields.put_varint(u64::from(block.node - last));
            fields.put_varint(u64::from(block.view_count));
            fields.put_varint(block.covered_bytes);
            last = block.node;
        }
        write(blocks.len() as u32, [&place, &fields])?;
    }
    Ok(())
}

/// Appends the blocks of an untrusted chunk.
pub(crate) fn take_slice_chunk(
    streams: &[Vec<u8>; GRAPH_SLICE_STREAMS],
    count: usize,
    head: &GraphHead,
    graph: &mut HeapGraph,
) -> Result<(), Malformed> {
    let (_, _, first) = place_of(&streams[0])?;
    if first != graph.sliced.len() as u64 {
        return Err(Malformed("a part of the sliced blocks is missing"));
    }
    let (mut fields, mut node) = (Take::new(&streams[1]), 0_u64);
    for _ in 0..count {
        node = node.saturating_add(fields.varint()?);
        let number = u32::try_from(node).ok().filter(|&node| node < head.node_count);
        let number = number.ok_or(Malformed("a slice belongs to no block"))?;
        if graph.sliced.last().is_some_and(|last| last.node >= number) {
            return Err(Malformed("the sliced blocks are out of order"));
        }
        let (view_count, covered_bytes) = (fields.varint32()?, fields.varint()?);
        graph.sliced.push(SlicedBlock { node: number, view_count, covered_bytes });
    }
    Ok(())
}
