//! Reports as JSON, schema `heapr.report/1`: see `docs/report.md`. Each group is written as soon as
//! its frames are looked up.

use std::io::{self, Write};

use heapr_query::json::{AmountsJson, FrameJson, HeapJson, HistogramJson, SamplingJson, TotalsJson};
use heapr_query::{Action, Answer, CallTree, Functions, Group, GroupBy, Ranking, Report, Section};
use serde::ser::{Serialize, SerializeSeq as _, SerializeStruct as _, Serializer};

use crate::Subject;

/// Writes the report and a newline.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_json(out: &mut dyn Write, subject: &Subject, report: &Report<'_>) -> io::Result<()> {
    let whole = Whole { subject, report };
    heapr_table::json_text::write_json(out, &whole, false)?;
    writeln!(out)
}

struct Whole<'a> {
    subject: &'a Subject,
    report: &'a Report<'a>,
}

/// Totals, with the amounts that exist only for the whole recording.
#[derive(serde::Serialize)]
struct WholeTotalsJson {
    #[serde(flatten)]
    totals: TotalsJson,
    /// Blocks whose peak is reported: `counted` ones, or `all` that the filters known at birth
    /// choose.
    peak_of: &'static str,
    lost_events: u64,
    duration_ns: u64,
}

#[derive(serde::Serialize)]
struct ThreadJson<'a> {
    tid: u32,
    name: &'a str,
    pid: Option<u32>,
}

#[derive(serde::Serialize)]
struct GroupJson<'a> {
    frames: Vec<FrameJson>,
    /// Index of the own frame in `frames`.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_frame: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadJson<'a>>,
    #[serde(flatten)]
    amounts: AmountsJson,
}

/// Groups of a ranking. Their frames are looked up one by one.
struct Groups<'a> {
    whole: &'a Whole<'a>,
    groups: &'a [Group],
}

impl Serialize for Groups<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.groups.len()))?;
        for group in self.groups {
            let frames = self.whole.report.frames(group);
            let subject = self.whole.subject;
            let thread =
                group.thread().and_then(|thread| subject.threads.get(thread.0 as usize)).map(|thread| {
                    let pid = subject.processes.get(thread.process.0 as usize).map(|process| process.pid);
                    ThreadJson { tid: thread.tid, name: &thread.name, pid }
                });
            let own_frame = subject.own.place(&frames);
            let frames = frames.iter().map(FrameJson::from).collect();
            sequence.serialize_element(&GroupJson {
                frames,
                own_frame,
                thread,
                amounts: (&group.amounts).into(),
            })?;
        }
        sequence.end()
    }
}

#[derive(serde::Serialize)]
struct FunctionJson {
    frame: FrameJson,
    inclusive: AmountsJson,
    own: AmountsJson,
}

#[derive(serde::Serialize)]
struct NodeJson {
    parent: Option<usize>,
    depth: usize,
    frame: FrameJson,
    #[serde(flatten)]
    amounts: AmountsJson,
}

/// Nodes of a tree. Their frames are looked up one by one.
struct Nodes<'a> {
    report: &'a Report<'a>,
    tree: &'a CallTree,
}

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.tree.nodes.len()))?;
        for node in &self.tree.nodes {
            let frame = self.report.tree_frame(node);
            sequence.serialize_element(&NodeJson {
                parent: node.parent,
                depth: node.depth,
                frame: (&frame).into(),
                amounts: (&node.amounts).into(),
            })?;
        }
        sequence.end()
    }
}

struct SectionJson<'a> {
    whole: &'a Whole<'a>,
    section: &'a Section,
}

