//! Contents of one snapshot, with ages.

use heapr_filters::FilterArguments;
use heapr_query::{Line, LineOrder};
use serde::{Deserialize, Serialize};

use super::rows::{LinesBy, LiveIntervals, line_id, matches, own_place};
use super::series::{Read, number};
use crate::choices::text_of;
use crate::error::Result;
use crate::json::is_counted;
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json, read_with};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SummaryRequest {
    file: usize,
    number: Option<u32>,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    by: LinesBy,
    #[serde(default)]
    sort: LineOrder,
    #[serde(default)]
    descending: Descending,
}

pub(super) fn summary(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (SummaryRequest, PageRows) = read_with(body)?;
    let shown = number(context, request.file, request.number)?;
    let read = Read::new(context, &[(request.file, vec![shown])], &request.filter, request.by.into())?;
    let text = page.text();
    let lines: Vec<&Line> =
        read.series.sorted(request.sort).into_iter().filter(|line| matches(line, &text)).collect();
    let row = |line: &&Line| {
        let row = &line.rows[0];
        NativeRow {
            id: line_id(&read, line),
            own: own_place(&read, line),
            frames: line.frames.clone(),
            block_bytes: row.amount.block_bytes,
            block_count: row.amount.block_count,
            intervals: LiveIntervals::of(&row.amount),
            youngest_ns: row.youngest_age_ns,
            mean_age_ns: row.mean_age_ns(),
            oldest_ns: row.oldest_age_ns,
        }
    };
    let whole = &read.series.wholes[0];
    let options = ["--sort", &text_of(&request.sort), "--snapshot", &shown.to_string()].map(str::to_owned);
    json(&NativeSummary {
        schema: "heapr.view.native.summary/1",
        command: read.command("summary", &options),
        shown,
        total_bytes: whole.amount.block_bytes,
        total_count: whole.amount.block_count,
        total_bytes_plus_minus: whole.amount.bytes_plus_minus(),
        total_count_plus_minus: whole.amount.count_plus_minus(),
        oldest_ns: whole.oldest_age_ns,
        youngest_ns: whole.youngest_age_ns,
        mean_age_ns: whole.mean_age_ns(),
        warnings: read.warnings(),
        row_count: lines.len(),
        offset: page.offset,
        rows: page.of(&lines, request.descending).map(row).collect(),
    })
}

/// A line of a snapshot.
#[derive(Debug, Serialize)]
struct NativeRow {
    id: Option<String>,
    /// Index of the innermost frame of user code.
    own: Option<usize>,
    /// Frames as `module!symbol`, innermost first.
    frames: Vec<String>,
    block_bytes: u64,
    block_count: u64,
    #[serde(flatten)]
    intervals: LiveIntervals,
    youngest_ns: u64,
    mean_age_ns: u64,
    oldest_ns: u64,
}

/// Contents of one snapshot.
#[derive(Debug, Serialize)]
struct NativeSummary {
    schema: &'static str,
    command: String,
    /// Number of the snapshot.
    shown: u32,
    total_bytes: u64,
    total_count: u64,
    /// Halves of the 95 % intervals of both; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    total_bytes_plus_minus: u64,
    #[serde(skip_serializing_if = "is_counted")]
    total_count_plus_minus: u64,
    oldest_ns: u64,
    youngest_ns: u64,
    mean_age_ns: u64,
    warnings: Vec<String>,
    row_count: usize,
    offset: usize,
    rows: Vec<NativeRow>,
}
