//! Flame graphs.

use heapr_explore::{FlameQuery, Found, FrameNumber};
use heapr_filters::FilterArguments;
use heapr_query::Metric;
use serde::{Deserialize, Serialize};

use super::flame_json::{FlameFrame, FlameNodes, FrameColumns, node_columns};
use crate::choices::FlameValue;
use crate::command_line::report_command;
use crate::error::{Error, Result};
use crate::ids::{frame, node_key};
use crate::json::is_counted;
use crate::request::{Answer, Context, read_with};

/// Largest number of nodes in an answer.
const NODES_MAX: usize = 200_000;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlameRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    /// Whether each line of a function has its own box.
    #[serde(default)]
    by_line: bool,
}

/// Shape of a flame graph: the part of a request that differences have, too.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FlameShape {
    pub(super) value: FlameValue,
    direction: Direction,
    collapse_recursion: bool,
    root: Option<String>,
    pub(super) focus: Option<String>,
    least_share: f64,
    nodes_max: usize,
}

impl Default for FlameShape {
    fn default() -> Self {
        Self {
            value: FlameValue::default(),
            direction: Direction::TopDown,
            collapse_recursion: false,
            root: None,
            focus: None,
            least_share: 0.0005,
            nodes_max: 20_000,
        }
    }
}

/// Direction of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Direction {
    /// From the outermost frames to what they call.
    TopDown,
    /// From the allocating frames to their callers.
    BottomUp,
}

impl FlameShape {
    /// Query for the graph, around `focus`. Share and number of nodes are limited.
    pub(super) fn query(&self, focus: Option<FrameNumber>) -> Result<FlameQuery> {
        Ok(FlameQuery {
            value: self.value.metric,
            is_bottom_up: self.direction == Direction::BottomUp,
            collapses_recursion: self.collapse_recursion,
            focus,
            root: self.root.as_deref().map(node_key).transpose()?,
            least_share: if self.least_share.is_finite() { self.least_share.clamp(0.0, 1.0) } else { 0.0 },
            nodes_max: self.nodes_max.clamp(1, NODES_MAX),
        })
    }

    /// Error for a graph without nodes.
    pub(super) fn without_root(&self) -> Error {
        Error::NotFound { what: "node", name: self.root.clone().unwrap_or_default() }
    }
}

#[derive(Serialize)]
struct FlameAnswer {
    schema: &'static str,
    command: String,
    value: &'static str,
    total: u64,
    /// Half of the 95 % interval of `total`; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    total_plus_minus: u64,
    node_count: usize,
    names: Vec<String>,
    frames: Vec<FlameFrame>,
    nodes: FlameNodes,
}

pub(super) fn flame(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, shape): (FlameRequest, FlameShape) = read_with(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let FlameValue { metric: value, is_temporary } = shape.value;
    let filter =
        FilterArguments { temporary: request.filter.temporary || is_temporary, ..request.filter.clone() };
    let read = file.filter(&filter)?;
    let _answering = file.answering(&read.filter, Found::default());
    let selection = file.select(&filter, &read.filter, Found::default(), context.cancel)?;
    let explorer = file.named(request.by_line, context.cancel)?;
    let focus = shape.focus.as_deref().map(|text| frame(explorer, text)).transpose()?;
    let query = shape.query(focus)?;
    let tree = explorer.flame(&selection, &read.cull, &query)?;
    let first = tree.nodes.first().ok_or_else(|| shape.without_root())?;
    let mut frames = FrameColumns::new();
    let nodes = node_columns(explorer, &file.own, &tree, value, &mut frames);
    let focus_name =
        focus.and_then(|focus| explorer.frame(focus)).and_then(|view| view.symbol.map(str::to_owned));
    // Blocks at the peak are not a sort key; their bytes are.
    let sort = if value.key().is_empty() { Metric::PeakBytes } else { value }.key();
    let action: Vec<&str> = match (query.is_bottom_up, &focus_name) {
        (true, Some(name)) => vec!["--callers", name, sort],
        (true, None) => vec!["--frames", sort],
        _ => vec!["--invert", sort],
    };
    crate::request::json(&FlameAnswer {
        schema: "heapr.view.flame/1",
        command: report_command(&file, &action, &filter),
        value: shape.value.name(),
        total: first.value.value,
        total_plus_minus: value.half_interval(first.value.variance),
        node_count: tree.node_count,
        names: frames.names,
        frames: frames.frames,
        nodes,
    })
}
