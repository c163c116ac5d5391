//! Chunks of the texts at the start of a graph's blocks.

use crate::ProcessIndex;
use crate::bytes::{PutBytes as _, Take};
use crate::error::Malformed;
use crate::graph_texts::GraphTexts;
use crate::heap_graph::{GraphHead, HeapGraph, place_of, place_stream};

/// Number of streams of a chunk of texts.
pub(crate) const GRAPH_TEXT_STREAMS: usize = 4;
/// Number of texts per chunk.
const TEXTS_PER_CHUNK: usize = 1 << 16;
/// Largest length of a text in bytes; a longer one is damage.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// Passes the chunks of texts to `write`: number of texts, streams.
pub(crate) fn for_each_text_chunk<E>(
    snapshot: u32,
    process: ProcessIndex,
    texts: &GraphTexts,
    mut write: impl FnMut(u32, [&[u8]; GRAPH_TEXT_STREAMS]) -> Result<(), E>,
) -> Result<(), E> {
    let all: Vec<(u32, &str)> = texts.iter().collect();
    for (part, texts) in all.chunks(TEXTS_PER_CHUNK).enumerate() {
        let place = place_stream(snapshot, process, (part * TEXTS_PER_CHUNK) as u64);
        let [mut nodes, mut lengths, mut bytes] = [const { Vec::new() }; 3];
        let mut last = 0;
        for &(node, text) in texts {
            nodes.put_varint(u64::from(node - last));
            lengths.put_varint(text.len() as u64);
            bytes.extend_from_slice(text.as_bytes());
            last = node;
        }
        write(texts.len() as u32, [&place, &nodes, &lengths, &bytes])?;
    }
    Ok(())
}

/// Appends the texts of an untrusted chunk.
pub(crate) fn take_text_chunk(
    streams: &[Vec<u8>; GRAPH_TEXT_STREAMS],
    count: usize,
    head: &GraphHead,
    graph: &mut HeapGraph,
) -> Result<(), Malformed> {
    let (_, _, first) = place_of(&streams[0])?;
    if first != graph.texts.len() as u64 {
        return Err(Malformed("a part of the blocks' texts is missing"));
    }
    let (mut nodes, mut lengths) = (Take::new(&streams[1]), Take::new(&streams[2]));
    let (mut node, mut rest) = (0_u64, streams[3].as_slice());
    for _ in 0..count {
        node = node.saturating_add(nodes.varint()?);
        let number = u32::try_from(node).ok().filter(|&node| node < head.node_count);
        let number = number.ok_or(Malformed("a text belongs to no block"))?;
        if graph.texts.last_node().is_some_and(|last| last >= number) {
            return Err(Malformed("the blocks' texts are out of order"));
        }
        let length = lengths.varint()? as usize;
        let (text, behind) = rest
            .split_at_checked(length)
            .filter(|_| length <= TEXT_BYTES_MAX)
            .ok_or(Malformed("a block's text is cut, or too long"))?;
        rest = behind;
        graph.texts.push(number, &String::from_utf8_lossy(text));
    }
    Ok(())
}
