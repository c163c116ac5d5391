//! Native graph in the form of a V8 heap snapshot, for the same commands, the same views, and
//! DevTools.
//!
//! ```text
//!  root ── thread 12 "worker" stack ── +0x40 ──> block ── +0x18 ──> block
//!       ── libfoo.so data ── libfoo.so!g_cache ──> block
//!       ── (leaked: nothing leads here) ──> block ── text ──> "what it begins with"
//! ```
//! References that do not count as holding (`LastingReferences`) are weak edges: dominators, sizes
//! and paths ignore them, as `holders` does. Doubtful or passing references to a block are such if
//! sure and lasting ones lead to it, too. A block's id is its address. Its name is its type if
//! that is known, else the function that allocated it.

use heapr_table::json_text::write_json;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use heapr_native::{LastingReferences, LeakKind};
use heapr_query::{CullList, GroupBy, StackGroups};
use heapr_trace::{Block, EdgeGrade, GraphTexts, HeapGraph};
use heapr_v8::graph_rows::{ELEMENT, INTERNAL, NATIVE, PROPERTY, STRING, SYNTHETIC, WEAK, edge, node};

use super::block_names::BlockNames;
use super::graph_file::{GraphArguments, GraphFile};
use super::leak_sums::find_leaks;
use super::places::Places;
use crate::report::names::TraceNames;

/// Graph with its blocks and names.
pub(crate) struct NativeHeap {
    graph: HeapGraph,
    blocks: Vec<Block>,
    strings: Strings,
    /// Name of each block, as an index of `strings`.
    names: Vec<u32>,
    area_names: Vec<u32>,
    /// Name of each root's reference, as an index of `strings`.
    root_names: Vec<u32>,
    /// Blocks that stand for a leak.
    leaked: Vec<u32>,
    lasting: LastingReferences,
}

/// Texts without duplicates.
#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

impl NativeHeap {
    /// Reads the graph of a trace and names its blocks and roots.
    pub(crate) fn of(path: &Path, asked: &GraphArguments) -> anyhow::Result<Self> {
        let file = GraphFile::open(path, asked)?;
        let mut names = TraceNames::new(&file.trace, &asked.names);
        let stacks: HashSet<_> = file.blocks.iter().map(|block| block.stack).collect();
        let cull = CullList::built_in();
        let groups = StackGroups::of_all(&file.trace, stacks, GroupBy::Stacks, &cull, &mut names);
        let leaks = find_leaks(&file, &groups);
        let leaked = leaks.leaks.iter().filter(|leak| leak.kind == LeakKind::Definite);
        let leaked = leaked.map(|leak| leak.node).collect();
        let mut strings = Strings::default();
        strings.number("");
        let of_blocks = BlockNames::of(&file, &groups, &mut names);
        let blocks = 0..file.blocks.len() as u32;
        let block_names = blocks.map(|node| strings.number(of_blocks.name(node))).collect();
        let mut places = Places::of(&file);
        let areas = file.graph.areas.iter();
        let area_names = areas.map(|area| strings.number(&places.area_name(area))).collect();
        let root_names = file.graph.roots.iter().map(|root| {
            let area = &file.graph.areas[root.area as usize];
            let place = places.name(area, root.offset_bytes);
            strings.number(&format!("{place}{}", grade_text(root.grade)))
        });
        let root_names = root_names.collect();
        let GraphFile { graph, blocks, .. } = file;
        let lasting = LastingReferences::of(&graph);
        Ok(Self { graph, blocks, strings, names: block_names, area_names, root_names, leaked, lasting })
    }

