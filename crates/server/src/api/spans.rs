//! Sums of all allocations by stack and by spans of time, from which a page without a server
//! computes any range of whole spans.

use std::collections::HashMap;

use heapr_explore::{FrameNumber, SpanSum};
use heapr_query::CullList;
use heapr_query::engine::FrameId;
use serde::{Deserialize, Serialize};

use super::flame_json::{FlameFrame, FrameColumns};
use crate::error::{Error, Result};
use crate::ids::stack_id;
use crate::request::{Answer, Context, json, read};

/// Largest number of spans, and of sums in an answer: some megabytes.
const SPANS_MAX: u16 = 64;
const SUMS_MAX: usize = 400_000;
/// Number of frames in which the own frame is looked for first: nearly all stacks have it there.
const INNER_FRAMES: usize = 16;
/// Number of sums between two looks whether the request was cancelled.
const CANCEL_INTERVAL: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpansRequest {
    file: usize,
}

/// Culled stacks as a tree of frames, the outermost first; parents come before their children.
#[derive(Default, Serialize)]
struct SpanNodes {
    /// Index of the caller; -1 for none.
    parent: Vec<i64>,
    frame: Vec<i64>,
}

/// Stacks that allocate.
#[derive(Default, Serialize)]
struct SpanStacks {
    id: Vec<String>,
    /// Index of the innermost frame in `nodes`; -1 without frames.
    node: Vec<i64>,
    /// Index of the innermost frame of user code, from the innermost one; -1 for none.
    own: Vec<i64>,
}

/// Sums as columns. `stack` and `born` are differences to the row before.
#[derive(Default, Serialize)]
struct SpanColumns {
    stack: Vec<i64>,
    born: Vec<i64>,
    /// Number of spans after `born`; -1: not freed.
    freed: Vec<i64>,
    count: Vec<u64>,
    bytes: Vec<u64>,
    realloc_count: Vec<u64>,
    temporary_count: Vec<u64>,
}

#[derive(Serialize)]
struct SpansAnswer {
    schema: &'static str,
    /// Path for a command.
    path: String,
    /// Ends of the spans; the first span begins at 0.
    ends_ns: Vec<u64>,
    names: Vec<String>,
    frames: Vec<FlameFrame>,
    nodes: SpanNodes,
    stacks: SpanStacks,
    sums: SpanColumns,
}

pub(super) fn spans(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: SpansRequest = read(body)?;
    let file = context.files.trace(request.file)?;
    file.wait_for_names(context.cancel)?;
    file.wait_for_events(context.cancel)?;
    let explorer = &file.explorer;
    let found = explorer.span_sums(SPANS_MAX, SUMS_MAX, &|| context.cancel.is_set())?;
    let found = found.ok_or_else(|| Error::Unusable {
        path: file.path.display().to_string(),
        message: "sums by time need all events in memory, and no samples".to_owned(),
        offset: None,
    })?;
    let tree = explorer.tree();
    let culled_stack = explorer.culled_stacks(&CullList::built_in());
    let mut frames = FrameColumns::new();
    let (mut nodes, mut stacks) = (SpanNodes::default(), SpanStacks::default());
    let mut node_numbers: HashMap<u32, i64> = HashMap::from([(0, -1)]);
    let mut stack_numbers: HashMap<u32, i64> = HashMap::new();
    let mut rows: Vec<(i64, SpanSum)> = Vec::with_capacity(found.sums.len());
    for (place, sum) in found.sums.iter().enumerate() {
        if place.is_multiple_of(CANCEL_INTERVAL) {
            context.cancel.check()?;
        }
        let named = culled_stack(sum.stack);
        let next = stacks.id.len() as i64;
        let number = *stack_numbers.entry(named).or_insert(next);
        if number == next {
            // Nodes from the innermost one out to the first known one.
            let mut path = Vec::new();
            let mut at = named;
            while !node_numbers.contains_key(&at) {
                path.push(at);
                at = tree.parent(at);
            }
            for at in path.into_iter().rev() {
                nodes.parent.push(node_numbers.get(&tree.parent(at)).copied().unwrap_or(-1));
                let frame = tree.frame(at).map(|FrameId(frame)| FrameNumber(frame));
                nodes.frame.push(frames.frame(explorer, &file.own, frame));
                node_numbers.insert(at, nodes.parent.len() as i64 - 1);
            }
            stacks.id.push(stack_id((sum.stack.0, named)));
            stacks.node.push(node_numbers.get(&named).copied().unwrap_or(-1));
            let trace = file.trace().as_ref();
            let inner = tree.inner_views(trace, sum.stack, named, INNER_FRAMES);
            let own = file.own.place_of_inner(&inner);
            let own = own.or_else(|| file.own.place(&tree.views(trace, sum.stack, named)));
            stacks.own.push(own.map_or(-1, |place| place as i64));
        }
        rows.push((number, *sum));
    }
    rows.sort_unstable_by_key(|(stack, sum)| (*stack, sum.born, sum.freed));
    json(&SpansAnswer {
        schema: "heapr.view.spans/1",
        path: file.path.display().to_string(),
        sums: columns_of(&rows, found.ends_ns.len()),
        ends_ns: found.ends_ns,
        names: frames.names,
        frames: frames.frames,
        nodes,
        stacks,
    })
}

/// Columns of rows that are sorted by stack and span; equal ones are added up.
fn columns_of(rows: &[(i64, SpanSum)], spans: usize) -> SpanColumns {
    let mut columns = SpanColumns::default();
    let mut last: Option<(i64, u16, u16)> = None;
    for (stack, sum) in rows {
        let key = (*stack, sum.born, sum.freed);
        let amounts = [sum.count, sum.bytes, sum.realloc_count, sum.temporary_count];
        let into = [
            &mut columns.count,
            &mut columns.bytes,
            &mut columns.realloc_count,
            &mut columns.temporary_count,
        ];
        if last == Some(key) {
            for (column, amount) in into.into_iter().zip(amounts) {
                if let Some(known) = column.last_mut() {
                    *known = known.saturating_add(amount);
                }
            }
            continue;
        }
        into.into_iter().zip(amounts).for_each(|(column, amount)| column.push(amount));
        let (last_stack, last_born) = last.map_or((0, 0), |(stack, born, _)| (stack, i64::from(born)));
        columns.stack.push(stack - last_stack);
        columns.born.push(i64::from(sum.born) - last_born);
        let is_freed = usize::from(sum.freed) < spans;
        columns.freed.push(if is_freed { i64::from(sum.freed) - i64::from(sum.born) } else { -1 });
        last = Some(key);
    }
    columns
}
