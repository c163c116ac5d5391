//! The graph of a native snapshot: references between live blocks, and to them from memory outside.
//!
//! ```text
//!  chunk GraphRoots   snapshot 3, process 0, part 0   references of roots
//!  chunk GraphEdges   snapshot 3, process 0, part 0   references of 65,536 blocks
//!  chunk GraphEdges   …
//!  chunk GraphTexts   snapshot 3, process 0, part 0   texts of 65,536 blocks, if requested
//!  chunk GraphSlices  snapshot 3, process 0, part 0   blocks of which only slices are used
//!  chunk Graphs       snapshot 3, process 0: counts, areas with their names, notes
//! ```
//! Blocks are the nodes. They are not written again: node 0 is the malloc'ed block of the snapshot
//! and process with the lowest address, and so on. The entry (`Graphs`) comes last. A graph that is
//! cut off by the file's end is therefore absent: with references missing, blocks would seem
//! leaked.

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::graph_texts::GraphTexts;
use crate::tables::Entry;
use crate::{ProcessIndex, Snapshot};

/// Number of streams of a chunk of references between blocks: place, degrees, targets, slots,
/// grades, types.
pub(crate) const GRAPH_EDGE_STREAMS: usize = 6;
/// Number of streams of a chunk of roots' references: place, areas, offsets, targets, grades.
pub(crate) const GRAPH_ROOT_STREAMS: usize = 5;
/// Number of references per chunk; keeps a chunk far below its largest size.
const EDGES_PER_CHUNK: usize = 1 << 18;
/// Largest number of nodes that begin in a chunk.
const NODES_PER_CHUNK: u32 = 1 << 18;

/// Kind of memory outside of blocks that refers to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootClass {
    /// A thread's registers.
    Registers,
    /// A thread's stack.
    Stack,
    /// Thread-local variables and thread-specific data.
    ThreadLocal,
    /// Data of a module.
    Global,
    /// Other memory that the program has mapped.
    Mapping,
    /// Memory that is shared with other processes.
    Shared,
    /// A block that the recording does not know.
    Untracked,
    /// Memory between blocks of an allocator whose structure is unknown.
    Unknown,
    /// Memory that the kernel holds.
    Kernel,
    /// A frame of a thread's stack. Its name holds three parts with spaces between. These are its
    /// number from the innermost frame, the hexadecimal address at which it continues, and the
    /// thread's name.
    Frame,
    /// Memory of the process that is missing from its core file and may hold anything.
    LeftOut,
    /// A class of a later version.
    Other(u8),
}

/// The classes by number, from 0.
const ROOT_CLASSES: [RootClass; 11] = [
    RootClass::Registers,
    RootClass::Stack,
    RootClass::ThreadLocal,
    RootClass::Global,
    RootClass::Mapping,
    RootClass::Shared,
    RootClass::Untracked,
    RootClass::Unknown,
    RootClass::Kernel,
    RootClass::Frame,
    RootClass::LeftOut,
];

impl RootClass {
    fn number(self) -> u8 {
        match self {
            Self::Other(number) => number,
            known => ROOT_CLASSES.iter().position(|&class| class == known).unwrap_or(0) as u8,
        }
    }

    fn from_number(number: u8) -> Self {
        ROOT_CLASSES.get(usize::from(number)).copied().unwrap_or(Self::Other(number))
    }
}

/// Certainty that a word is a reference to the block that it points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeGrade {
    /// Points to the block's first byte.
    Start,
    /// Points behind the count of an array's elements.
    ArrayCookie,
    /// Points behind a length that fits the block.
    LengthPrefix,
    /// Points to the text of a counted string.
    StringBody,
    /// Points to a base class other than the first.
    SecondBase,
    /// Points to somewhere inside.
    Interior,
    /// Points to the byte behind the end.
    OnePast,
    /// Points to the start, after tag bits that no address has are removed.
    Tagged,
    /// Points to the start, from a location that is no multiple of 8.
    Unaligned,
    /// Lies behind the requested size of its block, or in memory that may be dead.
    DeadMemory,
    /// Points behind the elements of a hash table, whose count and capacity fit the block (Rust's
    /// `HashMap`).
    HashTable,
    /// Points to a location that holds the block's start: a header behind the data that it
    /// describes (SQLite's pages).
    WayBack,
}

