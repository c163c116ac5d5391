//! Ids in answers: a letter and numbers. Parsing refuses anything else.

use heapr_explore::{Explorer, FrameNumber};
use heapr_query::FramePattern;

use crate::error::{Error, Result};

fn numbers(id: &str, letter: char) -> Option<(u32, u32)> {
    let (first, second) = id.strip_prefix(letter)?.split_once('.')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

fn not_found(what: &'static str, name: &str) -> Error {
    Error::NotFound { what, name: name.to_owned() }
}

/// Id of a stack.
pub(crate) fn stack_id(key: (u32, u32)) -> String {
    format!("s{}.{}", key.0, key.1)
}

pub(crate) fn stack_key(id: &str) -> Result<(u32, u32)> {
    numbers(id, 's').ok_or_else(|| not_found("stack", id))
}

/// Id of a node of a flame graph.
pub(crate) fn node_id(key: (u32, u32)) -> String {
    format!("n{}.{}", key.0, key.1)
}

pub(crate) fn node_key(id: &str) -> Result<(u32, u32)> {
    numbers(id, 'n').ok_or_else(|| not_found("node", id))
}

/// Id of a frame.
pub(crate) fn frame_id(frame: FrameNumber) -> String {
    format!("f{}", frame.0)
}

/// The frame with an id, or the first one that matches a pattern.
pub(crate) fn frame(explorer: &Explorer, text: &str) -> Result<FrameNumber> {
    let by_id = text.strip_prefix('f').and_then(|number| number.parse().ok()).map(FrameNumber);
    if let Some(frame) = by_id.filter(|&frame| explorer.frame(frame).is_some()) {
        return Ok(frame);
    }
    let pattern = FramePattern::parse(text)?;
    explorer.frame_matching(&pattern).ok_or_else(|| not_found("frame", text))
}
