//! A snapshot as a treemap: images, in them the program's own functions, in them stacks. A stack
//! without an own function counts for its innermost frame.

use std::collections::BTreeMap;

use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, Line, module_of_name};
use serde::Deserialize;

use super::rows::{line_id, own_place};
use super::series::{Read, number};
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json, read};
use crate::treemap_columns::{NODES_MAX, TreemapColumns};

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TreemapRequest {
    file: usize,
    number: Option<u32>,
    filter: FilterArguments,
    value: String,
    least_share: f64,
    nodes_max: usize,
}

impl Default for TreemapRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            number: None,
            filter: FilterArguments::default(),
            value: "bytes".to_owned(),
            least_share: 0.001,
            nodes_max: 2_000,
        }
    }
}

/// Names whose lines take so much.
type Parts<'a, T> = BTreeMap<&'a str, (u64, T)>;

/// Stacks of a function: the value, the place of the own frame, the stack.
type Stacks<'a> = Vec<(u64, usize, &'a Line)>;

pub(super) fn treemap(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: TreemapRequest = read(body)?;
    let is_bytes = match request.value.as_str() {
        "bytes" => true,
        "blocks" => false,
        value => return Err(Error::bad("value", format!("{value:?} is neither bytes nor blocks"))),
    };
    let shown = number(context, request.file, request.number)?;
    let read = Read::new(context, &[(request.file, vec![shown])], &request.filter, GroupBy::Stacks)?;
    let value_of = |line: &Line| {
        let amount = line.rows[0].amount;
        if is_bytes { amount.block_bytes } else { amount.block_count }
    };
    let mut images: Parts<'_, Parts<'_, Stacks<'_>>> = BTreeMap::new();
    for line in &read.series.lines {
        let own = own_place(&read, line).unwrap_or(0);
        let frame = line.frames.get(own).map_or("(no stack)", String::as_str);
        let image = module_of_name(frame);
        let value = value_of(line);
        let (image_value, frames) = images.entry(image).or_default();
        *image_value = image_value.saturating_add(value);
        let (frame_value, lines) = frames.entry(frame).or_default();
        *frame_value = frame_value.saturating_add(value);
        lines.push((value, own, line));
    }
    let whole = read.series.wholes[0].amount;
    let total = if is_bytes { whole.block_bytes } else { whole.block_count };
    let share = if request.least_share.is_finite() { request.least_share.clamp(0.0, 1.0) } else { 0.0 };
    let least = ((total as f64 * share) as u64).max(1);
    let mut columns: TreemapColumns<String> = TreemapColumns::new(request.nodes_max.clamp(1, NODES_MAX));
    columns.push(None, None, format!("snapshot {shown}"), total, 0);
    for (image, (image_value, frames)) in greatest(images, least, |part| part.0) {
        let Some(image) = columns.push(None, Some(0), image.to_owned(), image_value, 0) else { break };
        for (frame, (frame_value, lines)) in greatest(frames, least, |part| part.0) {
            let Some(frame) = columns.push(None, Some(image), frame.to_owned(), frame_value, 0) else {
                break;
            };
            let mut lines: Vec<_> = lines.into_iter().filter(|(value, ..)| *value >= least).collect();
            lines.sort_by(|(one, _, one_line), (other, _, other_line)| {
                other.cmp(one).then_with(|| one_line.frames.cmp(&other_line.frames))
            });
            for (value, own, line) in lines {
                // What tells the stacks of a function apart is what it allocates through, or else
                // who called it.
                let told = if own > 0 { 0 } else { 1 };
                let name = line.frames.get(told).or(line.frames.first()).map_or("(no stack)", String::as_str);
                columns.push(line_id(&read, line), Some(frame), name.to_owned(), value, value);
            }
        }
    }
    let options = ["--snapshot".to_owned(), shown.to_string()];
    json(&columns.finish("heapr.view.native.treemap/1", read.command("summary", &options)))
}

/// The parts of at least `least`, the greatest first.
fn greatest<T>(parts: BTreeMap<&str, T>, least: u64, value: impl Fn(&T) -> u64) -> Vec<(&str, T)> {
    let mut parts: Vec<(&str, T)> = parts.into_iter().filter(|(_, part)| value(part) >= least).collect();
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(value(part)));
    parts
}