/// The grades by number, from 0.
const EDGE_GRADES: [EdgeGrade; 12] = [
    EdgeGrade::Start,
    EdgeGrade::ArrayCookie,
    EdgeGrade::LengthPrefix,
    EdgeGrade::StringBody,
    EdgeGrade::SecondBase,
    EdgeGrade::Interior,
    EdgeGrade::OnePast,
    EdgeGrade::Tagged,
    EdgeGrade::Unaligned,
    EdgeGrade::DeadMemory,
    EdgeGrade::HashTable,
    EdgeGrade::WayBack,
];

impl EdgeGrade {
    /// Whether the word is believed to be a reference without doubt.
    #[must_use]
    pub fn is_strong(self) -> bool {
        self <= Self::SecondBase || matches!(self, Self::HashTable | Self::WayBack)
    }

    /// Decodes a grade. A grade of a later version counts as doubtful.
    fn from_number(number: u8) -> Self {
        EDGE_GRADES.get(usize::from(number)).copied().unwrap_or(Self::DeadMemory)
    }
}

/// A piece of memory outside of blocks that was searched for references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootArea {
    /// Kind of the memory.
    pub class: RootClass,
    /// First byte; for registers the number of the first one.
    pub start_avma: u64,
    /// End, exclusive.
    pub end_avma: u64,
    /// Thread that owns the area, numbered in the process's own namespace; 0: none.
    pub tid: u32,
    /// The module's path, the mapping's name, the thread's name; may be empty.
    pub name: String,
}

/// A reference from outside of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootEdge {
    /// Index of the area.
    pub area: u32,
    /// The word's distance from the area's first byte.
    pub offset_bytes: u64,
    /// Node that the reference leads to.
    pub target: u32,
    /// Certainty of the reference.
    pub grade: EdgeGrade,
}

/// Large block to which only references with a length beside them lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlicedBlock {
    /// Number of the block.
    pub node: u32,
    /// Number of references with a length.
    pub view_count: u32,
    /// Bytes that these lengths cover together.
    pub covered_bytes: u64,
}

/// References between the live blocks of a process at a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapGraph {
    /// Process of the blocks.
    pub process: ProcessIndex,
    /// Index of each node's first edge, followed by the number of edges.
    pub first_edge: Vec<u32>,
    /// Node that each edge leads to.
    pub targets: Vec<u32>,
    /// Distance of each edge's word from the start of its block, in words.
    pub slots: Vec<u32>,
    /// Grade of each edge.
    pub grades: Vec<EdgeGrade>,
    /// Memory outside of blocks that was searched.
    pub areas: Vec<RootArea>,
    /// References from these areas.
    pub roots: Vec<RootEdge>,
    /// Type of each node: index of its name plus one; 0: unknown.
    pub types: Vec<u32>,
    /// Names of types as the compiler wrote them (`3Foo`), or behind a sign (`~`: inferred from the
    /// shape).
    pub type_names: Vec<String>,
    /// Text at the start of blocks; empty unless requested.
    pub texts: GraphTexts,
    /// Large blocks of which only slices seem to be used, by node.
    pub sliced: Vec<SlicedBlock>,
    /// Time for which the process was stopped for the graph.
    pub pause_ns: u64,
    /// Memory that could not be searched, and the consequences: one sentence each.
    pub notes: Vec<String>,
}

impl HeapGraph {
    /// Returns the number of blocks.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        (self.first_edge.len().max(1) - 1) as u32
    }

    /// Indices of a node's edges.
    #[must_use]
    pub fn edges(&self, node: u32) -> std::ops::Range<usize> {
        self.first_edge[node as usize] as usize..self.first_edge[node as usize + 1] as usize
    }
}

