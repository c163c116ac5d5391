//! The report as JSON, schema `heapr.report/1`: see `docs/report.md`. Groups are written as they are looked up.

use std::io::{self, Write};

use heapr_query::{
    Action, Answer, CallTree, FrameView, Group, GroupBy, Histogram, HistogramOf, Metrics, Ranking, Report,
    Section,
};
use heapr_trace::Totals;
use serde::ser::{Serialize, SerializeSeq as _, SerializeStruct as _, Serializer};

use super::subject::Subject;

/// Writes it, ended by a newline.
pub(crate) fn write_json(out: &mut dyn Write, subject: &Subject, report: &Report<'_>) -> io::Result<()> {
    let whole = Whole { subject, report };
    serde_json::to_writer(&mut *out, &whole).map_err(io::Error::from)?;
    writeln!(out)
}

struct Whole<'a> {
    subject: &'a Subject,
    report: &'a Report<'a>,
}

#[derive(serde::Serialize)]
struct TotalsJson {
    alloc_count: u64,
    alloc_bytes: u64,
    free_count: u64,
    realloc_count: u64,
    failed_count: u64,
    outstanding_count: u64,
    outstanding_bytes: u64,
    temporary_count: u64,
    peak_bytes: u64,
    peak_count: u64,
    peak_time_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_events: Option<u64>,
    unmatched_frees: u64,
    inherited_frees: u64,
    implied_frees: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
}

impl TotalsJson {
    fn new(totals: &Totals, subject: Option<&Subject>) -> Self {
        Self {
            alloc_count: totals.alloc_count,
            alloc_bytes: totals.alloc_bytes,
            free_count: totals.free_count,
            realloc_count: totals.realloc_count,
            failed_count: totals.failed_count,
            outstanding_count: totals.outstanding_count,
            outstanding_bytes: totals.outstanding_bytes,
            temporary_count: totals.temporary_count,
            peak_bytes: totals.peak_bytes,
            peak_count: totals.peak_count,
            peak_time_ns: totals.peak_time_ns,
            lost_events: subject.map(|subject| subject.loss.events_lost),
            unmatched_frees: totals.unmatched_frees,
            inherited_frees: totals.inherited_frees,
            implied_frees: totals.implied_frees,
            duration_ns: subject.map(|subject| subject.duration_ns),
        }
    }
}

#[derive(serde::Serialize)]
struct HeapJson<'a> {
    pid: u32,
    process: &'a str,
    heap: String,
    #[serde(flatten)]
    totals: TotalsJson,
}

/// The amounts of a group, in the schema's words.
#[derive(serde::Serialize)]
pub(crate) struct MetricsJson {
    outstanding_bytes: u64,
    outstanding_count: u64,
    total_bytes: u64,
    total_count: u64,
    realloc_count: u64,
    peak_bytes: u64,
    peak_count: u64,
    temporary_count: u64,
}

impl From<&Metrics> for MetricsJson {
    fn from(metrics: &Metrics) -> Self {
        Self {
            outstanding_bytes: metrics.outstanding_bytes,
            outstanding_count: metrics.outstanding_count,
            total_bytes: metrics.total_bytes,
            total_count: metrics.total_count,
            realloc_count: metrics.realloc_count,
            peak_bytes: metrics.peak_bytes,
            peak_count: metrics.peak_count,
            temporary_count: metrics.temporary_count,
        }
    }
}

/// A frame; what is not known is null.
#[derive(serde::Serialize)]
pub(crate) struct FrameJson<'a> {
    module: Option<&'a str>,
    symbol: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    inlined: bool,
    offset: u64,
}

impl<'a> From<&FrameView<'a>> for FrameJson<'a> {
    fn from(frame: &FrameView<'a>) -> Self {
        Self {
            module: frame.module,
            symbol: frame.symbol,
            file: frame.file,
            line: frame.line,
            inlined: frame.is_inlined,
            offset: frame.offset,
        }
    }
}

#[derive(serde::Serialize)]
struct ThreadJson<'a> {
    tid: u32,
    name: &'a str,
    pid: Option<u32>,
}

#[derive(serde::Serialize)]
struct GroupJson<'a> {
    frames: Vec<FrameJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadJson<'a>>,
    #[serde(flatten)]
    metrics: MetricsJson,
}

