//! Snapshot in an index file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::Meta;
use crate::analysis::StoredAnswers;
use crate::devtools::InterfaceDefinition;
use crate::index::blocks::Blocks;
use crate::index::edge_sources::EdgeSources;
use crate::index::layout::{Column, Directory, NUMBERS_OF_CLASS, NUMBERS_OF_NODE};
use crate::objects::{Class, Objects as _, ScriptPaths};
use crate::source_maps::SourceMaps;
use crate::stored_summary::StoredSummary;

/// Objects of a snapshot, read from its index on demand.
#[derive(Debug)]
pub struct StoredGraph {
    pub(super) blocks: Blocks,
    pub(super) directory: Directory,
    pub(super) meta: Meta,
    pub(super) classes: OnceLock<Vec<Class>>,
    wide: [OnceLock<FxHashMap<u32, u64>>; 3],
    string_wraps: OnceLock<Vec<u32>>,
    pub(super) edge_sources: EdgeSources,
    pub(super) source_maps: OnceLock<Arc<SourceMaps>>,
}

impl StoredGraph {
    /// Opens an index file. Returns `None` if the file is not an index, of another version, or
    /// incomplete.
    pub(super) fn open(file: File) -> io::Result<Option<Self>> {
        let Some((blocks, directory)) = Blocks::open(file)? else { return Ok(None) };
        let Ok(meta) = Meta::parse(&blocks.all_bytes(Column::Meta), 0) else { return Ok(None) };
        let (nodes, edges) = (u64::from(directory.node_count), u64::from(directory.edge_count));
        let of_nodes = [
            Column::Names,
            Column::Ids,
            Column::SelfBytes,
            Column::Kinds,
            Column::Classes,
            Column::Distances,
            Column::Dominators,
            Column::Retained,
            Column::DominatedCounts,
            Column::ClassNodes,
        ];
        let of_edges = [Column::Targets, Column::EdgeNames, Column::EdgeKinds, Column::Retainers];
        let is_whole = of_nodes.iter().all(|&column| blocks.count(column) == nodes)
            && of_edges.iter().all(|&column| blocks.count(column) == edges)
            && [Column::FirstEdges, Column::FirstRetainers, Column::FirstDominated]
                .iter()
                .all(|&column| blocks.count(column) == nodes + 1)
            && blocks.count(Column::ClassBorders) == blocks.count(Column::ClassPlaces) / 4 * 2 + 1
            && blocks.count(Column::ClassEnds) % NUMBERS_OF_CLASS as u64 == 0
            && blocks.count(Column::RetainerOrderRows) % NUMBERS_OF_NODE as u64 == 0
            && blocks.damage().is_none()
            && u64::from(directory.root) < nodes;
        Ok(is_whole.then(|| Self {
            blocks,
            directory,
            meta,
            classes: OnceLock::new(),
            wide: Default::default(),
            string_wraps: OnceLock::new(),
            edge_sources: EdgeSources::default(),
            source_maps: OnceLock::new(),
        }))
    }

    /// Uses source maps for source locations from this call on. Only the first call has an effect.
    pub fn use_source_maps(&self, maps: Arc<SourceMaps>) {
        self.source_maps.get_or_init(|| maps);
    }

    /// Summary of the snapshot.
    pub fn summary(&self) -> StoredSummary {
        self.json(Column::Summary)
    }

    /// Answers that need the whole graph; `None` if the index lacks them, or if one of these source
    /// maps changes their names.
    pub fn answers(&self, maps: Option<&SourceMaps>) -> Option<StoredAnswers> {
        let is_mapped = |maps| has_mapped_names(&self.meta, maps, || self.script_paths());
        if maps.is_some_and(is_mapped) { None } else { self.json(Column::Answers) }
    }

    pub(super) fn interfaces(&self) -> Vec<InterfaceDefinition> {
        self.json(Column::Interfaces)
    }

    pub(super) fn json<T: serde::de::DeserializeOwned + Default>(&self, column: Column) -> T {
        serde_json::from_slice(&self.blocks.all_bytes(column)).unwrap_or_else(|error| {
            self.blocks.report(|| format!("{column:?}: {error}"));
            T::default()
        })
    }

    pub(super) fn number(&self, column: Column, index: u32) -> u32 {
        self.blocks.number(column, u64::from(index))
    }

    /// Returns a number of a column that must be below `limit`.
    pub(super) fn below(&self, column: Column, index: u32, limit: u32) -> u32 {
        let number = self.number(column, index);
        if number >= limit {
            self.blocks.report(|| format!("{column:?} has {number} at {index}, which is not below {limit}"));
            return 0;
        }
        number
    }

    pub(super) fn row(&self, column: Column, values: Column, node: u32) -> Range<u32> {
        let (begin, end) = (self.number(column, node), self.number(column, node.saturating_add(1)));
        if begin > end || u64::from(end) > self.blocks.count(values) {
            self.blocks.report(|| format!("{column:?} has {begin}, {end} at {node}"));
            return 0..0;
        }
        begin..end
    }

    /// Numbers that need more than 32 bits, by node.
    pub(super) fn wide(&self, column: Column) -> &FxHashMap<u32, u64> {
        let at = match column {
            Column::WideIds => 0,
            Column::WideSelfBytes => 1,
            _ => 2,
        };
        self.wide[at].get_or_init(|| {
            let numbers = self.blocks.all_numbers(column);
            let rows = numbers.as_chunks::<3>().0.iter();
            rows.map(|&[node, low, high]| (node, u64::from(low) | u64::from(high) << 32)).collect()
        })
    }

    pub(super) fn widened(&self, narrow: u32, node: u32, column: Column) -> u64 {
        match narrow {
            u32::MAX => self.wide(column).get(&node).copied().unwrap_or(u64::from(u32::MAX)),
            narrow => u64::from(narrow),
        }
    }

    fn string_wraps(&self) -> &[u32] {
        self.string_wraps.get_or_init(|| self.blocks.all_numbers(Column::StringWraps))
    }

    pub(super) fn string_end(&self, number: u32, low: u32) -> u64 {
        (self.string_wraps().partition_point(|&wrap| wrap <= number) as u64) << 32 | u64::from(low)
    }

    pub(super) fn text_range(&self, number: u32) -> Range<u64> {
        let begin = match number {
            0 => 0,
            _ => self.string_end(number - 1, self.number(Column::StringEnds, number - 1)),
        };
        begin..self.string_end(number, self.number(Column::StringEnds, number)).max(begin)
    }

    pub(super) fn read_classes(&self) -> Vec<Class> {
        let names = self.blocks.all_bytes(Column::ClassNames);
        let ends = self.blocks.all_numbers(Column::ClassNameEnds);
        let places = self.blocks.all_numbers(Column::ClassPlaces);
        let mut begin = 0;
        ends.iter()
            .zip(places.as_chunks::<4>().0)
            .map(|(&end, &[has_place, script_id, line, column])| {
                let name = names.get(begin as usize..end as usize).unwrap_or_default().to_vec();
                begin = end;
                Class { location: (has_place != 0).then_some((script_id, line, column)), name }
            })
            .collect()
    }
}

/// Whether names of objects depend on source maps. Only JavaScript has them.
pub(super) fn has_mapped_names(
    meta: &Meta,
    maps: &SourceMaps,
    scripts: impl FnOnce() -> ScriptPaths,
) -> bool {
    meta.dialect.is_none() && maps.apply_to(scripts().all().values())
}
