//! A whole stack, with source lines if the source exists.

use heapr_filters::FilterArguments;
use heapr_query::FrameView;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::source_lines::{SourceFiles, SourceJson};
use crate::error::{Error, Result};
use crate::ids::{frame_id, stack_key};
use crate::json::FrameJson;
use crate::request::{Answer, Context, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StackRequest {
    file: usize,
    id: String,
    #[serde(default)]
    /// Filter that selects the frames shown; the id determines which of them culling leaves.
    filter: FilterArguments,
    /// Number of source lines before and behind each frame's line; 0: no source.
    #[serde(default = "three")]
    source_lines: u32,
}

fn three() -> u32 {
    3
}

#[derive(Serialize)]
struct StackFrameJson {
    id: String,
    culled: bool,
    #[serde(flatten)]
    frame: FrameJson,
    source: Option<SourceJson>,
}

pub(super) fn stack(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: StackRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let key = stack_key(&request.id)?;
    file.wait_for_names(context.cancel)?;
    let (frames, removed) = file
        .explorer
        .stack_frames(key)
        .ok_or_else(|| Error::NotFound { what: "stack", name: request.id.clone() })?;
    let views: Vec<FrameView<'_>> = frames.iter().map(|(_, view)| *view).collect();
    let own = file.own.place(&views);
    let around = request.source_lines.min(50);
    let mut sources = SourceFiles::new(file.modified_unix_ns);
    let frames: Vec<StackFrameJson> = frames
        .iter()
        .enumerate()
        .map(|(number, (frame, view))| StackFrameJson {
            id: frame_id(*frame),
            culled: number < removed,
            frame: view.into(),
            source: view
                .file
                .zip(view.line)
                .filter(|_| around != 0)
                .and_then(|(path, line)| sources.lines(path, line, around)),
        })
        .collect();
    crate::request::json(&json!({ "schema": "heapr.view.stack/1", "own": own, "frames": frames }))
}
