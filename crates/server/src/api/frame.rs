//! A frame with its callers and callees.

use heapr_explore::{Explorer, Found, FrameNumber};
use heapr_filters::FilterArguments;
use heapr_trace::Amounts;
use serde::{Deserialize, Serialize};

use crate::choices::SortKey;
use crate::command_line::report_command;
use crate::error::Result;
use crate::ids::frame_id;
use crate::json::{AmountsJson, FrameJson};
use crate::request::{Answer, Context, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    frame: String,
    /// Whether frames are single lines of functions.
    #[serde(default)]
    by_line: bool,
    #[serde(default)]
    sort: SortKey,
    #[serde(default = "crate::request::number::<200>")]
    limit: usize,
}

#[derive(Serialize)]
struct FrameGroup {
    id: String,
    frame: Option<FrameJson>,
    #[serde(flatten)]
    amounts: AmountsJson,
}

#[derive(Serialize)]
struct FrameAnswer {
    schema: &'static str,
    command: Option<String>,
    id: String,
    frame: Option<FrameJson>,
    inclusive: AmountsJson,
    #[serde(rename = "self")]
    own: AmountsJson,
    callers: Vec<FrameGroup>,
    caller_count: usize,
    callees: Vec<FrameGroup>,
    callee_count: usize,
}

pub(super) fn frame_json(explorer: &Explorer, frame: FrameNumber) -> Option<FrameJson> {
    explorer.frame(frame).as_ref().map(FrameJson::from)
}

pub(super) fn frame(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: FrameRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let SortKey(sort) = request.sort;
    let read = file.filter(&request.filter)?;
    let selection = file.select(&request.filter, &read.filter, Found::default(), context.cancel)?;
    let explorer = file.named(request.by_line, context.cancel)?;
    let number = crate::ids::frame(explorer, &request.frame)?;
    let found = explorer.neighbours(&selection, &read.cull, number, sort)?;
    let neighbours = |list: &[(FrameNumber, Amounts)]| {
        let one = |(frame, amounts): &(FrameNumber, Amounts)| FrameGroup {
            id: frame_id(*frame),
            frame: frame_json(explorer, *frame),
            amounts: amounts.into(),
        };
        list.iter().take(request.limit).map(one).collect::<Vec<_>>()
    };
    let symbol = explorer.frame(number).and_then(|view| view.symbol);
    crate::request::json(&FrameAnswer {
        schema: "heapr.view.frame/1",
        command: symbol
            .map(|symbol| report_command(&file, &["--callers", symbol, sort.key()], &request.filter)),
        id: frame_id(number),
        frame: frame_json(explorer, number),
        inclusive: (&found.inclusive).into(),
        own: (&found.own).into(),
        callers: neighbours(&found.callers),
        caller_count: found.callers.len(),
        callees: neighbours(&found.callees),
        callee_count: found.callees.len(),
    })
}
