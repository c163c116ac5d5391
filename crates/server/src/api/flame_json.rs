//! Flame graphs as columns: each name and frame once, nodes as numbers.

use std::collections::HashMap;

use heapr_explore::{Explorer, FlameTree, FrameNumber};
use heapr_query::engine::FrameId;
use heapr_query::{Metric, OwnCode, Owner};
use serde::Serialize;

use crate::ids::{frame_id, node_id};
use crate::json::NodeIntervals;

#[derive(Debug, Serialize)]
pub(super) struct FlameFrame {
    id: String,
    symbol: u32,
    module: u32,
    offset: u64,
    /// Source file, if lines are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// True if the code is the program's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_own: bool,
}

/// The distinct names and frames of a graph.
#[derive(Debug)]
pub(super) struct FrameColumns {
    pub(super) names: Vec<String>,
    pub(super) frames: Vec<FlameFrame>,
    name_numbers: HashMap<String, u32>,
    frame_numbers: HashMap<FrameNumber, i64>,
}

impl FrameColumns {
    pub(super) fn new() -> Self {
        Self {
            names: vec![String::new()],
            frames: Vec::new(),
            name_numbers: HashMap::from([(String::new(), 0)]),
            frame_numbers: HashMap::new(),
        }
    }

    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.name_numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.name_numbers.insert(name.to_owned(), number);
        number
    }

    /// Number of a frame; -1 for `None`.
    pub(super) fn frame(&mut self, explorer: &Explorer, own: &OwnCode, frame: Option<FrameNumber>) -> i64 {
        let Some(frame) = frame else { return -1 };
        if let Some(&number) = self.frame_numbers.get(&frame) {
            return number;
        }
        let view = explorer.frame(frame);
        let symbol = self.name(view.and_then(|view| view.symbol).unwrap_or_default());
        let module = self.name(view.and_then(|view| view.module).unwrap_or_default());
        let file = view.and_then(|view| view.file).map(|file| self.name(file));
        let source = explorer.tree().frames.file(FrameId(frame.0));
        let is_own = view.is_some_and(|view| own.owner(view.module, view.symbol, source) == Owner::Program);
        let number = self.frames.len() as i64;
        self.frames.push(FlameFrame {
            id: frame_id(frame),
            symbol,
            module,
            offset: view.map_or(0, |view| view.offset),
            file,
            line: view.and_then(|view| view.line),
            is_own,
        });
        self.frame_numbers.insert(frame, number);
        number
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct FlameNodes {
    id: Vec<String>,
    parent: Vec<i64>,
    frame: Vec<i64>,
    value: Vec<u64>,
    #[serde(rename = "self")]
    own: Vec<u64>,
    left_out: Vec<u64>,
    #[serde(flatten)]
    intervals: NodeIntervals,
}

/// Columns of a tree's nodes with the amounts of a metric.
pub(super) fn node_columns(
    explorer: &Explorer,
    own: &OwnCode,
    tree: &FlameTree,
    metric: Metric,
    frames: &mut FrameColumns,
) -> FlameNodes {
    let mut columns = FlameNodes::default();
    for node in &tree.nodes {
        columns.id.push(node_id(node.key));
        columns.parent.push(node.parent.map_or(-1, |parent| parent as i64));
        columns.frame.push(frames.frame(explorer, own, node.frame));
        let NodeIntervals { value_plus_minus, own_plus_minus, left_out_plus_minus } = &mut columns.intervals;
        for (values, halves, estimate) in [
            (&mut columns.value, value_plus_minus, node.value),
            (&mut columns.own, own_plus_minus, node.self_value),
            (&mut columns.left_out, left_out_plus_minus, node.left_out),
        ] {
            values.push(estimate.value);
            halves.push(metric.half_interval(estimate.variance));
        }
    }
    columns
}