/// A ranking's groups, looked up one by one.
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
            let frames = frames.iter().map(FrameJson::from).collect();
            sequence.serialize_element(&GroupJson { frames, thread, metrics: (&group.metrics).into() })?;
        }
        sequence.end()
    }
}

#[derive(serde::Serialize)]
struct NodeJson<'a> {
    parent: Option<usize>,
    depth: usize,
    frame: FrameJson<'a>,
    #[serde(flatten)]
    metrics: MetricsJson,
}

/// A tree's nodes, looked up one by one.
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
                metrics: (&node.metrics).into(),
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
                object.serialize_field("rest", &MetricsJson::from(rest))?;
                object.serialize_field("groups", &Groups { whole: self.whole, groups })?;
            }
            Answer::Tree(tree) => {
                object.serialize_field("node_count", &tree.node_count)?;
                object.serialize_field("all", &MetricsJson::from(&tree.metrics))?;
                object.serialize_field("nodes", &Nodes { report: self.whole.report, tree })?;
            }
        }
        object.end()
    }
}

#[derive(serde::Serialize)]
struct BucketJson {
    from: u64,
    last: u64,
    total_count: u64,
    total_bytes: u64,
    outstanding_count: u64,
    outstanding_bytes: u64,
}

#[derive(serde::Serialize)]
struct HistogramJson {
    of: &'static str,
    unit: &'static str,
    buckets: Vec<BucketJson>,
}

impl From<&Histogram> for HistogramJson {
    fn from(histogram: &Histogram) -> Self {
        let (of, unit) = match histogram.of {
            HistogramOf::Size => ("size", "bytes"),
            HistogramOf::Lifetime => ("lifetime", "ns"),
        };
        let bucket = |bucket: &heapr_query::Bucket| BucketJson {
            from: bucket.from,
            last: bucket.last,
            total_count: bucket.total_count,
            total_bytes: bucket.total_bytes,
            outstanding_count: bucket.outstanding_count,
            outstanding_bytes: bucket.outstanding_bytes,
        };
        Self { of, unit, buckets: histogram.buckets.iter().map(bucket).collect() }
    }
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { subject, report } = *self;
        let mut object = serializer.serialize_struct("report", 11)?;
        object.serialize_field("schema", "heapr.report/1")?;
        object.serialize_field("file", &subject.file)?;
        object.serialize_field("event_count", &subject.event_count)?;
        object.serialize_field("warnings", &subject.warnings())?;
        object.serialize_field("totals", &TotalsJson::new(&report.totals, Some(subject)))?;
        let heap = |row: &heapr_query::HeapRow| {
            let process = subject.processes.get(row.process.0 as usize);
            HeapJson {
                pid: process.map_or(0, |process| process.pid),
                process: process.map_or("", |process| process.name.as_str()),
                heap: subject.heap(row.process, row.heap),
                totals: TotalsJson::new(&row.totals, None),
            }
        };
        object.serialize_field("heaps", &report.by_heap.iter().map(heap).collect::<Vec<_>>())?;
        let histograms: Vec<HistogramJson> = report.histograms.iter().map(HistogramJson::from).collect();
        object.serialize_field("histograms", &histograms)?;
        // The first ranking stands at the top, where the simplest script finds it; all others in `sections`.
        let is_ranking = |section: &&Section| matches!(section.answer, Answer::Ranking(_));
        let first = report.sections.iter().find(is_ranking);
        let groups = first.map_or(&[][..], |section| match &section.answer {
            Answer::Ranking(ranking) => &ranking.groups,
            Answer::Tree(_) => &[],
        });
        if let Some(Section { action, answer: Answer::Ranking(ranking) }) = first {
            let (name, sort) = action_name(action);
            object.serialize_field("action", name)?;
            object.serialize_field("sort", sort)?;
            object.serialize_field("group_count", &ranking.group_count)?;
            object.serialize_field("rest", &MetricsJson::from(&ranking.rest))?;
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

/// An action's name on the command line, and its sort key's.
pub(crate) fn action_name(action: &Action) -> (&'static str, &'static str) {
    match action {
        Action::Ranking { by, sort } => {
            let name = match by {
                GroupBy::Stacks => "stacks",
                GroupBy::Frames => "frames",
                GroupBy::Images => "images",
                GroupBy::Threads => "by-thread",
            };
            (name, sort.name())
        }
        Action::TopDown { sort } => ("invert", sort.name()),
        Action::Callers { sort, .. } => ("callers", sort.name()),
    }
}
