//! Graph of a snapshot's native heap: who holds blocks, and which are leaked.

use std::sync::Arc;

use heapr_query::{CullList, Filter, GroupBy, SameBuilds};
use serde::{Deserialize, Serialize};

use crate::command_line::command;
use crate::error::{Error, Result};
use crate::host::{GraphHolder, GraphLeak, GraphQuestion};
use crate::ids::stack_id;
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, json, read_with};
use crate::trace_file::TraceFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphRequest {
    file: usize,
    /// The last snapshot with a graph by default.
    number: Option<u32>,
    #[serde(default)]
    pid: Option<u32>,
    #[serde(default)]
    descending: Descending,
}

/// A graph that a request names.
struct Asked {
    request: GraphRequest,
    page: PageRows,
    file: Arc<TraceFile>,
    question: GraphQuestion,
}

impl Asked {
    fn of(context: &Context<'_>, body: &[u8]) -> Result<Self> {
        let (request, page): (GraphRequest, PageRows) = read_with(body)?;
        let file = context.files.trace(request.file)?;
        let has_graph = |number: &u32| {
            file.trace().snapshot(*number).is_some_and(|of| !file.trace().graph_processes(of).is_empty())
        };
        let last = file.trace().snapshots().iter().rev().map(|of| of.number).find(has_graph);
        let number = request.number.or(last).filter(has_graph);
        let name = request.number.map_or_else(|| "in the file".to_owned(), |number| number.to_string());
        let snapshot = number.ok_or(Error::NotFound { what: "snapshot with references", name })?;
        let question = GraphQuestion { trace: file.path.clone(), snapshot, pid: request.pid };
        Ok(Self { request, page, file, question })
    }

    fn key(&self) -> (usize, u32, Option<u32>) {
        (self.file.number, self.question.snapshot, self.question.pid)
    }

    fn command(&self, what: &str) -> String {
        let path = self.file.path.display().to_string();
        let (snapshot, pid) =
            (self.question.snapshot.to_string(), self.question.pid.map(|pid| pid.to_string()));
        let mut words = vec!["snapshot", what, &path, "--snapshot", &snapshot];
        words.extend(pid.iter().flat_map(|pid| ["--pid", pid.as_str()]));
        command(&words)
    }

    fn unusable(&self, message: String) -> Error {
        Error::Unusable { path: self.file.path.display().to_string(), message, offset: None }
    }
}

/// Holders of a graph.
#[derive(Serialize)]
struct HoldersAnswer {
    schema: &'static str,
    command: String,
    /// Number of the snapshot.
    shown: u32,
    block_bytes: u64,
    held_by_one_bytes: u64,
    held_by_several_bytes: u64,
    /// Number of the snapshot since which growth is counted; null if there is no other graph.
    growth_since: Option<u32>,
    row_count: usize,
    offset: usize,
    rows: Vec<GraphHolder>,
}

pub(super) fn holders(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let asked = Asked::of(context, body)?;
    let host = &context.files.host;
    let held = context.files.graph_holders.get(&asked.key(), context.cancel, |_| {
        host.graph_holders(&asked.question).map_err(|message| asked.unusable(message))
    })?;
    let text = asked.page.text();
    let rows: Vec<&GraphHolder> =
        held.holders.iter().filter(|holder| holder.name.to_lowercase().contains(&text)).collect();
    json(&HoldersAnswer {
        schema: "heapr.view.native.holders/1",
        command: asked.command("holders"),
        shown: asked.question.snapshot,
        block_bytes: held.block_bytes,
        held_by_one_bytes: held.held_bytes[0],
        held_by_several_bytes: held.held_bytes[1],
        growth_since: held.since,
        row_count: rows.len(),
        offset: asked.page.offset,
        rows: asked.page.of(&rows, asked.request.descending).map(|&holder| holder.clone()).collect(),
    })
}

/// Leaked blocks of one kind, stack and type.
#[derive(Clone, Serialize)]
struct LeakedRow {
    id: Option<String>,
    /// Index of the innermost frame of user code.
    own: Option<usize>,
    kind: &'static str,
    block_count: u64,
    block_bytes: u64,
    /// Bytes with the blocks that only these hold.
    retained_bytes: u64,
    circle_count: u64,
    youngest_ns: u64,
    oldest_ns: u64,
    type_name: Option<String>,
    type_source: Option<&'static str>,
    /// Frames as `module!symbol`, innermost first.
    frames: Vec<String>,
}

/// Leaks of a graph.
#[derive(Serialize)]
struct GraphLeaksAnswer {
    schema: &'static str,
    command: String,
    /// Number of the snapshot.
    shown: u32,
    block_bytes: u64,
    /// Why blocks called possibly leaked may be in use.
    doubt: Option<String>,
    notes: Vec<String>,
    row_count: usize,
    offset: usize,
    rows: Vec<LeakedRow>,
}

pub(super) fn leaks(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let asked = Asked::of(context, body)?;
    let host = &context.files.host;
    let found = context.files.graph_leaks.get(&asked.key(), context.cancel, |_| {
        host.graph_leaks(&asked.question).map_err(|message| asked.unusable(message))
    })?;
    asked.file.wait_for_names(context.cancel)?;
    let text = asked.page.text();
    let (page, descending) = (&asked.page, asked.request.descending);
    // Frames are looked up only of rows that are shown or searched.
    let (row_count, rows) = if text.is_empty() {
        let shown: Vec<GraphLeak> = page.of(&found.leaks, descending).cloned().collect();
        (found.leaks.len(), leaked_rows(&asked.file, &shown))
    } else {
        let mut all = leaked_rows(&asked.file, &found.leaks);
        all.retain(|row| row.frames.iter().any(|frame| frame.to_lowercase().contains(&text)));
        (all.len(), page.of(&all, descending).cloned().collect())
    };
    json(&GraphLeaksAnswer {
        schema: "heapr.view.native.leaks/1",
        command: asked.command("leaks"),
        shown: asked.question.snapshot,
        block_bytes: found.block_bytes,
        doubt: found.doubt.clone(),
        notes: found.notes.clone(),
        row_count,
        offset: asked.page.offset,
        rows,
    })
}

/// Leaks with the frames of their stacks.
fn leaked_rows(file: &TraceFile, leaks: &[GraphLeak]) -> Vec<LeakedRow> {
    let stacks = leaks.iter().map(|leak| leak.stack);
    let cull = CullList::built_in();
    let groups = file.explorer.stack_groups(stacks, GroupBy::Stacks, &cull, &Filter::default());
    let builds = SameBuilds::of([file.trace().as_ref()]);
    let row = |leak: &GraphLeak| {
        let group = groups.group_of(leak.stack);
        let frames = group.map_or_else(Vec::new, |group| groups.frames(group));
        LeakedRow {
            id: group.and_then(|group| groups.representative(group)).map(stack_id),
            own: file.own.place(&frames),
            kind: leak.kind,
            block_count: leak.count,
            block_bytes: leak.bytes,
            retained_bytes: leak.retained_bytes,
            circle_count: leak.circle_count,
            youngest_ns: leak.youngest_ns,
            oldest_ns: leak.oldest_ns,
            type_name: leak.type_name.as_ref().map(|(name, _)| name.clone()),
            type_source: leak.type_name.as_ref().map(|&(_, source)| source),
            frames: frames.iter().map(|frame| builds.name(frame)).collect(),
        }
    };
    leaks.iter().map(row).collect()
}
