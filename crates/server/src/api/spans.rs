//! Sums of all allocations by stack and by spans of time, from which a page without a server
//! computes any range of whole spans.

use heapr_explore::{FrameNumber, SpanSum, SpanSums};
use heapr_filters::FilterArguments;
use heapr_query::engine::FrameId;
use heapr_query::{CullList, GroupBy, Metric};
use serde::{Deserialize, Serialize};

use super::flame_json::{FlameFrame, FrameColumns};
use crate::error::{Error, Result};
use crate::ids::stack_id;
use crate::request::{Answer, Context, json, read};
use crate::trace_file::TraceFile;

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
    /// File (a number of a name) and line of that frame; 0 for unknown. Lines of a stack that sums
    /// several are those of one.
    own_file: Vec<u32>,
    own_line: Vec<u32>,
    /// Bytes and blocks of the stack at the peak of the recording.
    peak_bytes: Vec<u64>,
    peak_count: Vec<u64>,
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
    temporary_bytes: Vec<u64>,
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
    let told = told_stacks(context, &file, &found)?;
    json(&SpansAnswer {
        schema: "heapr.view.spans/1",
        path: file.path.display().to_string(),
        sums: columns_of(&told.rows, found.ends_ns.len()),
        ends_ns: found.ends_ns,
        names: told.frames.names,
        frames: told.frames.frames,
        nodes: told.nodes,
        stacks: told.stacks,
    })
}

/// Culled stacks, and the sums with their numbers.
struct ToldStacks {
    frames: FrameColumns,
    nodes: SpanNodes,
    stacks: SpanStacks,
    rows: Vec<(i64, SpanSum)>,
}

/// Stands for the number of a stack or node before it gets one.
const UNKNOWN: i64 = i64::MIN;

fn told_stacks(context: &Context<'_>, file: &TraceFile, found: &SpanSums) -> Result<ToldStacks> {
    let (explorer, trace) = (&file.explorer, file.trace().as_ref());
    let tree = explorer.tree();
    let culled_stack = explorer.culled_stacks(&CullList::built_in());
    let peaks = peaks(context, file)?;
    let rows = Vec::with_capacity(found.sums.len());
    let mut told = ToldStacks {
        frames: FrameColumns::new(),
        nodes: SpanNodes::default(),
        stacks: SpanStacks::default(),
        rows,
    };
    let mut node_numbers = vec![UNKNOWN; tree.count()];
    node_numbers[0] = -1;
    let mut stack_numbers = vec![UNKNOWN; tree.count()];
    let mut path = Vec::new();
    for (place, sum) in found.sums.iter().enumerate() {
        if place.is_multiple_of(CANCEL_INTERVAL) {
            context.cancel.check()?;
        }
        let named = culled_stack(sum.stack);
        if stack_numbers[named as usize] == UNKNOWN {
            let ToldStacks { frames, nodes, stacks, .. } = &mut told;
            stack_numbers[named as usize] = stacks.id.len() as i64;
            // Nodes from the innermost one out to the first known one.
            let mut at = named;
            while node_numbers[at as usize] == UNKNOWN {
                path.push(at);
                at = tree.parent(at);
            }
            for at in path.drain(..).rev() {
                nodes.parent.push(node_numbers[tree.parent(at) as usize]);
                let frame = tree.frame(at).map(|FrameId(frame)| FrameNumber(frame));
                nodes.frame.push(frames.frame(explorer, &file.own, frame));
                node_numbers[at as usize] = nodes.parent.len() as i64 - 1;
            }
            stacks.id.push(stack_id((sum.stack.0, named)));
            stacks.node.push(node_numbers[named as usize]);
            let mut views = tree.inner_views(trace, sum.stack, named, INNER_FRAMES);
            let mut own = file.own.place_of_inner(&views);
            if own.is_none() {
                views = tree.views(trace, sum.stack, named);
                own = file.own.place(&views);
            }
            let frame = own.and_then(|place| views.get(place));
            stacks.own.push(own.map_or(-1, |place| place as i64));
            stacks.own_file.push(frames.name(frame.and_then(|frame| frame.file).unwrap_or_default()));
            stacks.own_line.push(frame.and_then(|frame| frame.line).unwrap_or_default());
            let (bytes, count) = peaks.get(named as usize).copied().unwrap_or_default();
            stacks.peak_bytes.push(bytes);
            stacks.peak_count.push(count);
        }
        told.rows.push((stack_numbers[named as usize], *sum));
    }
    told.rows.sort_unstable_by_key(|(stack, sum)| (*stack, sum.born, sum.freed));
    Ok(told)
}

/// Bytes and blocks at the peak by culled stack.
fn peaks(context: &Context<'_>, file: &TraceFile) -> Result<Vec<(u64, u64)>> {
    let words = FilterArguments::default();
    let read = file.filter(&words)?;
    let (_, ranking) = file.rank(&words, &read, GroupBy::Stacks, Metric::PeakBytes, context.cancel)?;
    let mut peaks = vec![(0, 0); file.explorer.tree().count()];
    for group in &ranking.groups {
        if let Some(peak) = file.explorer.stack_key(group).and_then(|key| peaks.get_mut(key.1 as usize)) {
            *peak = (group.amounts.peak_bytes, group.amounts.peak_count);
        }
    }
    Ok(peaks)
}

/// Columns of rows that are sorted by stack and span; equal ones are added up.
fn columns_of(rows: &[(i64, SpanSum)], spans: usize) -> SpanColumns {
    let mut columns = SpanColumns::default();
    let mut last: Option<(i64, u16, u16)> = None;
    for (stack, sum) in rows {
        let key = (*stack, sum.born, sum.freed);
        let amounts = [sum.count, sum.bytes, sum.realloc_count, sum.temporary_count, sum.temporary_bytes];
        let into = [
            &mut columns.count,
            &mut columns.bytes,
            &mut columns.realloc_count,
            &mut columns.temporary_count,
            &mut columns.temporary_bytes,
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
