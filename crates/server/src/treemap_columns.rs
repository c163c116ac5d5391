//! Treemaps in columns: the part that their answers share.

use std::collections::HashMap;

use serde::Serialize;

use crate::json::{NodeIntervals, is_counted};

/// Largest number of nodes in an answer.
pub(crate) const NODES_MAX: usize = 20_000;

#[derive(Debug, Serialize)]
struct TreemapNodes<I> {
    id: Vec<Option<I>>,
    parent: Vec<i64>,
    name: Vec<u32>,
    value: Vec<u64>,
    #[serde(rename = "self")]
    own: Vec<u64>,
    left_out: Vec<u64>,
    #[serde(flatten)]
    intervals: NodeIntervals,
}

/// Builder of a treemap in columns. `I`: ids of nodes.
#[derive(Debug)]
pub(crate) struct TreemapColumns<I> {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    nodes: TreemapNodes<I>,
    most: usize,
}

/// Answer with a treemap.
#[derive(Debug, Serialize)]
pub(crate) struct TreemapJson<I> {
    schema: &'static str,
    command: Option<String>,
    total: u64,
    /// Half of the 95 % interval of `total`; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    total_plus_minus: u64,
    names: Vec<String>,
    nodes: TreemapNodes<I>,
}

impl<I> TreemapColumns<I> {
    /// Creates a builder for at most `most` nodes.
    pub(crate) fn new(most: usize) -> Self {
        let nodes = TreemapNodes {
            id: Vec::new(),
            parent: Vec::new(),
            name: Vec::new(),
            value: Vec::new(),
            own: Vec::new(),
            left_out: Vec::new(),
            intervals: NodeIntervals::default(),
        };
        Self { names: Vec::new(), numbers: HashMap::new(), nodes, most }
    }

    /// Appends a node; returns its number, or `None` if the treemap is full.
    pub(crate) fn push(
        &mut self,
        id: Option<I>,
        parent: Option<usize>,
        name: String,
        value: u64,
        own: u64,
    ) -> Option<usize> {
        let number = self.nodes.id.len();
        if number == self.most {
            return None;
        }
        let name = match self.numbers.get(&name) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(name.clone());
                self.numbers.insert(name, number);
                number
            }
        };
        self.nodes.id.push(id);
        self.nodes.parent.push(parent.map_or(-1, |parent| parent as i64));
        self.nodes.name.push(name);
        self.nodes.value.push(value);
        self.nodes.own.push(own);
        self.nodes.left_out.push(value.saturating_sub(own));
        if let Some(parent) = parent {
            self.nodes.left_out[parent] = self.nodes.left_out[parent].saturating_sub(value);
        }
        Some(number)
    }

    /// Self amounts of the nodes.
    pub(crate) fn own(&self) -> &[u64] {
        &self.nodes.own
    }

    /// Sets the intervals of all nodes' amounts.
    pub(crate) fn set_intervals(&mut self, intervals: NodeIntervals) {
        self.nodes.intervals = intervals;
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.id.len()
    }

    pub(crate) fn finish(self, schema: &'static str, command: Option<String>) -> TreemapJson<I> {
        let first = |column: &[u64]| column.first().copied().unwrap_or(0);
        let total_plus_minus = first(&self.nodes.intervals.value_plus_minus);
        let total = first(&self.nodes.value);
        TreemapJson { schema, command, total, total_plus_minus, names: self.names, nodes: self.nodes }
    }
}
