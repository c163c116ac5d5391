//! Reader of the graphs of native snapshots, one at a time.

use crate::chunk::{CHUNK_HEADER_BYTES, ChunkInfo, ChunkKind};
use crate::error::{Error, Malformed, Result};
use crate::graph_slices::{GRAPH_SLICE_STREAMS, take_slice_chunk};
use crate::graph_text_chunks::{GRAPH_TEXT_STREAMS, take_text_chunk};
use crate::heap_graph::{
    GRAPH_EDGE_STREAMS, GRAPH_ROOT_STREAMS, GraphFacts, GraphHead, HeapGraph, place_of, take_edge_chunk,
    take_root_chunk,
};
use crate::tables::take_all;
use crate::{ProcessIndex, RootClass, Snapshot, Trace};

/// Largest ratio of the unpacked references of a graph to the file's size.
const EXPANSION_MAX: u64 = 64;
/// Unpacked bytes that are allowed in addition, whatever the file's size.
const EXPANSION_FREE_BYTES: u64 = 64 << 20;

impl Trace {
    /// The processes of a snapshot that have a graph in the file.
    #[must_use]
    pub fn graph_processes(&self, snapshot: &Snapshot) -> Vec<ProcessIndex> {
        let heads = self.graph_heads(snapshot).unwrap_or_default();
        heads.into_iter().map(|(_, head)| head.process).collect()
    }

    /// Facts of a process's graph in a snapshot, without reading its references; `None` if the
    /// snapshot has no graph of that process.
    ///
    /// # Errors
    /// The entry is damaged, or reading the file fails.
    pub fn graph_facts(&self, snapshot: &Snapshot, process: ProcessIndex) -> Result<Option<GraphFacts>> {
        let heads = self.graph_heads(snapshot)?;
        let head = heads.into_iter().map(|(_, head)| head).find(|head| head.process == process);
        let bytes_of = |head: &GraphHead, class: RootClass| {
            let of_it = head.areas.iter().filter(|area| area.class == class);
            of_it.map(|area| area.end_avma.wrapping_sub(area.start_avma)).fold(0, u64::saturating_add)
        };
        Ok(head.map(|head| GraphFacts {
            unknown_bytes: bytes_of(&head, RootClass::Unknown),
            left_out_bytes: bytes_of(&head, RootClass::LeftOut),
            has_left_out: head.areas.iter().any(|area| area.class == RootClass::LeftOut),
            node_count: head.node_count,
            reference_count: u64::from(head.edge_count) + u64::from(head.root_count),
            type_names: head.type_names,
            pause_ns: head.pause_ns,
            notes: head.notes,
        }))
    }

    /// The graph of a process in a snapshot; `None` if the snapshot has no graph of that process.
    ///
    /// # Errors
    /// The graph is damaged, because reachability is undecidable with references missing; or
    /// reading the file fails.
    pub fn heap_graph(&self, snapshot: &Snapshot, process: ProcessIndex) -> Result<Option<HeapGraph>> {
        let heads = self.graph_heads(snapshot)?;
        let Some((offset, head)) = heads.into_iter().find(|(_, head)| head.process == process) else {
            return Ok(None);
        };
        let damaged = |offset: u64, what| Error::Damaged { offset, what };
        let mut graph = HeapGraph { process, pause_ns: head.pause_ns, ..HeapGraph::default() };
        let mut room = EXPANSION_FREE_BYTES;
        let size =
            self.source.size_bytes().map_err(|source| Error::Io { action: "reading the trace", source })?;
        room = room.saturating_add(size.saturating_mul(EXPANSION_MAX));
        for info in self.graph_chunks(ChunkKind::GraphRoots, snapshot) {
            let streams = self.graph_streams::<GRAPH_ROOT_STREAMS>(info, &head, &mut room)?;
            let Some(streams) = streams else { continue };
            take_root_chunk(&streams, info.item_count as usize, &head, &mut graph)
                .map_err(|Malformed(what)| damaged(info.offset, what))?;
        }
        for info in self.graph_chunks(ChunkKind::GraphEdges, snapshot) {
            let streams = self.graph_streams::<GRAPH_EDGE_STREAMS>(info, &head, &mut room)?;
            let Some(streams) = streams else { continue };
            take_edge_chunk(&streams, info.item_count as usize, &head, &mut graph)
                .map_err(|Malformed(what)| damaged(info.offset, what))?;
        }
        for info in self.graph_chunks(ChunkKind::GraphTexts, snapshot) {
            let streams = self.graph_streams::<GRAPH_TEXT_STREAMS>(info, &head, &mut room)?;
            let Some(streams) = streams else { continue };
            take_text_chunk(&streams, info.item_count as usize, &head, &mut graph)
                .map_err(|Malformed(what)| damaged(info.offset, what))?;
        }
        for info in self.graph_chunks(ChunkKind::GraphSlices, snapshot) {
            let streams = self.graph_streams::<GRAPH_SLICE_STREAMS>(info, &head, &mut room)?;
            let Some(streams) = streams else { continue };
            take_slice_chunk(&streams, info.item_count as usize, &head, &mut graph)
                .map_err(|Malformed(what)| damaged(info.offset, what))?;
        }
        let found = (graph.first_edge.len(), graph.targets.len(), graph.roots.len());
        if found != (head.node_count as usize, head.edge_count as usize, head.root_count as usize) {
            return Err(damaged(offset, "parts of the graph are missing"));
        }
        // Until here `first_edge` holds the end of each node.
        graph.first_edge.insert(0, 0);
        graph.areas = head.areas;
        graph.type_names = head.type_names;
        graph.notes = head.notes;
        Ok(Some(graph))
    }

    fn graph_chunks(&self, kind: ChunkKind, snapshot: &Snapshot) -> impl Iterator<Item = &ChunkInfo> {
        self.of_kind(kind).filter(|chunk| chunk.first_ns == snapshot.time_ns)
    }

    /// The streams of a chunk, if the chunk belongs to this graph.
    fn graph_streams<const N: usize>(
        &self,
        info: &ChunkInfo,
        head: &GraphHead,
        room: &mut u64,
    ) -> Result<Option<[Vec<u8>; N]>> {
        let damaged = |what| Error::Damaged { offset: info.offset, what };
        *room = room
            .checked_sub(u64::from(info.raw_bytes))
            .ok_or(damaged("it unpacks to more than a file of this size holds"))?;
        let streams = self.streams::<N>(info)?;
        let (number, process, _) = place_of(&streams[0]).map_err(|Malformed(what)| damaged(what))?;
        Ok((number == head.snapshot && process == head.process).then_some(streams))
    }

    /// The entries that end the graphs of a snapshot, with their offsets in the file.
    fn graph_heads(&self, snapshot: &Snapshot) -> Result<Vec<(u64, GraphHead)>> {
        let mut heads = Vec::new();
        for info in self.graph_chunks(ChunkKind::Graphs, snapshot) {
            let damaged = |Malformed(what)| Error::Damaged { offset: info.offset, what };
            let [stream] = self.streams::<1>(info)?;
            let entries: Vec<GraphHead> = take_all(&stream, info.item_count as usize).map_err(damaged)?;
            if entries.iter().any(|head| head.process.0 as usize >= self.processes().len()) {
                return Err(damaged(Malformed("a process's number is out of range")));
            }
            let of_it = entries.into_iter().filter(|head| head.snapshot == snapshot.number);
            heads.extend(of_it.map(|head| (info.offset + CHUNK_HEADER_BYTES as u64, head)));
        }
        Ok(heads)
    }
}
