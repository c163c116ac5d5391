//! Comparison of two or more builds by function, as `heapr diff --by function` prints it.

use heapr_explore::{Build, ComparedFunction, compare_functions};
use heapr_export::{FunctionChange, builds_sentence};
use heapr_query::Metric;
use serde::{Deserialize, Serialize};

use super::diff::{OpenSide, SideRequest};
use crate::choices::SortKey;
use crate::command_line::command;
use crate::error::{Error, Result};
use crate::json::{AmountsJson, FrameJson};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json, read_with};

/// Largest number of builds of a comparison.
const BUILDS_MAX: usize = 16;
/// Largest number of pairs made by hand.
const PAIRS_MAX: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffFunctionsRequest {
    sides: Vec<SideRequest>,
    #[serde(default)]
    sort: SortKey,
    /// Functions with another name in a later build, as old and new name.
    #[serde(default)]
    pairs: Vec<(String, String)>,
    /// Whether functions without a difference are included.
    #[serde(default)]
    same: bool,
}

/// A function in all builds.
#[derive(Serialize)]
struct BuildFunction {
    /// Name in each build; null where it holds nothing.
    names: Vec<Option<String>>,
    /// Frame in each build, with the place that holds most.
    frames: Vec<Option<FrameJson>>,
    amounts: Vec<AmountsJson>,
    /// True if the function has another name in a build.
    renamed: bool,
    /// Growth from the first build to the last.
    delta: i128,
    /// Half of the 95 % interval of `delta`; 0: counted exactly.
    #[serde(skip_serializing_if = "crate::json::is_counted")]
    delta_plus_minus: u64,
}

#[derive(Serialize)]
struct DiffFunctionsAnswer {
    schema: &'static str,
    command: Option<String>,
    /// Largest change in words.
    sentence: String,
    /// All amounts of each build.
    totals: Vec<AmountsJson>,
    function_count: usize,
    match_count: usize,
    offset: usize,
    functions: Vec<BuildFunction>,
}

pub(super) fn diff_functions(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (DiffFunctionsRequest, PageRows) = read_with(body)?;
    if !(2..=BUILDS_MAX).contains(&request.sides.len()) {
        return Err(Error::bad("sides", format!("{} builds: 2 to {BUILDS_MAX}", request.sides.len())));
    }
    if request.pairs.len() > PAIRS_MAX {
        return Err(Error::bad("pairs", format!("{} pairs: at most {PAIRS_MAX}", request.pairs.len())));
    }
    let SortKey(sort) = request.sort;
    let sides =
        request.sides.iter().map(|side| OpenSide::open(context, side, false)).collect::<Result<Vec<_>>>()?;
    let builds: Vec<Build<'_>> = sides.iter().map(OpenSide::build).collect();
    let all = compare_functions(&builds, sort, &request.pairs)?;
    let sentence = builds_sentence(sort, all.first().and_then(change_of));
    let mut totals = vec![heapr_trace::Amounts::default(); sides.len()];
    for function in &all {
        totals.iter_mut().zip(&function.amounts).for_each(|(sum, amounts)| *sum += amounts);
    }
    let differs = |function: &&ComparedFunction| {
        request.same || function.amounts.windows(2).any(|two| sort.of(&two[0]) != sort.of(&two[1]))
    };
    let text = page.text();
    let holds = |function: &&ComparedFunction| {
        text.is_empty() || function.names.iter().flatten().any(|name| name.to_lowercase().contains(&text))
    };
    let differing: Vec<&ComparedFunction> = all.iter().filter(differs).collect();
    let function_count = differing.len();
    let found: Vec<&ComparedFunction> = differing.into_iter().filter(holds).collect();
    json(&DiffFunctionsAnswer {
        schema: "heapr.view.diff-functions/1",
        command: command_of(&request, &sides, sort),
        sentence,
        totals: totals.iter().map(AmountsJson::from).collect(),
        function_count,
        match_count: found.len(),
        offset: page.offset,
        functions: page.of(&found, Descending::default()).map(|function| row(function, sort)).collect(),
    })
}

/// Change of a function from the first build to the last.
fn change_of(function: &ComparedFunction) -> Option<FunctionChange<'_>> {
    let (before, after) = (function.amounts.first()?, function.amounts.last()?);
    Some(FunctionChange {
        old_name: function.names.first()?.as_deref(),
        new_name: function.names.last()?.as_deref(),
        before,
        after,
        largest: [function.largest.first()?, function.largest.last()?],
    })
}

fn row(function: &ComparedFunction, sort: Metric) -> BuildFunction {
    let change = change_of(function);
    BuildFunction {
        names: function.names.clone(),
        frames: function.frames.clone(),
        amounts: function.amounts_json().collect(),
        renamed: function.is_renamed,
        delta: function.growth(sort),
        delta_plus_minus: change
            .map_or(0, |change| sort.plus_minus_of_difference(change.before, change.after)),
    }
}

/// The command `heapr diff A B … --by function`, if one command gives the same answer.
fn command_of(request: &DiffFunctionsRequest, sides: &[OpenSide], sort: Metric) -> Option<String> {
    let first = &request.sides.first()?.filter;
    if sort.key().is_empty() || request.sides.iter().any(|side| side.filter != *first) {
        return None;
    }
    let paths: Vec<String> = sides.iter().map(|side| side.file.path.display().to_string()).collect();
    let pairs: Vec<String> = request.pairs.iter().map(|(old, new)| format!("{old}={new}")).collect();
    let filters = first.words();
    let mut words: Vec<&str> = vec!["diff"];
    words.extend(paths.iter().map(String::as_str));
    words.extend(["--by", "function", "--sort", sort.key()]);
    words.extend(pairs.iter().flat_map(|pair| ["--pair", pair.as_str()]));
    words.extend(filters.iter().map(String::as_str));
    Some(command(&words))
}
