//! Comparison of two or more native snapshots.

use heapr_filters::FilterArguments;
use heapr_query::{Change, ChangeOrder, Line, LineChange, SteadyGrowth, ordered};
use serde::{Deserialize, Serialize};

use super::rows::{LinesBy, TakenSnapshot, amounts, line_id, matches, own_place, taken};
use super::series::{Chosen, Read, number};
use crate::choices::text_of;
use crate::error::{Error, Result};
use crate::json::is_counted;
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json, read_with};

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotName {
    file: usize,
    number: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffRequest {
    #[serde(default)]
    of: Vec<SnapshotName>,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    by: LinesBy,
    #[serde(default)]
    sort: DiffOrder,
    #[serde(default)]
    descending: Descending,
}

/// Order of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum DiffOrder {
    #[default]
    Change,
    Growth,
    New,
    Gone,
    /// By steady growth over all snapshots.
    Steady,
}

impl From<DiffOrder> for ChangeOrder {
    fn from(order: DiffOrder) -> Self {
        match order {
            DiffOrder::Change => Self::Change,
            DiffOrder::Growth | DiffOrder::Steady => Self::Growth,
            DiffOrder::New => Self::New,
            DiffOrder::Gone => Self::Gone,
        }
    }
}

/// Largest number of snapshots in a comparison.
const SNAPSHOTS_MAX: usize = 64;

pub(super) fn diff(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (DiffRequest, PageRows) = read_with(body)?;
    let chosen = chosen(context, &request.of)?;
    let read = Read::new(context, &chosen, &request.filter, request.by.into())?;
    let series = &read.series;
    let (Some(whole), 2..) = (series.whole_change(), series.taken.len()) else {
        return Err(Error::bad("of", "the snapshots are one and the same: name another"));
    };
    let text = page.text();
    let mut lines: Vec<LineChange<'_>> = series
        .changes(request.sort.into())
        .into_iter()
        .filter(|changed| matches(changed.line, &text))
        .collect();
    if request.sort == DiffOrder::Steady {
        let rank = |changed: &LineChange<'_>| SteadyGrowth::of(&amounts(changed.line).0).rank();
        lines.sort_by_cached_key(|changed| std::cmp::Reverse(ordered(rank(changed))));
    }
    let row = |changed: &LineChange<'_>| {
        let (block_bytes, block_count) = amounts(changed.line);
        NativeDiffRow {
            id: line_id(&read, changed.line),
            own: own_place(&read, changed.line),
            frames: changed.line.frames.clone(),
            state: changed.change.state(),
            change: NativeChange::from(&changed.change),
            steadiness: SteadyGrowth::of(&block_bytes).steadiness,
            block_bytes,
            block_count,
            block_bytes_plus_minus: halves_of_bytes(changed.line),
        }
    };
    json(&NativeDiff {
        schema: "heapr.view.native.diff/1",
        command: diff_command(&read, request.sort),
        snapshots: taken(&*context.files.host, &read),
        is_one_recording: series.is_one_recording(),
        warnings: read.warnings(),
        row_count: lines.len(),
        offset: page.offset,
        rows: page.of(&lines, request.descending).map(row).collect(),
        change: NativeChange::from(&whole),
    })
}

