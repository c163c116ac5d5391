//! Parts that the lists share: snapshots as JSON, groupings, search texts.

use heapr_query::{FrameView, GroupBy, Line, Taken, process_names};
use heapr_trace::{Snapshot, Trace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::series::Read;
use crate::host::Host;
use crate::ids::{frame_id, stack_id};
use crate::json::{LiveBlocks, SnapshotBlocks};

/// Grouping of the lines.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LinesBy {
    #[default]
    Stacks,
    Frames,
    Images,
}

impl From<LinesBy> for GroupBy {
    fn from(by: LinesBy) -> Self {
        match by {
            LinesBy::Stacks => Self::Stacks,
            LinesBy::Frames => Self::Frames,
            LinesBy::Images => Self::Images,
        }
    }
}

/// Whether a frame of a line contains a text, given in lower case.
pub(super) fn matches(line: &Line, text: &str) -> bool {
    text.is_empty() || line.frames.iter().any(|frame| frame.to_lowercase().contains(text))
}

/// Id of a line, if the series is of one file.
pub(super) fn line_id(read: &Read, line: &Line) -> Option<String> {
    let [(_, file)] = read.files.as_slice() else { return None };
    match read.by {
        GroupBy::Stacks => Some(stack_id(line.stack.key)),
        GroupBy::Frames => file.explorer.innermost_frame(line.stack.key).map(frame_id),
        _ => None,
    }
}

/// Index of the innermost frame of user code in a line's frames.
pub(super) fn own_place(read: &Read, line: &Line) -> Option<usize> {
    if read.by != GroupBy::Stacks {
        return None;
    }
    let (_, file) = read.files.get(line.stack.file)?;
    let (frames, removed) = file.explorer.stack_frames(line.stack.key)?;
    let views: Vec<FrameView<'_>> = frames.iter().skip(removed).map(|(_, view)| *view).collect();
    file.own.place(&views).filter(|&place| place < line.frames.len())
}

/// Bytes and blocks of a line in each snapshot.
pub(super) fn amounts(line: &Line) -> (Vec<u64>, Vec<u64>) {
    line.rows.iter().map(|row| (row.amount.bytes.value, row.amount.count.value)).unzip()
}

/// A snapshot of a series.
#[derive(Debug, Serialize)]
pub(super) struct TakenSnapshot {
    file: usize,
    number: u32,
    name: String,
    time_ns: u64,
    unix_ns: u64,
    trigger: String,
    #[serde(flatten)]
    blocks: LiveBlocks,
    processes: Vec<String>,
}

/// Snapshots of a series as JSON.
pub(super) fn taken(host: &dyn Host, read: &Read) -> Vec<TakenSnapshot> {
    let one = |taken: &Taken| TakenSnapshot {
        file: read.files[taken.file].0,
        number: taken.snapshot.number,
        name: taken.snapshot.name.clone(),
        time_ns: taken.snapshot.time_ns,
        unix_ns: taken.unix_ns,
        trigger: host.trigger(taken.snapshot.trigger),
        blocks: taken.amount.into(),
        processes: taken.processes.clone(),
    };
    read.series.taken.iter().map(one).collect()
}

/// A process in a snapshot.
#[derive(Debug, Serialize)]
struct SnapshotProcess {
    pid: Option<u32>,
    name: String,
    rss_bytes: Option<u64>,
    #[serde(flatten)]
    blocks: SnapshotBlocks,
}

/// A snapshot without its blocks.
#[derive(Debug, Serialize)]
pub(crate) struct NativeSnapshot {
    number: u32,
    time_ns: u64,
    event_index: u64,
    name: String,
    /// Reason of the snapshot in words.
    trigger: String,
    #[serde(flatten)]
    blocks: SnapshotBlocks,
    export_ns: u64,
    processes: Vec<SnapshotProcess>,
    notes: Vec<String>,
    /// Whether the file has the references of a process at that moment.
    has_graph: bool,
}

impl NativeSnapshot {
    /// Creates the JSON form. `trigger`: reason of the snapshot in words.
    pub(crate) fn new(trace: &Trace, snapshot: &Snapshot, trigger: String) -> Self {
        let names = process_names(trace, snapshot);
        let amounts = trace.snapshot_estimates(snapshot);
        let processes = snapshot.processes.iter().zip(names).zip(amounts);
        let processes = processes.map(|((process, name), amount)| SnapshotProcess {
            pid: trace.processes().get(process.process.0 as usize).map(|known| known.pid),
            name,
            rss_bytes: process.rss_bytes,
            blocks: amount.into(),
        });
        Self {
            number: snapshot.number,
            time_ns: snapshot.time_ns,
            event_index: snapshot.event_index,
            name: snapshot.name.clone(),
            trigger,
            blocks: trace.snapshot_estimate(snapshot).into(),
            export_ns: snapshot.export_ns,
            processes: processes.collect(),
            notes: snapshot.notes.clone(),
            has_graph: !trace.graph_processes(snapshot).is_empty(),
        }
    }
}

/// Converts a snapshot without its blocks. `trigger`: reason of the snapshot in words.
#[must_use]
pub fn snapshot_json(trace: &Trace, snapshot: &Snapshot, trigger: &str) -> Value {
    serde_json::to_value(NativeSnapshot::new(trace, snapshot, trigger.to_owned())).unwrap_or_default()
}
