//! Steady growth over three or more snapshots.

use heapr_filters::FilterArguments;
use heapr_query::{SUSPECT_COLUMNS, Suspect, SuspectOrder, is_at_end};
use heapr_table::{Column, Table, row};
use serde::Deserialize;
use serde_json::json;

use super::rows::{LinesBy, line_id, matches, own_place, taken};
use super::series::{Chosen, Read};
use crate::choices::text_of;
use crate::error::{Error, Result};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json, read_with};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspectsRequest {
    #[serde(default)]
    files: Vec<usize>,
    numbers: Option<Vec<u32>>,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    by: LinesBy,
    #[serde(default = "min_growth")]
    min_growth_bytes: u64,
    #[serde(default)]
    sort: SuspectOrder,
}

fn min_growth() -> u64 {
    1024
}

pub(super) fn suspects(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (SuspectsRequest, PageRows) = read_with(body)?;
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
    let read = Read::new(context, &chosen, &request.filter, request.by.into())?;
    let series = &read.series;
    let text = page.text();
    let found: Vec<Suspect<'_>> = series
        .suspects(request.min_growth_bytes, request.sort)
        .into_iter()
        .filter(|suspect| matches(suspect.line, &text))
        .collect();
    let columns = [
        &SUSPECT_COLUMNS[..],
        &[Column::frames("frames", "Frames"), Column::detail("id"), Column::detail("own")],
    ]
    .concat();
    let row = |suspect: &Suspect<'_>| {
        [
            suspect.row(suspect.line.frames.clone()),
            row![line_id(&read, suspect.line), own_place(&read, suspect.line)],
        ]
        .concat()
    };
    let table = Table::of("", &columns, page.of(&found, Descending::default()).map(row));
    let mut options = vec![
        "--sort".to_owned(),
        text_of(&request.sort),
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
        "snapshots": taken(&*context.files.host, &read),
        "warnings": read.warnings(),
        "row_count": found.len(),
        "offset": page.offset,
        "rows": serde_json::to_value(table.rows_json()).unwrap_or_default(),
    }))
}
