//! Flame graphs of the difference between two sides.

use heapr_explore::{DifferenceNode, FrameNumber, FrameUnion};
use heapr_query::{FramePattern, Metric};
use serde::{Deserialize, Serialize};

use super::diff::{OpenSide, SideRequest, diff_command, union};
use super::flame::FlameShape;
use super::flame_json::FrameColumns;
use crate::choices::FlameValue;
use crate::error::{Error, Result};
use crate::ids::node_id;
use crate::json::are_counted;
use crate::request::{Answer, Context, read_with};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffFlameRequest {
    before: SideRequest,
    after: SideRequest,
}

#[derive(Default, Serialize)]
struct DiffFlameNodes {
    id: Vec<String>,
    parent: Vec<i64>,
    frame: Vec<i64>,
    before: Vec<u64>,
    after: Vec<u64>,
    /// Halves of the 95 % intervals of both sides and of their difference, if they are estimates.
    #[serde(skip_serializing_if = "are_counted")]
    before_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "are_counted")]
    after_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "are_counted")]
    delta_plus_minus: Vec<u64>,
}

impl DiffFlameNodes {
    fn push_amounts(&mut self, node: &DifferenceNode, metric: Metric) {
        let DifferenceNode { before, after, .. } = node;
        self.before.push(before.value);
        self.after.push(after.value);
        self.before_plus_minus.push(metric.half_interval(before.variance));
        self.after_plus_minus.push(metric.half_interval(after.variance));
        self.delta_plus_minus.push(metric.half_interval(before.variance.saturating_add(after.variance)));
    }
}

#[derive(Serialize)]
struct UnionFrame {
    id: String,
    symbol: u32,
    module: u32,
    offset: u64,
}

#[derive(Serialize)]
struct DiffFlameAnswer {
    schema: &'static str,
    command: Option<String>,
    value: &'static str,
    before: u64,
    after: u64,
    node_count: usize,
    names: Vec<String>,
    frames: Vec<UnionFrame>,
    nodes: DiffFlameNodes,
}

/// The frame with an id of the common tree, or the first one that matches a pattern.
fn focus(union: &FrameUnion, text: &str) -> Result<FrameNumber> {
    let by_id = text.strip_prefix('u').and_then(|number| number.parse().ok());
    if let Some(frame) = by_id.filter(|&frame| !union.parts(frame).0.is_empty()) {
        return Ok(FrameNumber(frame));
    }
    let pattern = FramePattern::parse(text)?;
    let frame = union.frame_matching(&pattern);
    frame.map(FrameNumber).ok_or_else(|| Error::NotFound { what: "frame", name: text.to_owned() })
}

pub(super) fn diff_flame(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, shape): (DiffFlameRequest, FlameShape) = read_with(body)?;
    let FlameValue { metric: value, is_temporary } = shape.value;
    let open = |side| OpenSide::open(context, side, is_temporary);
    let sides = [open(&request.before)?, open(&request.after)?];
    let union = union(context, &sides)?;
    let focus = shape.focus.as_deref().map(|text| focus(&union, text)).transpose()?;
    let tree = union.flame([sides[0].side(), sides[1].side()], &shape.query(focus)?)?;
    let first = tree.nodes.first().ok_or_else(|| shape.without_root())?;
    let mut names = FrameColumns::new();
    let mut frames: Vec<UnionFrame> = Vec::new();
    let mut numbers = std::collections::HashMap::new();
    let mut nodes = DiffFlameNodes::default();
    for node in &tree.nodes {
        let number = match node.frame {
            None => -1,
            Some(frame) => *numbers.entry(frame).or_insert_with(|| {
                let (module, symbol, offset) = union.parts(frame);
                frames.push(UnionFrame {
                    id: format!("u{frame}"),
                    symbol: names.name(symbol.unwrap_or_default()),
                    module: names.name(module),
                    offset: offset.unwrap_or(0),
                });
                frames.len() as i64 - 1
            }),
        };
        nodes.id.push(node_id(node.key));
        nodes.parent.push(node.parent.map_or(-1, |parent| parent as i64));
        nodes.frame.push(number);
        nodes.push_amounts(node, value);
    }
    crate::request::json(&DiffFlameAnswer {
        schema: "heapr.view.diff-flame/1",
        command: diff_command([&request.before, &request.after], &sides, heapr_query::GroupBy::Stacks, value),
        value: shape.value.name(),
        before: first.before.value,
        after: first.after.value,
        node_count: tree.node_count,
        names: names.names,
        frames,
        nodes,
    })
}
