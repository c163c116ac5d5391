//! A snapshot as a treemap: images contain functions of user code, and these contain stacks. A
//! stack without user code counts for its innermost frame.

use std::collections::BTreeMap;

use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, Line, module_of_name};
use heapr_table::SortRows as _;
use heapr_trace::BlockEstimate;
use serde::Deserialize;

use super::rows::{line_id, own_place};
use super::series::{Read, number};
use crate::error::Result;
use crate::json::NodeIntervals;
use crate::request::{Answer, Context, json, read};
use crate::treemap_columns::{NODES_MAX, TreemapColumns};

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TreemapRequest {
    file: usize,
    number: Option<u32>,
    filter: FilterArguments,
    value: Unit,
    least_share: f64,
    nodes_max: usize,
}

impl Default for TreemapRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            number: None,
            filter: FilterArguments::default(),
            value: Unit::Bytes,
            least_share: 0.001,
            nodes_max: 2_000,
        }
    }
}

/// Unit of the areas: bytes or blocks.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Bytes,
    Blocks,
}

impl Unit {
    fn of(self, amount: &BlockEstimate) -> u64 {
        match self {
            Self::Bytes => amount.bytes.value,
            Self::Blocks => amount.count.value,
        }
    }

    fn plus_minus(self, amount: &BlockEstimate) -> u64 {
        match self {
            Self::Bytes => amount.bytes_plus_minus(),
            Self::Blocks => amount.count_plus_minus(),
        }
    }
}

/// Areas within areas, and the amount of each that its inner areas do not cover.
struct Areas {
    unit: Unit,
    columns: TreemapColumns<String>,
    amounts: Vec<BlockEstimate>,
    left_out: Vec<BlockEstimate>,
}

impl Areas {
    /// Adds an area; returns its number, or `None` if the treemap is full.
    fn push(&mut self, parent: Option<usize>, name: &str, amount: BlockEstimate) -> Option<usize> {
        self.push_area(None, parent, name, amount, 0)
    }

    /// Adds an area without inner areas.
    fn push_stack(&mut self, id: Option<String>, parent: usize, name: &str, amount: BlockEstimate) {
        self.push_area(id, Some(parent), name, amount, self.unit.of(&amount));
    }

    fn push_area(
        &mut self,
        id: Option<String>,
        parent: Option<usize>,
        name: &str,
        amount: BlockEstimate,
        own: u64,
    ) -> Option<usize> {
        let number = self.columns.push(id, parent, name.to_owned(), self.unit.of(&amount), own)?;
        self.amounts.push(amount);
        self.left_out.push(if own > 0 { BlockEstimate::default() } else { amount });
        if let Some(left_out) = parent.and_then(|parent| self.left_out.get_mut(parent)) {
            *left_out = left_out.without(amount);
        }
        Some(number)
    }

    fn finish(self) -> TreemapColumns<String> {
        let Self { unit, mut columns, amounts, left_out } = self;
        let halves =
            |amounts: &[BlockEstimate]| amounts.iter().map(|amount| unit.plus_minus(amount)).collect();
        let (value_plus_minus, left_out_plus_minus): (Vec<u64>, Vec<u64>) =
            (halves(&amounts), halves(&left_out));
        let own_plus_minus = columns.own().iter().zip(&value_plus_minus);
        let own_plus_minus = own_plus_minus.map(|(&own, &half)| if own > 0 { half } else { 0 }).collect();
        columns.set_intervals(NodeIntervals { value_plus_minus, own_plus_minus, left_out_plus_minus });
        columns
    }
}

/// Amount and details by name.
type Parts<'a, T> = BTreeMap<&'a str, (BlockEstimate, T)>;

/// Stacks of a function: amount, index of the own frame, line.
type Stacks<'a> = Vec<(BlockEstimate, usize, &'a Line)>;

pub(super) fn treemap(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: TreemapRequest = read(body)?;
    let unit = request.value;
    let shown = number(context, request.file, request.number)?;
    let read = Read::new(context, &[(request.file, vec![shown])], &request.filter, GroupBy::Stacks)?;
    let mut images: Parts<'_, Parts<'_, Stacks<'_>>> = BTreeMap::new();
    for line in &read.series.lines {
        let own = own_place(&read, line).unwrap_or(0);
        let frame = line.frames.get(own).map_or("(no stack)", String::as_str);
        let image = module_of_name(frame);
        let amount = line.rows[0].amount;
        let (image_amount, frames) = images.entry(image).or_default();
        *image_amount += amount;
        let (frame_amount, lines) = frames.entry(frame).or_default();
        *frame_amount += amount;
        lines.push((amount, own, line));
    }
    let whole = read.series.wholes[0].amount;
    let share = if request.least_share.is_finite() { request.least_share.clamp(0.0, 1.0) } else { 0.0 };
    let least = ((unit.of(&whole) as f64 * share) as u64).max(1);
    let columns = TreemapColumns::new(request.nodes_max.clamp(1, NODES_MAX));
    let mut areas = Areas { unit, columns, amounts: Vec::new(), left_out: Vec::new() };
    areas.push(None, &format!("snapshot {shown}"), whole);
    for (image, (image_amount, frames)) in greatest(images, unit, least) {
        let Some(image) = areas.push(Some(0), image, image_amount) else { break };
        for (frame, (frame_amount, mut lines)) in greatest(frames, unit, least) {
            let Some(frame) = areas.push(Some(image), frame, frame_amount) else { break };
            lines.retain(|(amount, ..)| unit.of(amount) >= least);
            lines.sort_rows_by(|(one, _, one_line), (other, _, other_line)| {
                let by_amount = unit.of(other).cmp(&unit.of(one));
                by_amount.then_with(|| one_line.frames.cmp(&other_line.frames))
            });
            for (amount, own, line) in lines {
                // A stack is named by the frame that the function allocates through, or else by its
                // caller.
                let told = if own > 0 { 0 } else { 1 };
                let name = line.frames.get(told).or(line.frames.first()).map_or("(no stack)", String::as_str);
                areas.push_stack(line_id(&read, line), frame, name, amount);
            }
        }
    }
    let options = ["--snapshot".to_owned(), shown.to_string()];
    let columns = areas.finish();
    json(&columns.finish("heapr.view.native.treemap/1", Some(read.command("summary", &options))))
}

/// Parts of at least `least`, largest first.
fn greatest<T>(parts: Parts<'_, T>, unit: Unit, least: u64) -> Vec<(&str, (BlockEstimate, T))> {
    let mut parts: Vec<_> = parts.into_iter().filter(|(_, part)| unit.of(&part.0) >= least).collect();
    parts.sort_rows_by_key(|(_, part)| std::cmp::Reverse(unit.of(&part.0)));
    parts
}