/// Chosen snapshots, grouped by file.
fn chosen(context: &Context<'_>, of: &[SnapshotName]) -> Result<Vec<Chosen>> {
    if !(2..=SNAPSHOTS_MAX).contains(&of.len()) {
        return Err(Error::bad("of", format!("{} snapshots: 2 to {SNAPSHOTS_MAX} are compared", of.len())));
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    for name in of {
        let number = number(context, name.file, name.number)?;
        let known = chosen.iter_mut().find(|(file, _)| *file == name.file);
        match known {
            Some((_, numbers)) if numbers.contains(&number) => {}
            Some((_, numbers)) => numbers.push(number),
            None => chosen.push((name.file, vec![number])),
        }
    }
    Ok(chosen)
}

/// The command with the same answer, which exists for two snapshots only.
fn diff_command(read: &Read, sort: DiffOrder) -> Option<String> {
    let [before, after] = read.series.taken.as_slice() else { return None };
    // The command names files in the order of their snapshots. Another order needs more than two
    // snapshots.
    if before.file > after.file || sort == DiffOrder::Steady {
        return None;
    }
    let options = [
        "--sort".to_owned(),
        text_of(&sort),
        "--snapshots".to_owned(),
        before.snapshot.number.to_string(),
        after.snapshot.number.to_string(),
    ];
    Some(read.command("diff", &options))
}

/// A change; new and gone blocks are known within one recording only.
#[derive(Debug, Serialize)]
struct NativeChange {
    before_bytes: u64,
    after_bytes: u64,
    bytes_delta: i64,
    count_delta: i64,
    new_bytes: Option<u64>,
    new_count: Option<u64>,
    gone_bytes: Option<u64>,
    gone_count: Option<u64>,
    #[serde(flatten)]
    intervals: ChangeIntervals,
}

/// Halves of the 95 % intervals of a change's amounts, if they are estimates.
#[derive(Debug, Serialize)]
struct ChangeIntervals {
    #[serde(skip_serializing_if = "is_counted")]
    before_bytes_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    after_bytes_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    bytes_delta_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    count_delta_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    new_bytes_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    new_count_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    gone_bytes_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    gone_count_plus_minus: u64,
}

impl From<&Change> for ChangeIntervals {
    fn from(change: &Change) -> Self {
        let (new, gone) = change.turnover.unwrap_or_default();
        Self {
            before_bytes_plus_minus: change.before.bytes_plus_minus(),
            after_bytes_plus_minus: change.after.bytes_plus_minus(),
            bytes_delta_plus_minus: change.bytes_plus_minus(),
            count_delta_plus_minus: change.blocks_plus_minus(),
            new_bytes_plus_minus: new.bytes_plus_minus(),
            new_count_plus_minus: new.count_plus_minus(),
            gone_bytes_plus_minus: gone.bytes_plus_minus(),
            gone_count_plus_minus: gone.count_plus_minus(),
        }
    }
}

impl From<&Change> for NativeChange {
    fn from(change: &Change) -> Self {
        let (new, gone) = change.turnover.unzip();
        Self {
            before_bytes: change.before.bytes.value,
            after_bytes: change.after.bytes.value,
            bytes_delta: i64::try_from(change.bytes()).unwrap_or(i64::MAX),
            count_delta: i64::try_from(change.blocks()).unwrap_or(i64::MAX),
            new_bytes: new.map(|new| new.bytes.value),
            new_count: new.map(|new| new.count.value),
            gone_bytes: gone.map(|gone| gone.bytes.value),
            gone_count: gone.map(|gone| gone.count.value),
            intervals: ChangeIntervals::from(change),
        }
    }
}

/// A line of a comparison.
#[derive(Debug, Serialize)]
struct NativeDiffRow {
    id: Option<String>,
    /// Index of the innermost frame of user code.
    own: Option<usize>,
    /// Frames as `module!symbol`, innermost first.
    frames: Vec<String>,
    state: &'static str,
    #[serde(flatten)]
    change: NativeChange,
    /// Steadiness of the growth in bytes over the snapshots, 0 to 1.
    steadiness: f64,
    /// Bytes in each snapshot.
    block_bytes: Vec<u64>,
    /// Number of blocks in each snapshot.
    block_count: Vec<u64>,
    /// Halves of the 95 % intervals of `block_bytes`, if they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    block_bytes_plus_minus: Vec<u64>,
}

fn halves_of_bytes(line: &Line) -> Vec<u64> {
    let halves: Vec<u64> = line.rows.iter().map(|row| row.amount.bytes_plus_minus()).collect();
    if halves.iter().all(|&half| half == 0) { Vec::new() } else { halves }
}

/// Comparison of two or more snapshots.
#[derive(Debug, Serialize)]
struct NativeDiff {
    schema: &'static str,
    command: Option<String>,
    snapshots: Vec<TakenSnapshot>,
    is_one_recording: bool,
    warnings: Vec<String>,
    row_count: usize,
    offset: usize,
    rows: Vec<NativeDiffRow>,
    #[serde(flatten)]
    change: NativeChange,
}
