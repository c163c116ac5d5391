//! Tables of stacks, frames, lines, images and threads.

use heapr_explore::{Explorer, Selection};
use heapr_filters::FilterArguments;
use heapr_query::{CullList, FrameView, Group, GroupBy, OwnCode};
use heapr_trace::{Amounts, Process, ThreadIndex};
use serde::{Deserialize, Serialize};

use crate::choices::SortKey;
use crate::command_line::report_command;
use crate::error::Result;
use crate::ids::{frame_id, stack_id};
use crate::json::{AmountsJson, FrameJson, HeapJson, TotalsJson, heap_name};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, read_with};
use crate::trace_file::TraceFile;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    by: GroupBy,
    #[serde(default)]
    sort: SortKey,
    #[serde(default)]
    descending: Descending,
    #[serde(default = "crate::request::number::<16>")]
    frames_max: usize,
}

#[derive(Serialize)]
struct ThreadJson {
    tid: u32,
    name: String,
    pid: Option<u32>,
}

/// Innermost frame of user code in a stack.
#[derive(Serialize)]
pub(crate) struct OwnJson {
    place: usize,
    #[serde(flatten)]
    frame: FrameJson,
}

impl OwnJson {
    /// Finds the frame among `frames`, innermost first.
    pub(crate) fn of(own: &OwnCode, frames: &[FrameView<'_>]) -> Option<Self> {
        own.place(frames).map(|place| Self { place, frame: (&frames[place]).into() })
    }
}

/// A row of a table.
#[derive(Serialize)]
pub(super) struct GroupJson {
    id: Option<String>,
    frames: Vec<FrameJson>,
    frame_count: usize,
    /// Innermost frame of user code, with its index among all frames of the stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<OwnJson>,
    /// Lines of the own frame, or of the innermost one, if the group sums stacks with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    own_lines: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadJson>,
    #[serde(flatten)]
    amounts: AmountsJson,
}

#[derive(Serialize)]
struct ReportAnswer {
    schema: &'static str,
    command: String,
    totals: TotalsJson,
    heaps: Vec<HeapJson>,
    group_count: usize,
    match_count: usize,
    all: AmountsJson,
    matched: AmountsJson,
    offset: usize,
    groups: Vec<GroupJson>,
}

/// Option of `heapr report` for a grouping.
pub(super) fn option_of(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Stacks => "--stacks",
        GroupBy::Frames => "--frames",
        GroupBy::Lines => "--lines",
        GroupBy::Images => "--images",
        GroupBy::Threads => "--by-thread",
    }
}

/// Row of a group. `explorer`: the one that ranked the group.
pub(super) fn group_json(
    file: &TraceFile,
    explorer: &Explorer,
    group: &Group,
    frames_max: usize,
) -> GroupJson {
    let frames = explorer.frames(group);
    let trace = file.trace();
    let thread =
        group.thread().and_then(|ThreadIndex(thread)| trace.threads().get(thread as usize)).map(|thread| {
            ThreadJson {
                tid: thread.tid,
                name: thread.name.clone(),
                pid: trace.processes().get(thread.process.0 as usize).map(|process| process.pid),
            }
        });
    let id = match explorer.frame_of(group) {
        Some(frame) => Some(frame_id(frame)),
        None => explorer.stack_key(group).map(stack_id),
    };
    GroupJson {
        id,
        frame_count: frames.len(),
        own: OwnJson::of(&file.own, &frames),
        own_lines: Vec::new(),
        frames: frames.iter().take(frames_max).map(FrameJson::from).collect(),
        thread,
        amounts: (&group.amounts).into(),
    }
}

/// Tells of each row of stacks the lines that it sums, if these are several.
pub(super) fn add_lines(
    explorer: &Explorer,
    (selection, cull): (&Selection, &CullList),
    groups: &[&Group],
    rows: &mut [GroupJson],
) -> Result<()> {
    let keys: Vec<(u32, usize)> = groups
        .iter()
        .zip(rows.iter())
        .map(|(group, row)| {
            let node = explorer.stack_key(group).map_or(u32::MAX, |key| key.1);
            (node, row.own.as_ref().map_or(0, |own| own.place))
        })
        .collect();
    for (row, lines) in rows.iter_mut().zip(explorer.group_lines(selection, cull, &keys)?) {
        row.own_lines = if lines.len() > 1 { lines } else { Vec::new() };
    }
    Ok(())
}

/// Groups that contain a text.
pub(super) fn matching(
    file: &TraceFile,
    explorer: &Explorer,
    groups: &[Group],
    by: GroupBy,
    text: &str,
) -> Vec<Group> {
    let mut groups = groups.to_vec();
    if by == GroupBy::Threads {
        let text = text.to_lowercase();
        groups.retain(|group| {
            let thread = group.thread().and_then(|thread| file.trace().threads().get(thread.0 as usize));
            thread.is_some_and(|thread| {
                thread.name.to_lowercase().contains(&text) || thread.tid.to_string().contains(&text)
            })
        });
    } else if by == GroupBy::Images {
        let text = text.to_lowercase();
        groups.retain(|group| {
            let frames = explorer.frames(group);
            frames
                .first()
                .and_then(|frame| frame.module)
                .is_some_and(|module| module.to_lowercase().contains(&text))
        });
    } else {
        let frames = explorer.frames_with_text(text);
        explorer.retain_with_frames(&mut groups, &frames);
    }
    groups
}

pub(super) fn report(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (TableRequest, PageRows) = read_with(body)?;
    let (by, SortKey(sort)) = (request.by, request.sort);
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let read = file.filter(&request.filter)?;
    let (selection, ranking) = file.rank(&request.filter, &read, by, sort, context.cancel)?;
    let explorer = file.named(by == GroupBy::Lines, context.cancel)?;
    let found: Vec<Group>;
    let groups: &[Group] = if page.r#match.is_empty() {
        &ranking.groups
    } else {
        found = matching(&file, explorer, &ranking.groups, by, &page.r#match);
        &found
    };
    let mut matched = Amounts::default();
    groups.iter().for_each(|group| matched += &group.amounts);
    let shown: Vec<&Group> = page.of(groups, request.descending).collect();
    let mut rows: Vec<GroupJson> =
        shown.iter().map(|group| group_json(&file, explorer, group, request.frames_max)).collect();
    if by == GroupBy::Stacks {
        add_lines(explorer, (&selection, &read.cull), &shown, &mut rows)?;
    }
    let heaps = selection.by_heap.iter().map(|heap| {
        let process = file.trace().processes().get(heap.process.0 as usize);
        HeapJson::new(
            heap,
            heap_name(file.trace().heap_names(), heap.process, heap.heap),
            process.map_or(0, |process| process.pid),
            process.map_or("", Process::name),
        )
    });
    crate::request::json(&ReportAnswer {
        schema: "heapr.view.report/1",
        command: report_command(&file, &[option_of(by), sort.key()], &request.filter),
        totals: (&selection.totals).into(),
        heaps: heaps.collect(),
        group_count: ranking.group_count,
        match_count: groups.len(),
        all: (&ranking.all).into(),
        matched: (&matched).into(),
        offset: page.offset,
        groups: rows,
    })
}
