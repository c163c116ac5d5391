//! Single live blocks as examples, with age and stack.

use heapr_filters::FilterArguments;
use heapr_query::{Filter, FrameView, Moment, Span};
use heapr_trace::StackIndex;
use serde::{Deserialize, Serialize};

use super::report::OwnJson;
use crate::error::Result;
use crate::ids::stack_id;
use crate::json::FrameJson;
use crate::request::{Answer, Context, json, read};

/// Largest number of frames of a block's stack.
const FRAMES_MAX: usize = 40;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamplesRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
}

/// A live block.
#[derive(Serialize)]
struct ExampleJson {
    size_bytes: u64,
    /// Time of the allocation.
    born_ns: u64,
    /// Age at the moment of the filter, or at the end.
    age_ns: u64,
    /// Name of the allocating thread; null if unknown.
    thread: Option<String>,
    /// Id of the stack.
    stack: String,
    /// Innermost frames, after culling.
    frames: Vec<FrameJson>,
    own: Option<OwnJson>,
}

#[derive(Serialize)]
struct ExamplesAnswer {
    schema: &'static str,
    blocks: Vec<ExampleJson>,
}

pub(super) fn examples(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ExamplesRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?;
    file.wait_for_names(context.cancel)?;
    file.wait_for_events(context.cancel)?;
    let is_cancelled = || context.cancel.is_set();
    let end_ns = match read.filter.at {
        Some(Moment::At { time_ns }) => time_ns,
        Some(_) => file.explorer.live_then(&read.filter.pids, Moment::Peak, &is_cancelled)?.time_ns,
        None => read.filter.range.map_or(file.trace().duration_ns(), |range| range.to),
    };
    let end_ns = end_ns.min(file.trace().duration_ns());
    // What is live at a moment is what is outstanding at the end of the time until it.
    let range = match read.filter.at {
        Some(_) => Some(Span { from: 0, to: end_ns.saturating_add(1) }),
        None => read.filter.range,
    };
    let filter = Filter { at: None, range, ..read.filter.clone() };
    let explorer = &file.explorer;
    let cull = |stack: StackIndex| explorer.culled_stack(stack, &read.cull);
    let blocks = explorer.example_blocks(&filter, &is_cancelled)?;
    let example = |block: &heapr_explore::ExampleBlock| {
        let culled = cull(block.stack);
        let frames: Vec<FrameView<'_>> = explorer.tree().views(file.trace().as_ref(), block.stack, culled);
        let thread = file.trace().threads().get(block.thread.0 as usize);
        ExampleJson {
            size_bytes: block.size_bytes,
            born_ns: block.born_ns,
            age_ns: end_ns.saturating_sub(block.born_ns),
            thread: thread.map(|thread| format!("{} {}", thread.name, thread.tid).trim().to_owned()),
            stack: stack_id((block.stack.0, culled)),
            own: OwnJson::of(&file.own, &frames),
            frames: frames.iter().take(FRAMES_MAX).map(FrameJson::from).collect(),
        }
    };
    json(&ExamplesAnswer { schema: "heapr.view.examples/1", blocks: blocks.iter().map(example).collect() })
}
