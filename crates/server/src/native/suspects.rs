//! What grows steadily over three or more snapshots.

use heapr_query::{Suspect, SuspectOrder, is_at_end};
use serde::Deserialize;
use serde_json::json;

use super::rows::{Page, amounts, group_by, line_id, matches, taken_json};
use super::series::{Chosen, Read};
use crate::api::{Answer, Context, json, read};
use crate::error::{Error, Result};
use crate::filter_words::FilterWords;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SuspectsRequest {
    files: Vec<usize>,
    numbers: Option<Vec<u32>>,
    filter: FilterWords,
    by: String,
    min_growth_bytes: u64,
    sort: String,
    offset: usize,
    limit: usize,
    r#match: String,
}

impl Default for SuspectsRequest {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            numbers: None,
            filter: FilterWords::default(),
            by: "stacks".to_owned(),
            min_growth_bytes: 1024,
            sort: "oldest".to_owned(),
            offset: 0,
            limit: 200,
            r#match: String::new(),
        }
    }
}

pub(super) fn suspects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: SuspectsRequest = read(body)?;
    let order = match request.sort.as_str() {
        "oldest" => SuspectOrder::Oldest,
        "rate" => SuspectOrder::Rate,
        "growth" => SuspectOrder::Growth,
        sort => return Err(Error::bad("sort", format!("{sort:?} is none of oldest, rate, growth"))),
    };
    let mut chosen: Vec<Chosen> = Vec::new();
    for &file in &request.files {
        if chosen.iter().any(|(known, _)| *known == file) {
            return Err(Error::bad("files", format!("file {file} is named twice")));
        }
        let trace = context.files.trace(file)?;
        let is_chosen = |snapshot: &&heapr_trace::Snapshot| match &request.numbers {
            Some(numbers) => numbers.contains(&snapshot.number),
            None => !is_at_end(snapshot.trigger),
        };
        let numbers = trace.trace().snapshots().iter().filter(is_chosen).map(|snapshot| snapshot.number);
        chosen.push((file, numbers.collect()));
    }
    let count: usize = chosen.iter().map(|(_, numbers)| numbers.len()).sum();
    if count < 3 {
        return Err(Error::bad(
            "files",
            format!(
                "growth is seen in three or more snapshots, and there are {count}: heapr run --snapshot-every takes them"
            ),
        ));
    }
    let read = Read::new(context, &chosen, &request.filter, group_by(&request.by)?)?;
    let series = &read.series;
    let text = request.r#match.to_lowercase();
    let found: Vec<Suspect<'_>> = series
        .suspects(request.min_growth_bytes, order)
        .into_iter()
        .filter(|suspect| matches(suspect.line, &text))
        .collect();
    let page = Page { offset: request.offset, limit: request.limit, descending: true };
    let rows = page.of(&found, |suspect| {
        let (bytes, blocks) = amounts(suspect.line);
        json!({
            "id": line_id(&read, suspect.line),
            "frames": suspect.line.frames,
            "sureness": suspect.sureness.name(),
            "bytes_per_hour": suspect.trend.per_hour,
            "growth_bytes": i64::try_from(suspect.trend.growth).unwrap_or(i64::MAX),
            "rising_share": suspect.trend.rising_share,
            "chance": suspect.trend.chance,
            "kept_share": suspect.kept_share,
            "oldest_ns": suspect.last.oldest_age_ns,
            "bytes": bytes,
            "blocks": blocks,
        })
    });
    let mut options = vec![
        "--sort".to_owned(),
        request.sort.clone(),
        "--min-growth".to_owned(),
        request.min_growth_bytes.to_string(),
    ];
    if let Some(numbers) = &request.numbers {
        options.push("--snapshots".to_owned());
        options.extend(numbers.iter().map(u32::to_string));
    }
    json(&json!({
        "schema": "heapr.view.native.suspects/1",
        "command": read.command("suspects", &options),
        "snapshots": taken_json(&*context.files.host, &read, series),
        "warnings": read.warnings(),
        "row_count": found.len(),
        "offset": request.offset,
        "rows": rows,
    }))
}
