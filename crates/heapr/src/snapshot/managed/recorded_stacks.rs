//! Stacks of native blocks, from the session that records the process.
//!
//! ```text
//! time of the session ──> the process stands still ──> snapshot of the session
//!        a block that is older than the first and lives at the last was the same all along
//! ```

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;
use heapr_managed::{CallText, ManagedHeap, NodeKind};
use heapr_query::{CullList, FrameView, GroupBy, StackGroups, file_name};
use heapr_session::{Answer, EARLIER_BLOCKS_MODULE, ProcessStatus, Request, SessionState};
use heapr_trace::StackIndex;

use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::native::Watcher;

/// Name of the session's snapshot, by which it is told from the user's.
const SNAPSHOT_NAME: &str = "stacks of blocks";

/// Number of innermost native frames that are shown of a stack with Python's functions.
const NATIVE_FRAMES: usize = 3;

/// Session that records a process, before the process stands still.
pub(super) struct RecordedStacks {
    watcher: Watcher,
    pid: u32,
    /// Time of the session, in ns: older blocks are known.
    since_ns: u64,
}

impl RecordedStacks {
    /// Finds the session that records a process; `None` if no session does.
    pub(super) fn before(pid: u32) -> Option<Self> {
        let watcher = crate::snapshot::native::watched(&[pid]).0.into_iter().next()?;
        let Ok(Answer::Status(status)) = watcher.client.ask(Request::Status) else { return None };
        Some(Self { watcher, pid, since_ns: status.duration_ns })
    }

    /// Adds the stacks of blocks to a heap that was taken since. What prevents that is among the
    /// notes of the heap.
    pub(super) fn add_to(&self, heap: &mut ManagedHeap) {
        if let Err(error) = self.add(heap) {
            let name = self.watcher.client.name();
            heap.notes.push(format!("stacks of native blocks from session {name}: {error:#}"));
        }
    }

    /// Refuses a session that has missed events: a block may be another than the one it saw made.
    fn check_whole(&self) -> anyhow::Result<()> {
        let Answer::Status(status) = self.watcher.client.ask(Request::Status)? else {
            bail!("it answered something else: is it of the same heapr?")
        };
        let is_recorded = |it: &ProcessStatus| it.pid == self.pid && it.is_alive && it.disabled.is_none();
        if status.state != SessionState::Recording || !status.processes.iter().any(is_recorded) {
            bail!("it does not record the process any more");
        }
        if status.events_lost > 0 {
            bail!("{} events of it were lost, so that its blocks may be others by now", status.events_lost);
        }
        Ok(())
    }

    fn add(&self, heap: &mut ManagedHeap) -> anyhow::Result<()> {
        if !heap.nodes.iter().any(|node| heap.label_of(node).kind == NodeKind::Block) {
            return Ok(());
        }
        let request = Request::Snapshot { name: SNAPSHOT_NAME.to_owned(), pids: vec![self.pid], graph: None };
        let Answer::Snapshot(taken) = self.watcher.client.ask(request)? else {
            bail!("it answered something else: is it of the same heapr?")
        };
        self.check_whole()?;
        let trace = crate::trace_file::open(Path::new(&taken.output))?;
        let Some(snapshot) = trace.snapshot(taken.number) else { bail!("its snapshot is not in its file") };
        let mut stacks: HashMap<u64, StackIndex> = HashMap::new();
        let damage = trace.for_each_snapshot_block(snapshot, |block| {
            let is_of_it = trace.processes().get(block.process.0 as usize).map(|it| it.pid) == Some(self.pid);
            if is_of_it && block.alloc_ns < self.since_ns {
                stacks.insert(block.address_avma, block.stack);
            }
        })?;
        if !damage.is_empty() {
            bail!("its snapshot is damaged");
        }
        let found: Vec<(u32, StackIndex)> = heap
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| heap.label_of(node).kind == NodeKind::Block)
            .filter_map(|(number, node)| Some((number as u32, *stacks.get(&node.address_avma)?)))
            .collect();
        let mut names = TraceNames::new(&trace, &NameArguments::default());
        let wanted: Vec<StackIndex> = found.iter().map(|&(_, stack)| stack).collect();
        let groups = StackGroups::of_all(&trace, wanted, GroupBy::Stacks, &CullList::built_in(), &mut names);
        let mut known: HashMap<u32, u32> = HashMap::new();
        for (node, stack) in found {
            let Some(group) = groups.group_of(stack) else { continue };
            let number = match known.get(&group) {
                Some(&number) => number,
                None => {
                    let number = add_stack(heap, &groups, group);
                    known.insert(group, number);
                    number
                }
            };
            heap.set_stack(node, number);
        }
        Ok(())
    }
}

/// Adds a stack; returns its number, 0 of blocks from before the recording.
fn add_stack(heap: &mut ManagedHeap, groups: &StackGroups<'_>, group: u32) -> u32 {
    let frames = shown_frames(groups.frames(group));
    let names: Vec<String> = frames
        .iter()
        .map(|frame| match (frame.symbol, frame.module) {
            (Some(symbol), _) => symbol.to_owned(),
            (None, Some(module)) => format!("{}+{:#x}", file_name(module), frame.offset),
            (None, None) => format!("{:#x}", frame.offset),
        })
        .collect();
    let calls = frames.iter().zip(&names).rev().map(|(frame, name)| {
        // A function without a source is told by its module.
        let file = frame.file.or(frame.module.filter(|_| frame.symbol.is_some()));
        CallText { function: name, file: file.unwrap_or_default(), line: frame.line.unwrap_or(0) }
    });
    heap.stack(calls)
}

/// Frames of a stack that are shown: of one with Python's functions these, and the innermost native
/// ones. The others are the interpreter's, between its functions.
fn shown_frames(mut frames: Vec<FrameView<'_>>) -> Vec<FrameView<'_>> {
    if frames.iter().any(|frame| frame.module == Some(EARLIER_BLOCKS_MODULE)) {
        return Vec::new();
    }
    if frames.iter().any(FrameView::is_of_language) {
        let mut native_count = 0;
        frames.retain(|frame| {
            native_count += usize::from(!frame.is_of_language());
            frame.is_of_language() || native_count <= NATIVE_FRAMES
        });
    }
    frames
}
