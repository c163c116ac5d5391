//! Contents of one snapshot, with ages.

use heapr_filters::FilterArguments;
use heapr_query::{Line, LineOrder};
use serde::{Deserialize, Serialize};

use super::rows::{LiveIntervals, Page, group_by, line_id, matches, own_place};
use super::series::{Read, number};
use crate::error::{Error, Result};
use crate::json::is_counted;
use crate::request::{Answer, Context, json, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SummaryRequest {
    file: usize,
    number: Option<u32>,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default = "crate::request::stacks")]
    by: String,
    #[serde(default = "bytes")]
    sort: String,
    #[serde(default = "crate::request::yes")]
    descending: bool,
    #[serde(default)]
    offset: usize,
    #[serde(default = "crate::request::number::<200>")]
    limit: usize,
    #[serde(default)]
    r#match: String,
}

fn bytes() -> String {
    "bytes".to_owned()
}

pub(super) fn summary(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: SummaryRequest = read(body)?;
    let order = match request.sort.as_str() {
        "bytes" => LineOrder::Bytes,
        "count" => LineOrder::Count,
        "oldest" => LineOrder::Oldest,
        "youngest" => LineOrder::Youngest,
        sort => {
            return Err(Error::bad("sort", format!("{sort:?} is none of bytes, count, oldest, youngest")));
        }
    };
    let shown = number(context, request.file, request.number)?;
    let read = Read::new(context, &[(request.file, vec![shown])], &request.filter, group_by(&request.by)?)?;
    let text = request.r#match.to_lowercase();
    let lines: Vec<&Line> =
        read.series.sorted(order).into_iter().filter(|line| matches(line, &text)).collect();
    let page = Page { offset: request.offset, limit: request.limit, descending: request.descending };
    let rows = page.of(&lines, |line| {
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
    });
    let whole = &read.series.wholes[0];
    let options = ["--sort", &request.sort, "--snapshot", &shown.to_string()].map(str::to_owned);
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
        offset: request.offset,
        rows,
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
