//! Single live blocks as examples, with age and stack.

use heapr_explore::Found;
use heapr_filters::FilterArguments;
use heapr_query::{Filter, FrameView, Moment, Span};
use heapr_trace::StackIndex;
use serde::{Deserialize, Serialize};

use super::report::OwnJson;
use crate::error::{Error, Result};
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
    let answer = |blocks: Vec<ExampleJson>| json(&ExamplesAnswer { schema: "heapr.view.examples/1", blocks });
    if file.explorer.table().is_none() {
        return answer(Vec::new());
    }
    let duration_ns = file.trace().duration_ns();
    let end_ns = match read.filter.at {
        Some(Moment::At { time_ns }) => time_ns,
        // The peak of all that the filter chooses, as in reports.
        Some(Moment::Peak) => {
            file.explorer.select(&read.filter, Found::default(), &is_cancelled)?.totals.peak_time_ns
        }
        Some(Moment::Snapshot { .. }) => {
            return Err(Error::bad("filter.snapshot", "examples are of a moment, and not of a snapshot"));
        }
        None => read.filter.range.map_or(duration_ns, |range| range.to),
    };
    let end_ns = end_ns.min(duration_ns);
    // What is live at a moment is what is outstanding at the end of the time until it.
    let range = match read.filter.at {
        Some(_) => {
            let from = read.filter.range.map_or(0, |range| range.from);
            Some(Span { from, to: end_ns.max(from).saturating_add(1) })
        }
        None => read.filter.range,
    };
    let filter = Filter { at: None, range, ..read.filter.clone() };
    let is_of_living = read.filter.at.is_some();
    let explorer = &file.explorer;
    let cull = |stack: StackIndex| explorer.culled_stack(stack, &read.cull);
    let blocks = explorer.example_blocks(&filter, is_of_living, &is_cancelled)?;
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
    answer(blocks.iter().map(example).collect())
}
