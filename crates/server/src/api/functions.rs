//! All functions, each with its inclusive and its own amounts.

use heapr_explore::{Found, FrameNumber};
use heapr_filters::FilterArguments;
use heapr_query::{FunctionAmounts, Owner};
use heapr_table::SortRows as _;
use serde::{Deserialize, Serialize};

use super::frame::frame_json;
use crate::choices::SortKey;
use crate::command_line::report_command;
use crate::error::Result;
use crate::ids::frame_id;
use crate::json::{AmountsJson, FrameJson, TotalsJson};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, read_with};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionsRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    sort: SortKey,
    /// Whether to sort by a function's own amounts instead of its inclusive ones.
    #[serde(default)]
    by_own: bool,
    /// Whether each line of a function is listed on its own.
    #[serde(default)]
    by_line: bool,
    #[serde(default)]
    descending: Descending,
}

#[derive(Serialize)]
struct FunctionRow {
    id: String,
    frame: Option<FrameJson>,
    /// True if the function is user code.
    is_own: bool,
    inclusive: AmountsJson,
    own: AmountsJson,
}

#[derive(Serialize)]
struct FunctionsAnswer {
    schema: &'static str,
    command: String,
    totals: TotalsJson,
    function_count: usize,
    match_count: usize,
    offset: usize,
    functions: Vec<FunctionRow>,
}

pub(super) fn functions(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (FunctionsRequest, PageRows) = read_with(body)?;
    let SortKey(sort) = request.sort;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?;
    let selection = file.select(&request.filter, &read.filter, Found::default(), context.cancel)?;
    let explorer = file.named(request.by_line, context.cancel)?;
    let mut found = explorer.functions(&selection, &read.cull, sort)?.functions;
    let function_count = found.len();
    if request.by_own {
        found.sort_rows_by_key(|function| {
            std::cmp::Reverse((sort.of(&function.own), sort.of(&function.inclusive)))
        });
    }
    if !page.r#match.is_empty() {
        let text = page.text();
        found.retain(|function| {
            explorer.frame(FrameNumber(function.frame.0)).is_some_and(|view| {
                let holds = |name: Option<&str>| name.is_some_and(|name| name.to_lowercase().contains(&text));
                holds(view.symbol) || holds(view.module)
            })
        });
    }
    let row = |function: &FunctionAmounts| {
        let number = FrameNumber(function.frame.0);
        let source = explorer.tree().frames.file(function.frame);
        let is_own = explorer
            .frame(number)
            .is_some_and(|view| file.own.owner(view.module, view.symbol, source) == Owner::Program);
        FunctionRow {
            id: frame_id(number),
            frame: frame_json(explorer, number),
            is_own,
            inclusive: (&function.inclusive).into(),
            own: (&function.own).into(),
        }
    };
    crate::request::json(&FunctionsAnswer {
        schema: "heapr.view.functions/1",
        command: report_command(
            &file,
            &[if request.by_line { "--function-lines" } else { "--functions" }, sort.key()],
            &request.filter,
        ),
        totals: (&selection.totals).into(),
        function_count,
        match_count: found.len(),
        offset: page.offset,
        functions: page.of(&found, request.descending).map(row).collect(),
    })
}
