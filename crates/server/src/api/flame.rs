//! Flame graphs.

use heapr_explore::{FlameQuery, Found};
use heapr_filters::FilterArguments;
use heapr_query::Metric;
use serde::{Deserialize, Serialize};

use super::flame_json::{FlameFrame, FlameNodes, FrameColumns, node_columns};
use crate::command_line::report_command;
use crate::error::{Error, Result};
use crate::ids::{flame_value, frame, node_key};
use crate::json::is_counted;
use crate::request::{Answer, Context, read};

/// Largest number of nodes in an answer.
const NODES_MAX: usize = 200_000;

/// Parameters of a flame graph, shared with differences.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FlameRequest {
    pub(super) file: usize,
    pub(super) filter: FilterArguments,
    pub(super) value: String,
    direction: String,
    pub(super) collapse_recursion: bool,
    /// Whether each line of a function has its own box.
    pub(super) by_line: bool,
    root: Option<String>,
    focus: Option<String>,
    pub(super) least_share: f64,
    pub(super) nodes_max: usize,
}

impl Default for FlameRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            filter: FilterArguments::default(),
            value: "outstanding_bytes".to_owned(),
            direction: "top-down".to_owned(),
            collapse_recursion: false,
            by_line: false,
            root: None,
            focus: None,
            least_share: 0.0005,
            nodes_max: 20_000,
        }
    }
}

/// Whether a direction leads from the allocating frame to its callers.
pub(super) fn is_bottom_up(direction: &str) -> Result<bool> {
    match direction {
        "top-down" => Ok(false),
        "bottom-up" => Ok(true),
        _ => Err(Error::bad("direction", format!("{direction:?} is neither top-down nor bottom-up"))),
    }
}

/// Limits the requested share and number of nodes.
pub(super) fn bounded(least_share: f64, nodes_max: usize) -> (f64, usize) {
    (if least_share.is_finite() { least_share.clamp(0.0, 1.0) } else { 0.0 }, nodes_max.clamp(1, NODES_MAX))
}

#[derive(Serialize)]
struct FlameAnswer<'a> {
    schema: &'static str,
    command: String,
    value: &'a str,
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
    let request: FlameRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let (value, is_temporary) = flame_value(&request.value)?;
    let filter =
        FilterArguments { temporary: request.filter.temporary || is_temporary, ..request.filter.clone() };
    let read = file.filter(&filter)?;
    let _answering = file.answering(&read.filter, Found::default());
    let selection = file.select(&filter, &read.filter, Found::default(), context.cancel)?;
    let explorer = file.named(request.by_line, context.cancel)?;
    let is_bottom_up = is_bottom_up(&request.direction)?;
    let (least_share, nodes_max) = bounded(request.least_share, request.nodes_max);
    let focus = request.focus.as_deref().map(|text| frame(explorer, text)).transpose()?;
    let query = FlameQuery {
        value,
        is_bottom_up,
        collapses_recursion: request.collapse_recursion,
        focus,
        root: request.root.as_deref().map(node_key).transpose()?,
        least_share,
        nodes_max,
    };
    let tree = explorer.flame(&selection, &read.cull, &query)?;
    let Some(first) = tree.nodes.first() else {
        return Err(Error::NotFound { what: "node", name: request.root.unwrap_or_default() });
    };
    let mut frames = FrameColumns::new();
    let nodes = node_columns(explorer, &tree, value, &mut frames);
    let focus_name =
        focus.and_then(|focus| explorer.frame(focus)).and_then(|view| view.symbol.map(str::to_owned));
    // Blocks at the peak are not a sort key; their bytes are.
    let sort = if value.key().is_empty() { Metric::PeakBytes } else { value }.key();
    let action: Vec<&str> = match (is_bottom_up, &focus_name) {
        (true, Some(name)) => vec!["--callers", name, sort],
        (true, None) => vec!["--frames", sort],
        _ => vec!["--invert", sort],
    };
    crate::request::json(&FlameAnswer {
        schema: "heapr.view.flame/1",
        command: report_command(&file, &action, &filter),
        value: &request.value,
        total: first.value.amount,
        total_plus_minus: first.value.plus_minus(value),
        node_count: tree.node_count,
        names: frames.names,
        frames: frames.frames,
        nodes,
    })
}
