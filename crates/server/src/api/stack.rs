//! A stack in full, with the lines of its source where it is there.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ids::{frame_id, stack_key};
use super::{Answer, Context, read};
use crate::error::{Error, Result};
use crate::filter_words::FilterWords;
use crate::json::FrameJson;
use crate::trace_file::TraceFile;

/// Largest source file that is looked into.
const SOURCE_BYTES_MAX: u64 = 16 << 20;
/// Longest line that is shown.
const LINE_CHARS_MAX: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StackRequest {
    file: usize,
    id: String,
    #[serde(default)]
    #[expect(dead_code, reason = "the id says what culling leaves; taken so that all requests look alike")]
    filter: FilterWords,
    #[serde(default = "three")]
    source_lines: u32,
}

fn three() -> u32 {
    3
}

#[derive(Serialize)]
struct SourceJson {
    first_line: u32,
    lines: Vec<String>,
    is_newer: bool,
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
    let file = context.files.trace(request.file)?;
    let key = stack_key(&request.id)?;
    file.wait_for_names(context.cancel)?;
    let (frames, removed) = file
        .explorer
        .stack_frames(key)
        .ok_or_else(|| Error::NotFound { what: "stack", name: request.id.clone() })?;
    let around = request.source_lines.min(50);
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
                .and_then(|(path, line)| source(&file, Path::new(path), line, around)),
        })
        .collect();
    super::json(&json!({ "schema": "heapr.view.stack/1", "frames": frames }))
}

/// Lines around one. The path comes from the trace's debug information: only a plain file by an absolute path is read, and
/// only by who has the token, as the user who runs heapr.
fn source(file: &TraceFile, path: &Path, line: u32, around: u32) -> Option<SourceJson> {
    if !path.is_absolute() {
        return None;
    }
    let metadata = std::fs::metadata(path)
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() <= SOURCE_BYTES_MAX)?;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(SOURCE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let first_line = line.saturating_sub(around).max(1);
    let lines: Vec<String> = text
        .lines()
        .skip(first_line as usize - 1)
        .take((line - first_line + around + 1) as usize)
        .map(|line| line.chars().take(LINE_CHARS_MAX).collect())
        .collect();
    let modified_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    // The line must be there, or the file is another one.
    (((line - first_line) as usize) < lines.len()).then_some(SourceJson {
        first_line,
        lines,
        is_newer: modified_ns > file.modified_unix_ns,
    })
}
