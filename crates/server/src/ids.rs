//! The ids of answers: a letter and numbers; who sends one back that is none gets an error.

use heapr_explore::{Explorer, FrameNumber};
use heapr_query::{FramePattern, Metric};

use crate::error::{Error, Result};

fn numbers(id: &str, letter: char) -> Option<(u32, u32)> {
    let (first, second) = id.strip_prefix(letter)?.split_once('.')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

fn not_found(what: &'static str, name: &str) -> Error {
    Error::NotFound { what, name: name.to_owned() }
}

/// Of a stack.
pub(crate) fn stack_id(key: (u32, u32)) -> String {
    format!("s{}.{}", key.0, key.1)
}

pub(crate) fn stack_key(id: &str) -> Result<(u32, u32)> {
    numbers(id, 's').ok_or_else(|| not_found("stack", id))
}

/// Of a node of a flame graph.
pub(crate) fn node_id(key: (u32, u32)) -> String {
    format!("n{}.{}", key.0, key.1)
}

pub(crate) fn node_key(id: &str) -> Result<(u32, u32)> {
    numbers(id, 'n').ok_or_else(|| not_found("node", id))
}

/// Of a frame.
pub(crate) fn frame_id(frame: FrameNumber) -> String {
    format!("f{}", frame.0)
}

/// A frame by its id or by a pattern, whose first match it is.
pub(crate) fn frame(explorer: &Explorer, text: &str) -> Result<FrameNumber> {
    let by_id = text.strip_prefix('f').and_then(|number| number.parse().ok()).map(FrameNumber);
    if let Some(frame) = by_id.filter(|&frame| explorer.frame(frame).is_some()) {
        return Ok(frame);
    }
    let pattern = FramePattern::parse(text)?;
    explorer.frame_matching(&pattern).ok_or_else(|| not_found("frame", text))
}

/// A sort key by its name.
pub(crate) fn sort_key(name: &str) -> Result<Metric> {
    let bad = || Error::bad("sort", format!("{name:?} is no sort key: {}", Metric::key_list()));
    Metric::of_key(name).ok_or_else(bad)
}

/// Of temporary allocations there are bytes, too, where nothing else is counted.
pub(crate) const TEMPORARY_BYTES: &str = "temporary_bytes";

/// What a flame graph is of; whether it is of temporary allocations alone.
pub(crate) fn flame_value(name: &str) -> Result<(Metric, bool)> {
    match Metric::of_name(name) {
        Some(Metric::TemporaryCount) => Ok((Metric::TotalCount, true)),
        None if name == TEMPORARY_BYTES => Ok((Metric::TotalBytes, true)),
        Some(metric) => Ok((metric, false)),
        None => {
            let names: Vec<&str> = Metric::all().map(Metric::name).collect();
            Err(Error::bad(
                "value",
                format!("{name:?} is no value: it is one of {}, {TEMPORARY_BYTES}", names.join(", ")),
            ))
        }
    }
}
