//! The ids of answers: a letter and numbers; who sends one back that is none gets an error.

use heapr_explore::{Explorer, FrameNumber, Value};
use heapr_query::{FramePattern, SortKey};

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
pub(crate) fn sort_key(name: &str) -> Result<SortKey> {
    SortKey::parse(name).ok_or_else(|| {
        let names: Vec<&str> = SortKey::ALL.iter().map(|&(name, _)| name).collect();
        Error::bad("sort", format!("{name:?} is no sort key: {}", names.join(", ")))
    })
}

/// What a flame graph is of; whether it is of temporary allocations alone; the sort key that says the same.
pub(crate) fn flame_value(name: &str) -> Result<(Value, bool, &'static str)> {
    Ok(match name {
        "outstanding_bytes" => (Value::OutstandingBytes, false, "so"),
        "outstanding_count" => (Value::OutstandingCount, false, "soc"),
        "total_bytes" => (Value::TotalBytes, false, "st"),
        "total_count" => (Value::TotalCount, false, "stc"),
        "peak_bytes" => (Value::PeakBytes, false, "peak"),
        "peak_count" => (Value::PeakCount, false, "peak"),
        "temporary_bytes" => (Value::TotalBytes, true, "st"),
        "temporary_count" => (Value::TotalCount, true, "stc"),
        "realloc_count" => (Value::ReallocCount, false, "src"),
        _ => {
            return Err(Error::bad(
                "value",
                format!(
                    "{name:?} is no value: it is {{outstanding,total,peak,temporary}}_{{bytes,count}} or realloc_count"
                ),
            ));
        }
    })
}
