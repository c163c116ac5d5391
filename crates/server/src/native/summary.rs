//! Contents of one snapshot, with ages.

use heapr_filters::FilterArguments;
use heapr_query::{Line, LineOrder};
use serde::{Deserialize, Serialize};

use super::rows::{LinesBy, line_id, matches, own_place};
use super::series::{Read, number};
use crate::choices::text_of;
use crate::error::Result;
use crate::json::{LiveBlocks, TotalBlocks};
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
            blocks: row.amount.into(),
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
        total: whole.amount.into(),
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
    #[serde(flatten)]
    blocks: LiveBlocks,
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
    #[serde(flatten)]
    total: TotalBlocks,
    oldest_ns: u64,
    youngest_ns: u64,
    mean_age_ns: u64,
    warnings: Vec<String>,
    row_count: usize,
    offset: usize,
    rows: Vec<NativeRow>,
}
