//! Comparison of two traces, or of two moments of one.

use std::sync::Arc;

use heapr_explore::{Build, DifferenceGroup, Found, FrameUnion, Selection, Side};
use heapr_filters::FilterArguments;
use heapr_query::{GroupBy, Metric};
use serde::{Deserialize, Serialize};

use crate::choices::SortKey;
use crate::command_line::command;
use crate::error::{Error, Result};
use crate::json::{AmountsJson, is_counted};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, read_with};
use crate::trace_file::{ReadFilter, TraceFile};

/// One side of a comparison.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SideRequest {
    pub(super) file: usize,
    #[serde(default)]
    pub(super) filter: FilterArguments,
}

/// An opened side, with its selection.
pub(super) struct OpenSide {
    pub(super) file: Arc<TraceFile>,
    read: ReadFilter,
    selection: Arc<Selection>,
}

impl OpenSide {
    /// Opens a side. `is_temporary`: only temporary allocations count.
    pub(super) fn open(context: &Context<'_>, side: &SideRequest, is_temporary: bool) -> Result<Self> {
        let file = context.files.trace(side.file)?.shown(&side.filter);
        let words =
            FilterArguments { temporary: side.filter.temporary || is_temporary, ..side.filter.clone() };
        let read = file.filter(&words)?;
        let selection = file.select(&words, &read.filter, Found::default(), context.cancel)?;
        file.wait_for_names(context.cancel)?;
        Ok(Self { file, read, selection })
    }

    pub(super) fn side(&self) -> Side<'_> {
        Side { explorer: &self.file.explorer, selection: &self.selection, cull: &self.read.cull }
    }

    pub(super) fn build(&self) -> Build<'_> {
        let Side { explorer, selection, cull } = self.side();
        Build { explorer, selection, cull, own: &self.file.own }
    }
}

/// The common tree of two files; cached, as each filter needs it.
pub(super) fn union(context: &Context<'_>, sides: &[OpenSide; 2]) -> Result<Arc<FrameUnion>> {
    // Each opening of a file has its own number.
    let key = sides.each_ref().map(|side| side.file.number);
    let [before, after] = sides.each_ref().map(|side| &side.file.explorer);
    context.files.unions.get(&key, context.cancel, |_| Ok(FrameUnion::new(before, after)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffRequest {
    before: SideRequest,
    after: SideRequest,
    #[serde(default)]
    by: GroupBy,
    #[serde(default)]
    sort: SortKey,
    /// Whether groups without a difference in the sort key are included. They differ in another
    /// amount.
    #[serde(default)]
    same: bool,
}

#[derive(Serialize)]
struct DiffGroupJson {
    names: Vec<String>,
    /// Index of the innermost frame of user code in `names`.
    own: Option<usize>,
    before: AmountsJson,
    after: AmountsJson,
    delta: i128,
    /// Half of the 95 % interval of `delta`; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    delta_plus_minus: u64,
}

#[derive(Serialize)]
struct DiffAnswer {
    schema: &'static str,
    command: Option<String>,
    before: AmountsJson,
    after: AmountsJson,
    /// Half of the 95 % interval of the difference in the sort key; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    delta_plus_minus: u64,
    group_count: usize,
    match_count: usize,
    offset: usize,
    groups: Vec<DiffGroupJson>,
}

/// The command `heapr diff A B …`, if one command gives the same answer.
pub(super) fn diff_command(
    request: [&SideRequest; 2],
    sides: &[OpenSide; 2],
    by: GroupBy,
    sort: Metric,
) -> Option<String> {
    let option = match by {
        GroupBy::Stacks => "--stacks",
        GroupBy::Frames => "--frames",
        GroupBy::Images => "--images",
        GroupBy::Lines | GroupBy::Threads => return None,
    };
    if sort.key().is_empty() {
        return None;
    }
    let paths = sides.each_ref().map(|side| side.file.path.display().to_string());
    let mut all = vec!["diff", paths[0].as_str(), paths[1].as_str(), option, "--sort", sort.key()];
    let words: Vec<String> = if request[0].filter == request[1].filter {
        request[0].filter.words()
    } else {
        // Two moments with equal filters otherwise.
        let rest = |side: &SideRequest| match side.filter.at {
            Some(_) => FilterArguments { at: None, range: None, ..side.filter.clone() },
            None => side.filter.clone(),
        };
        let (one, other) = (rest(request[0]), rest(request[1]));
        if one != other {
            return None;
        }
        let moments = [("--before-at", &request[0].filter.at), ("--after-at", &request[1].filter.at)];
        let moments = moments.into_iter().filter_map(|(option, at)| Some([option.to_owned(), at.clone()?]));
        moments.flatten().chain(one.words()).collect()
    };
    all.extend(words.iter().map(String::as_str));
    Some(command(&all))
}

pub(super) fn diff(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (DiffRequest, PageRows) = read_with(body)?;
    let (by, SortKey(sort)) = (request.by, request.sort);
    if by == GroupBy::Threads {
        return Err(Error::bad(
            "by",
            "threads of two traces are never the same: compare stacks, frames or images",
        ));
    }
    let sides =
        [OpenSide::open(context, &request.before, false)?, OpenSide::open(context, &request.after, false)?];
    let union = union(context, &sides)?;
    let (mut groups, [before, after]) = union.groups([sides[0].side(), sides[1].side()], by, sort)?;
    if !request.same {
        // Groups without a difference come last.
        groups.truncate(groups.partition_point(|group| sort.of(&group.before) != sort.of(&group.after)));
    }
    let group_count = groups.len();
    let text = page.text();
    let matches = |group: &&DifferenceGroup| {
        text.is_empty() || union.group_names(group, by).iter().any(|name| name.to_lowercase().contains(&text))
    };
    let matching: Vec<&DifferenceGroup> = groups.iter().filter(matches).collect();
    let shown = page.of(&matching, Descending::default());
    let rows = shown.map(|group| DiffGroupJson {
        names: union.group_names(group, by),
        own: union
            .own_place(group, by, &sides[1].file.own)
            .or_else(|| union.own_place(group, by, &sides[0].file.own)),
        before: (&group.before).into(),
        after: (&group.after).into(),
        delta: sort.difference(&group.before, &group.after),
        delta_plus_minus: sort.plus_minus_of_difference(&group.before, &group.after),
    });
    crate::request::json(&DiffAnswer {
        schema: "heapr.view.diff/1",
        command: diff_command([&request.before, &request.after], &sides, by, sort),
        before: (&before).into(),
        after: (&after).into(),
        delta_plus_minus: sort.plus_minus_of_difference(&before, &after),
        group_count,
        match_count: matching.len(),
        offset: page.offset,
        groups: rows.collect(),
    })
}
