//! Histograms, and allocation types relative to the range.

use heapr_explore::Found;
use heapr_filters::FilterArguments;
use heapr_query::AllocationType;
use heapr_trace::Amounts;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::command_line::report_command;
use crate::error::Result;
use crate::json::{HistogramJson, TypeBlocks};
use crate::request::{Answer, Context, read};
use crate::trace_file::TraceFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
}

pub(super) fn histograms(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: FilterRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?;
    let found = Found { threads: false, histograms: true };
    let selection = file.select(&request.filter, &read.filter, found, context.cancel)?;
    crate::request::json(&json!({
        "schema": "heapr.view.histograms/1",
        "command": report_command(&file, &["--histogram", "size", "--histogram", "lifetime"], &request.filter),
        "histograms": selection.histograms.iter().map(HistogramJson::from).collect::<Vec<_>>(),
    }))
}

#[derive(Serialize)]
struct TypeSum {
    r#type: &'static str,
    command: String,
    #[serde(flatten)]
    blocks: TypeBlocks,
}

pub(super) fn types(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: FilterRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    // Types relate to the range: a moment, or a single type, is left out of the filter.
    let words = FilterArguments { r#type: None, at: None, snapshot: None, ..request.filter };
    let base = file.filter(&words)?.filter;
    let all = [
        ("aifi", AllocationType::Aifi),
        ("aifo", AllocationType::Aifo),
        ("aofi", AllocationType::Aofi),
        ("aofo", AllocationType::Aofo),
    ];
    let known = sums(context, &file, &words, &base)?;
    let mut types = Vec::new();
    for (number, (name, kind)) in all.into_iter().enumerate() {
        // Without a range no allocation lies outside; temporary ones lie inside.
        if !kind.is_allocated_inside() && (base.range.is_none() || base.is_temporary_only) {
            continue;
        }
        let words = FilterArguments { r#type: Some(name.to_owned()), ..words.clone() };
        let amounts = match &known {
            Some(known) => {
                let (total_count, total_bytes) = known[number];
                Amounts { total_count, total_bytes, ..Amounts::default() }
            }
            None => {
                let filter = heapr_query::Filter { allocation_type: Some(kind), ..base.clone() };
                file.select(&words, &filter, Found::default(), context.cancel)?.totals.amounts()
            }
        };
        types.push(TypeSum {
            r#type: name,
            command: report_command(&file, &["--totals"], &words),
            blocks: amounts.allocated().into(),
        });
    }
    crate::request::json(&json!({ "schema": "heapr.view.types/1", "types": types }))
}

/// Number and bytes of all four types, from selections that the other panels need, too. An
/// allocation inside is outstanding at the range's end or was freed in the range. `None` without a
/// table of events, or for samples.
fn sums(
    context: &Context<'_>,
    file: &TraceFile,
    words: &FilterArguments,
    base: &heapr_query::Filter,
) -> Result<Option<[(u64, u64); 4]>> {
    file.wait_for_events(context.cancel)?;
    // The table lacks the variances of estimates.
    if file.explorer.table().is_none() || file.trace().is_sampled() {
        return Ok(None);
    }
    let inside = file.select(words, base, Found::default(), context.cancel)?.totals;
    let outstanding = (inside.outstanding_count, inside.outstanding_bytes);
    let freed = (inside.alloc_count - outstanding.0, inside.alloc_bytes.saturating_sub(outstanding.1));
    let [older_freed, older_kept] = match base.range {
        Some(_) => file.explorer.older(base, &|| context.cancel.is_set())?.unwrap_or_default(),
        None => Default::default(),
    };
    Ok(Some([freed, outstanding, older_freed, older_kept]))
}