/// Facts of a graph that are known without reading its references.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphFacts {
    /// Number of blocks.
    pub node_count: u32,
    /// Number of references, from blocks and from roots.
    pub reference_count: u64,
    /// Names of types: see [`HeapGraph::type_names`].
    pub type_names: Vec<String>,
    /// Time for which the process was stopped: see [`HeapGraph::pause_ns`].
    pub pause_ns: u64,
    /// Sentences about the graph: see [`HeapGraph::notes`].
    pub notes: Vec<String>,
    /// Bytes of address ranges of an allocator whose blocks are unknown.
    pub unknown_bytes: u64,
    /// Bytes of address ranges that could hold references and are missing from the core file.
    pub left_out_bytes: u64,
    /// Whether memory is missing from the core file, of known size or not.
    pub has_left_out: bool,
}

/// The entry that ends a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GraphHead {
    pub(crate) snapshot: u32,
    pub(crate) process: ProcessIndex,
    pub(crate) node_count: u32,
    pub(crate) edge_count: u32,
    pub(crate) root_count: u32,
    pub(crate) pause_ns: u64,
    pub(crate) areas: Vec<RootArea>,
    pub(crate) notes: Vec<String>,
    pub(crate) type_names: Vec<String>,
}

impl GraphHead {
    pub(crate) fn of(snapshot: &Snapshot, graph: &HeapGraph) -> Self {
        Self {
            snapshot: snapshot.number,
            process: graph.process,
            node_count: graph.node_count(),
            edge_count: graph.targets.len() as u32,
            root_count: graph.roots.len() as u32,
            pause_ns: graph.pause_ns,
            areas: graph.areas.clone(),
            notes: graph.notes.clone(),
            type_names: graph.type_names.clone(),
        }
    }
}

/// The fields are in a byte string of their own, like those of a snapshot.
impl Entry for GraphHead {
    fn put(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        let numbers = [self.snapshot, self.process.0, self.node_count, self.edge_count, self.root_count];
        numbers.into_iter().for_each(|number| fields.put_varint(u64::from(number)));
        fields.put_varint(self.pause_ns);
        fields.put_varint(self.areas.len() as u64);
        let mut last_avma = 0;
        for area in &self.areas {
            fields.push(area.class.number());
            fields.put_varint(zigzag(area.start_avma.wrapping_sub(last_avma).cast_signed()));
            fields.put_varint(area.end_avma.wrapping_sub(area.start_avma));
            last_avma = area.start_avma;
            fields.put_varint(u64::from(area.tid));
            fields.put_text(&area.name);
        }
        fields.put_varint(self.notes.len() as u64);
        self.notes.iter().for_each(|note| fields.put_text(note));
        fields.put_varint(self.type_names.len() as u64);
        self.type_names.iter().for_each(|name| fields.put_text(name));
        out.put_bytes(&fields);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let fields = take.byte_string()?;
        let mut take = Take::new(&fields);
        let (snapshot, process) = (take.varint32()?, ProcessIndex(take.varint32()?));
        let (node_count, edge_count, root_count) = (take.varint32()?, take.varint32()?, take.varint32()?);
        let pause_ns = take.varint()?;
        let area_count = take.count()?;
        let mut last_avma = 0_u64;
        let mut areas = Vec::new();
        for _ in 0..area_count {
            let class = RootClass::from_number(take.u8()?);
            let start_avma = last_avma.wrapping_add_signed(unzigzag(take.varint()?));
            let end_avma = start_avma.wrapping_add(take.varint()?);
            last_avma = start_avma;
            areas.push(RootArea { class, start_avma, end_avma, tid: take.varint32()?, name: take.text()? });
        }
        let note_count = take.count()?;
        let notes = (0..note_count).map(|_| take.text()).collect::<Result<_, _>>()?;
        let type_count = take.count()?;
        let type_names = (0..type_count).map(|_| take.text()).collect::<Result<_, _>>()?;
        Ok(Self { snapshot, process, node_count, edge_count, root_count, pause_ns, areas, notes, type_names })
    }
}

