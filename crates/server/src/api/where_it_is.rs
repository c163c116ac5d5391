//! Breakdown of all memory at a moment, as `heapr explain --where` prints it.

use heapr_explore::Found;
use heapr_filters::FilterArguments;
use heapr_findings::{LiveBlocks, WhereItIs};
use heapr_query::{Filter, Moment};
use serde::{Deserialize, Serialize};

use crate::command_line::command;
use crate::error::{Error, Result};
use crate::request::{Answer, Context, json, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhereRequest {
    file: usize,
    /// Processes and moment (the peak by default); no other filter applies to all memory.
    #[serde(default)]
    filter: FilterArguments,
}

#[derive(Serialize)]
struct WhereAnswer {
    schema: &'static str,
    /// The equal command; null if only some processes are chosen.
    command: Option<String>,
    #[serde(flatten)]
    told: WhereItIs,
}

pub(super) fn where_it_is(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: WhereRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?.filter;
    let pids = read.pids.clone();
    let at = read.at.unwrap_or(Moment::Peak);
    if read != (Filter { pids: pids.clone(), at: read.at, ..Filter::default() }) {
        return Err(Error::bad("filter", "all memory is told of processes and a moment alone".to_owned()));
    }
    file.wait_for_names(context.cancel)?;
    let whole = Filter { pids: pids.clone(), ..Filter::default() };
    let is_in_summary = at == Moment::Peak && file.explorer.needs_no_events(&whole, Found::default());
    if !is_in_summary && !file.explorer.is_without_events() {
        file.wait_for_events(context.cancel)?;
    }
    let then = file.explorer.live_then(&pids, at, &|| context.cancel.is_set())?;
    let live = LiveBlocks { time_ns: then.time_ns, rows: &then.rows, rests: &then.rests };
    let told = heapr_findings::where_it_is(file.trace(), file.explorer.tree(), &file.own, &pids, live);
    let path = file.path.display().to_string();
    let mut words = vec!["explain", &path, "--where"];
    let moment = request.filter.at.as_deref().filter(|_| at != Moment::Peak);
    words.extend(moment.iter().flat_map(|text| ["--at", text]));
    let is_printed = pids.is_empty() && request.filter.snapshot.is_none();
    json(&WhereAnswer { schema: "heapr.view.where/1", command: is_printed.then(|| command(&words)), told })
}