    /// Writes the graph in DevTools' format.
    pub(crate) fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let texts = std::mem::take(&mut self.graph.texts);
        let area_count = self.graph.areas.len() as u64;
        // Order of nodes: the root, the areas, the leaked blocks' node, the blocks.
        let first_block = 2 + area_count;
        let first_text = first_block + self.blocks.len() as u64;
        let node_count = first_text + texts.len() as u64;
        let edge_count = area_count
            + 1
            + self.graph.roots.len() as u64
            + self.leaked.len() as u64
            + texts.len() as u64
            + self.graph.targets.len() as u64;
        write!(
            out,
            "{{\"snapshot\":{}",
            heapr_v8::snapshot_header(&heapr_v8::NODE_KINDS, node_count, edge_count)
        )?;
        let mut roots_of: Vec<Vec<u32>> = vec![Vec::new(); area_count as usize];
        for (number, root) in self.graph.roots.iter().enumerate() {
            roots_of[root.area as usize].push(number as u32);
        }
        self.write_nodes(out, &roots_of, &texts)?;
        self.write_edges_of_roots(out, &roots_of, first_block)?;
        self.write_edges_of_blocks(out, &texts, first_block)?;
        write!(
            out,
            "],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n\"strings\":["
        )?;
        for (number, text) in self.strings.texts.iter().enumerate() {
            if number > 0 {
                out.write_all(b",\n")?;
            }
            write_json(&mut *out, text, false)?;
        }
        out.write_all(b"]}\n")
    }

    /// Writes the nodes. `roots_of`: numbers of the roots by area.
    fn write_nodes(
        &mut self,
        out: &mut impl Write,
        roots_of: &[Vec<u32>],
        texts: &GraphTexts,
    ) -> io::Result<()> {
        let area_count = roots_of.len() as u64;
        write!(out, ",\n\"nodes\":[")?;
        let root = self.strings.number("");
        node(out, true, [SYNTHETIC.into(), root.into(), 1, 0, area_count + 1])?;
        for (number, roots) in roots_of.iter().enumerate() {
            let id = 3 + 2 * number as u64;
            node(out, false, [NATIVE.into(), self.area_names[number].into(), id, 0, roots.len() as u64])?;
        }
        let leaked_name = self.strings.number("(leaked: nothing leads here)");
        let leaked_id = 3 + 2 * area_count;
        node(out, false, [NATIVE.into(), leaked_name.into(), leaked_id, 0, self.leaked.len() as u64])?;
        for (number, block) in self.blocks.iter().enumerate() {
            let number_of_texts = u64::from(texts.of(number as u32).is_some());
            let degree = self.graph.edges(number as u32).len() as u64 + number_of_texts;
            let name = u64::from(self.names[number]);
            node(out, false, [NATIVE.into(), name, block.address_avma, block.size_bytes, degree])?;
        }
        for (block, text) in texts.iter() {
            let name = u64::from(self.strings.number(text));
            // No block begins there; the bytes are the block's own.
            let id = self.blocks[block as usize].address_avma | 1;
            node(out, false, [STRING.into(), name, id, 0, 0])?;
        }
        Ok(())
    }

    /// Writes the references of the root, the areas and the node of leaks.
    fn write_edges_of_roots(
        &mut self,
        out: &mut impl Write,
        roots_of: &[Vec<u32>],
        first_block: u64,
    ) -> io::Result<()> {
        write!(out, "],\n\"edges\":[")?;
        for child in 0..=roots_of.len() as u64 {
            edge(out, child == 0, [ELEMENT.into(), child, 1 + child])?;
        }
        for root in roots_of.iter().flatten() {
            let name = u64::from(self.root_names[*root as usize]);
            let root = &self.graph.roots[*root as usize];
            let kind = if self.lasting.counts_root(&self.graph, root) { PROPERTY } else { WEAK };
            edge(out, false, [kind.into(), name, first_block + u64::from(root.target)])?;
        }
        let leaked_edge = self.strings.number("leaked");
        for &target in &self.leaked {
            edge(out, false, [INTERNAL.into(), leaked_edge.into(), first_block + u64::from(target)])?;
        }
        Ok(())
    }

    /// Writes the references of each block, and the one to its text.
    fn write_edges_of_blocks(
        &mut self,
        out: &mut impl Write,
        texts: &GraphTexts,
        first_block: u64,
    ) -> io::Result<()> {
        let mut slots: HashMap<(u32, EdgeGrade), u32> = HashMap::new();
        let text_edge = u64::from(self.strings.number("text"));
        let mut next_text = first_block + self.blocks.len() as u64;
        for block in 0..self.graph.node_count() {
            for number in self.graph.edges(block) {
                let key = (self.graph.slots[number], self.graph.grades[number]);
                let strings = &mut self.strings;
                let name = *slots.entry(key).or_insert_with(|| {
                    strings.number(&format!("+{:#x}{}", u64::from(key.0) * 8, grade_text(key.1)))
                });
                let target = first_block + u64::from(self.graph.targets[number]);
                let kind = if self.lasting.counts_edge(&self.graph, number) { PROPERTY } else { WEAK };
                edge(out, false, [kind.into(), name.into(), target])?;
            }
            if texts.of(block).is_some() {
                edge(out, false, [INTERNAL.into(), text_edge, next_text])?;
                next_text += 1;
            }
        }
        Ok(())
    }
}

/// Returns the remark on a reference that does not lead to a block's start.
fn grade_text(grade: EdgeGrade) -> &'static str {
    match grade {
        EdgeGrade::Start => "",
        EdgeGrade::ArrayCookie => " (array)",
        EdgeGrade::LengthPrefix => " (behind its length)",
        EdgeGrade::StringBody => " (text)",
        EdgeGrade::SecondBase => " (base class)",
        EdgeGrade::Interior => " (to its inside)",
        EdgeGrade::OnePast => " (to its end)",
        EdgeGrade::Tagged => " (tagged)",
        EdgeGrade::Unaligned => " (unaligned)",
        EdgeGrade::DeadMemory => " (maybe dead)",
        EdgeGrade::HashTable => " (behind its elements)",
        EdgeGrade::WayBack => " (behind what it is of)",
    }
}