/// The stream that begins each chunk of a graph: snapshot, process, first item.
pub(crate) fn place_stream(snapshot: u32, process: ProcessIndex, first: u64) -> Vec<u8> {
    let mut place = Vec::new();
    place.put_varint(u64::from(snapshot));
    place.put_varint(u64::from(process.0));
    place.put_varint(first);
    place
}

/// Decodes the snapshot, process and first item of an untrusted chunk.
pub(crate) fn place_of(stream: &[u8]) -> Result<(u32, ProcessIndex, u64), Malformed> {
    let mut take = Take::new(stream);
    Ok((take.varint32()?, ProcessIndex(take.varint32()?), take.varint()?))
}

/// Passes the chunks of references between blocks to `write`: number of nodes, streams. A node with
/// more references than fit continues in the next chunk.
pub(crate) fn for_each_edge_chunk<E>(
    snapshot: u32,
    graph: &HeapGraph,
    mut write: impl FnMut(u32, [&[u8]; GRAPH_EDGE_STREAMS]) -> Result<(), E>,
) -> Result<(), E> {
    let node_count = graph.node_count();
    let (mut node, mut edge) = (0_u32, 0_usize);
    while node < node_count {
        let place = place_stream(snapshot, graph.process, u64::from(node));
        let [mut degrees, mut targets, mut slots, mut grades, mut types] = [const { Vec::new() }; 5];
        let (mut count, mut room) = (0, EDGES_PER_CHUNK);
        while node < node_count && count < NODES_PER_CHUNK && room > 0 {
            let end = graph.first_edge[node as usize + 1] as usize;
            let taken = (end - edge).min(room);
            degrees.put_varint(taken as u64);
            types.put_varint(u64::from(graph.types.get(node as usize).copied().unwrap_or(0)));
            let mut slot = 0;
            for number in edge..edge + taken {
                targets.put_varint(zigzag(i64::from(graph.targets[number]) - i64::from(node)));
                slots.put_varint(zigzag(i64::from(graph.slots[number]) - i64::from(slot)));
                slot = graph.slots[number];
                grades.push(graph.grades[number] as u8);
            }
            (edge, room, count) = (edge + taken, room - taken, count + 1);
            // A node that is cut continues at `edge` in the next chunk.
            if edge < end {
                break;
            }
            node += 1;
        }
        write(count, [&place, &degrees, &targets, &slots, &grades, &types])?;
    }
    Ok(())
}

/// Appends the references of an untrusted chunk to `graph`, which holds those of all nodes before.
pub(crate) fn take_edge_chunk(
    streams: &[Vec<u8>; GRAPH_EDGE_STREAMS],
    count: usize,
    head: &GraphHead,
    graph: &mut HeapGraph,
) -> Result<(), Malformed> {
    let (_, _, first) = place_of(&streams[0])?;
    let [_, mut degrees, mut targets, mut slots, mut grades, mut types] =
        streams.each_ref().map(|stream| Take::new(stream));
    // An unfinished node is the last one with an end in `first_edge`.
    let open = graph.first_edge.len() as u64;
    let is_next = first == open || (open > 0 && first == open - 1);
    if !is_next {
        return Err(Malformed("a part of the graph is missing"));
    }
    for number in 0..count as u64 {
        let node = first + number;
        if node >= u64::from(head.node_count) {
            return Err(Malformed("it has more nodes than the graph"));
        }
        let degree = degrees.varint()? as usize;
        let kind = types.varint32()?;
        let kind = if kind as usize <= head.type_names.len() { kind } else { 0 };
        if graph.targets.len() + degree > head.edge_count as usize {
            return Err(Malformed("it has more references than the graph"));
        }
        let mut slot = 0_i64;
        for _ in 0..degree {
            let target = (node as i64).wrapping_add(unzigzag(targets.varint()?));
            let target = u32::try_from(target).ok().filter(|&target| target < head.node_count);
            graph.targets.push(target.ok_or(Malformed("a reference leads out of the graph"))?);
            slot = slot.wrapping_add(unzigzag(slots.varint()?));
            graph.slots.push(u32::try_from(slot).unwrap_or(u32::MAX));
            graph.grades.push(EdgeGrade::from_number(grades.u8()?));
        }
        // Until all chunks are read, `first_edge` holds the end of each node; a node that is
        // continued has one already.
        let end = graph.targets.len() as u32;
        match graph.first_edge.get_mut(node as usize) {
            Some(known) => *known = end,
            None => {
                graph.first_edge.push(end);
                graph.types.push(kind);
            }
        }
    }
    Ok(())
}

