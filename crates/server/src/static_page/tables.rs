//! Tables of a trace in a page, in as few orders as have all rows.

use serde_json::{Value, json};

use super::recorder::Recorder;
use crate::error::Result;

/// Tables of a trace: grouping and sort key.
const ORDERS: [(&str, &str); 5] =
    [("stacks", "so"), ("stacks", "peak"), ("images", "so"), ("stacks", "stc"), ("frames", "so")];

/// A request with more fields.
pub(super) fn with(mut body: Value, more: Value) -> Value {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

/// Records the tables of stacks, frames, images and functions of a request: in one order if that
/// has all rows, which the page sorts itself.
pub(super) fn tables(recorder: &mut Recorder<'_>, of: &dyn Fn(Value) -> Value) -> Result<()> {
    let mut whole: Vec<&str> = Vec::new();
    for (by, sort) in ORDERS.into_iter().chain([("functions", "so"), ("functions", "peak")]) {
        if whole.contains(&by) {
            continue;
        }
        let (path, body) = match by {
            "functions" => ("functions", json!({"sort": sort})),
            by => ("report", json!({"by": by, "sort": sort, "frames_max": 12})),
        };
        if recorder.has_all_rows(path, of(body))? {
            whole.push(by);
        }
    }
    Ok(())
}