impl Serialize for SectionJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("section", 6)?;
        let (name, sort) = action_name(&self.section.action);
        object.serialize_field("action", name)?;
        object.serialize_field("sort", sort)?;
        if let Action::Callers { of, .. } = &self.section.action {
            object.serialize_field("of", of.as_str())?;
        }
        match &self.section.answer {
            Answer::Ranking(Ranking { groups, group_count, rest, .. }) => {
                object.serialize_field("group_count", group_count)?;
                object.serialize_field("rest", &AmountsJson::from(rest))?;
                object.serialize_field("groups", &Groups { whole: self.whole, groups })?;
            }
            Answer::Functions(Functions { functions, function_count }) => {
                let report = self.whole.report;
                let functions: Vec<FunctionJson> = functions
                    .iter()
                    .map(|function| FunctionJson {
                        frame: (&report.function_frame(function)).into(),
                        inclusive: (&function.inclusive).into(),
                        own: (&function.own).into(),
                    })
                    .collect();
                object.serialize_field("function_count", function_count)?;
                object.serialize_field("functions", &functions)?;
            }
            Answer::Tree(tree) => {
                object.serialize_field("node_count", &tree.node_count)?;
                object.serialize_field("all", &AmountsJson::from(&tree.amounts))?;
                object.serialize_field("nodes", &Nodes { report: self.whole.report, tree })?;
            }
        }
        object.end()
    }
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { subject, report } = *self;
        let mut object = serializer.serialize_struct("report", 12)?;
        object.serialize_field("schema", "heapr.report/1")?;
        object.serialize_field("file", &subject.file)?;
        object.serialize_field("event_count", &subject.event_count)?;
        object.serialize_field("warnings", &subject.warnings)?;
        object.serialize_field("sampling", &SamplingJson::of(&subject.sampling))?;
        let totals = WholeTotalsJson {
            totals: (&report.totals).into(),
            peak_of: if report.is_own_peak { "counted" } else { "all" },
            lost_events: subject.lost_events,
            duration_ns: subject.duration_ns,
        };
        object.serialize_field("totals", &totals)?;
        let heap = |row: &heapr_query::HeapRow| {
            let process = subject.processes.get(row.process.0 as usize);
            let (pid, name) = process.map_or((0, ""), |process| (process.pid, process.name.as_str()));
            HeapJson::new(row, subject.heap(row.process, row.heap), pid, name)
        };
        object.serialize_field("heaps", &report.by_heap.iter().map(heap).collect::<Vec<_>>())?;
        let histograms: Vec<HistogramJson> = report.histograms.iter().map(HistogramJson::from).collect();
        object.serialize_field("histograms", &histograms)?;
        // The first ranking is at the top level, where the simplest script finds it. The other
        // sections are in `sections`.
        let is_ranking = |section: &&Section| matches!(section.answer, Answer::Ranking(_));
        let first = report.sections.iter().find(is_ranking);
        let groups = first.map_or(&[][..], |section| match &section.answer {
            Answer::Ranking(ranking) => &ranking.groups,
            Answer::Functions(_) | Answer::Tree(_) => &[],
        });
        if let Some(Section { action, answer: Answer::Ranking(ranking) }) = first {
            let (name, sort) = action_name(action);
            object.serialize_field("action", name)?;
            object.serialize_field("sort", sort)?;
            object.serialize_field("group_count", &ranking.group_count)?;
            object.serialize_field("rest", &AmountsJson::from(&ranking.rest))?;
        }
        object.serialize_field("groups", &Groups { whole: self, groups })?;
        let others = report
            .sections
            .iter()
            .filter(|section| !first.is_some_and(|first| std::ptr::eq(first, *section)))
            .map(|section| SectionJson { whole: self, section })
            .collect::<Vec<_>>();
        object.serialize_field("sections", &others)?;
        object.end()
    }
}

/// Names of an action and of its sort key on the command line.
#[must_use]
pub(crate) fn action_name(action: &Action) -> (&'static str, &'static str) {
    match action {
        Action::Ranking { by, sort } => {
            let name = match by {
                GroupBy::Stacks => "stacks",
                GroupBy::Frames => "frames",
                GroupBy::Lines => "lines",
                GroupBy::Images => "images",
                GroupBy::Threads => "by-thread",
            };
            (name, sort.key())
        }
        Action::Functions { sort, by_line: false } => ("functions", sort.key()),
        Action::Functions { sort, by_line: true } => ("function-lines", sort.key()),
        Action::TopDown { sort } => ("invert", sort.key()),
        Action::Callers { sort, .. } => ("callers", sort.key()),
    }
}
