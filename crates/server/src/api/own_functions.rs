//! Functions by the stacks that they answer for: each stack counts once, for one function.

use std::collections::HashMap;

use heapr_filters::FilterArguments;
use heapr_query::{FrameView, Group, GroupBy};
use heapr_table::SortRows as _;
use heapr_trace::Amounts;
use serde::{Deserialize, Serialize};

use crate::choices::SortKey;
use crate::command_line::report_command;
use crate::error::Result;
use crate::ids::stack_id;
use crate::json::{AmountsJson, FrameJson, TotalsJson};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, read_with};

/// Frame of a stack that answers for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnsweringFrame {
    /// Innermost frame of user code; in stacks without user code the innermost frame of a script,
    /// or else the innermost frame.
    #[default]
    Own,
    /// Innermost frame, after culling.
    Innermost,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFunctionsRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    of: AnsweringFrame,
    #[serde(default)]
    sort: SortKey,
    #[serde(default)]
    descending: Descending,
}

#[derive(Serialize)]
struct OwnFunctionRow {
    frame: Option<FrameJson>,
    /// Function that the frame calls in the largest stack, where the frame has no symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    called: Option<String>,
    /// Id of the largest stack.
    stack: Option<String>,
    stack_count: usize,
    #[serde(flatten)]
    amounts: AmountsJson,
}

#[derive(Serialize)]
struct OwnFunctionsAnswer {
    schema: &'static str,
    command: String,
    totals: TotalsJson,
    all: AmountsJson,
    function_count: usize,
    match_count: usize,
    offset: usize,
    own_functions: Vec<OwnFunctionRow>,
}

/// Sum over the stacks of a function.
struct FunctionSum<'a> {
    /// Largest stack.
    largest: &'a Group,
    stack_count: usize,
    amounts: Amounts,
}

/// Identity of a function: module and symbol. Code without symbols is one function a module.
type FunctionKey = Option<(Option<String>, Option<String>)>;

pub(super) fn own_functions(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (OwnFunctionsRequest, PageRows) = read_with(body)?;
    let SortKey(sort) = request.sort;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?;
    let (selection, ranking) = file.rank(&request.filter, &read, GroupBy::Stacks, sort, context.cancel)?;
    let explorer = file.named(false, context.cancel)?;
    let place = |frames: &[FrameView<'_>]| match request.of {
        AnsweringFrame::Own => file.own.place(frames).or_else(|| without_own(frames)),
        AnsweringFrame::Innermost => (!frames.is_empty()).then_some(0),
    };
    let mut sums: HashMap<FunctionKey, FunctionSum<'_>> = HashMap::new();
    // The groups come in descending order: the first one of a function is its largest.
    for group in &ranking.groups {
        let frames = explorer.frames(group);
        let key = place(&frames).map(|place| {
            let frame = &frames[place];
            (frame.module.map(str::to_owned), frame.symbol.map(str::to_owned))
        });
        let new = || FunctionSum { largest: group, stack_count: 0, amounts: Amounts::default() };
        let sum = sums.entry(key).or_insert_with(new);
        sum.stack_count += 1;
        sum.amounts += &group.amounts;
    }
    let function_count = sums.len();
    let text = page.text();
    let holds = |name: &Option<String>| name.as_ref().is_some_and(|name| name.to_lowercase().contains(&text));
    let is_found = |key: &FunctionKey| {
        text.is_empty() || key.as_ref().is_some_and(|(module, symbol)| holds(module) || holds(symbol))
    };
    let mut found: Vec<(FunctionKey, FunctionSum<'_>)> =
        sums.into_iter().filter(|(key, _)| is_found(key)).collect();
    found.sort_rows_by_key(|(key, sum)| (std::cmp::Reverse(sort.of(&sum.amounts)), key.clone()));
    let row = |(_, sum): &(FunctionKey, FunctionSum<'_>)| {
        let frames = explorer.frames(sum.largest);
        OwnFunctionRow {
            frame: place(&frames).map(|place| (&frames[place]).into()),
            called: place(&frames).and_then(|place| called(&frames, place)),
            stack: explorer.stack_key(sum.largest).map(stack_id),
            stack_count: sum.stack_count,
            amounts: (&sum.amounts).into(),
        }
    };
    crate::request::json(&OwnFunctionsAnswer {
        schema: "heapr.view.own-functions/1",
        command: report_command(&file, &["--stacks", sort.key()], &request.filter),
        totals: (&selection.totals).into(),
        all: (&ranking.all).into(),
        function_count,
        match_count: found.len(),
        offset: page.offset,
        own_functions: page.of(&found, request.descending).map(row).collect(),
    })
}

/// Frame that answers for a stack without user code: a script of the language itself may be the
/// program.
fn without_own(frames: &[FrameView<'_>]) -> Option<usize> {
    frames.iter().position(FrameView::is_of_language).or((!frames.is_empty()).then_some(0))
}

/// Function that a frame without a symbol calls: a stripped program is known by what it asks of
/// its libraries.
fn called(frames: &[FrameView<'_>], place: usize) -> Option<String> {
    let inner = frames.get(..place).filter(|_| frames[place].symbol.is_none())?.last()?;
    inner.symbol.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(module: &'a str, symbol: Option<&'a str>) -> FrameView<'a> {
        FrameView { module: Some(module), symbol, file: None, line: None, is_inlined: false, offset: 16 }
    }

    #[test]
    fn a_stripped_program_is_told_with_the_function_that_it_calls() {
        let frames = [
            frame("/usr/lib/libsqlite3.so.0", Some("sqlite3Malloc")),
            frame("/usr/lib/libsqlite3.so.0", Some("sqlite3_step")),
            frame("/usr/bin/sqlite3", None),
        ];
        assert_eq!(called(&frames, 2).as_deref(), Some("sqlite3_step"));
        assert_eq!([called(&frames, 1), called(&frames[2..], 0)], [None, None]);
    }

    #[test]
    fn a_script_answers_for_a_stack_of_its_language_alone() {
        let frames = [
            frame("/usr/lib/libpython3.11.so.1.0", Some("PyUnicode_New")),
            frame("py", Some("raw_decode")),
            frame("py", Some("main")),
        ];
        assert_eq!((without_own(&frames), without_own(&frames[..1])), (Some(1), Some(0)));
        assert_eq!(without_own(&[]), None);
    }
}