/// Passes the chunks of roots' references to `write`: number of references, streams.
pub(crate) fn for_each_root_chunk<E>(
    snapshot: u32,
    graph: &HeapGraph,
    mut write: impl FnMut(u32, [&[u8]; GRAPH_ROOT_STREAMS]) -> Result<(), E>,
) -> Result<(), E> {
    for (part, roots) in graph.roots.chunks(EDGES_PER_CHUNK).enumerate() {
        let place = place_stream(snapshot, graph.process, (part * EDGES_PER_CHUNK) as u64);
        let [mut areas, mut offsets, mut targets, mut grades] = [const { Vec::new() }; 4];
        let mut last = RootEdge { area: 0, offset_bytes: 0, target: 0, grade: EdgeGrade::Start };
        for root in roots {
            if root.area != last.area {
                last.offset_bytes = 0;
            }
            areas.put_varint(zigzag(i64::from(root.area) - i64::from(last.area)));
            offsets.put_varint(zigzag(root.offset_bytes.wrapping_sub(last.offset_bytes).cast_signed()));
            targets.put_varint(zigzag(i64::from(root.target) - i64::from(last.target)));
            grades.push(root.grade as u8);
            last = *root;
        }
        write(roots.len() as u32, [&place, &areas, &offsets, &targets, &grades])?;
    }
    Ok(())
}

/// Appends the references of an untrusted chunk.
pub(crate) fn take_root_chunk(
    streams: &[Vec<u8>; GRAPH_ROOT_STREAMS],
    count: usize,
    head: &GraphHead,
    graph: &mut HeapGraph,
) -> Result<(), Malformed> {
    let (_, _, first) = place_of(&streams[0])?;
    if first != graph.roots.len() as u64 {
        return Err(Malformed("a part of the graph's roots is missing"));
    }
    let [_, mut areas, mut offsets, mut targets, mut grades] =
        streams.each_ref().map(|stream| Take::new(stream));
    let (mut area, mut offset_bytes, mut target) = (0_i64, 0_u64, 0_i64);
    for _ in 0..count {
        if graph.roots.len() >= head.root_count as usize {
            return Err(Malformed("it has more roots than the graph"));
        }
        let step = unzigzag(areas.varint()?);
        if step != 0 {
            offset_bytes = 0;
        }
        area = area.wrapping_add(step);
        offset_bytes = offset_bytes.wrapping_add_signed(unzigzag(offsets.varint()?));
        target = target.wrapping_add(unzigzag(targets.varint()?));
        let known =
            |number: i64, count: usize| u32::try_from(number).ok().filter(|&it| (it as usize) < count);
        let outside = Malformed("a root leads out of the graph");
        graph.roots.push(RootEdge {
            area: known(area, head.areas.len()).ok_or(outside)?,
            offset_bytes,
            target: known(target, head.node_count as usize).ok_or(outside)?,
            grade: EdgeGrade::from_number(grades.u8()?),
        });
    }
    Ok(())
}
