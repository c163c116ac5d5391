//! Stacks whose blocks pin free memory: a heap walk joined with a recording.

use std::collections::HashMap;

use heapr_export::frame_text::frame_name;
use heapr_query::json::FrameJson;
use heapr_query::{CullList, GroupBy, OwnCode, StackGroups};
use heapr_resident::BlockWatcher;
use heapr_table::SortRows as _;
use heapr_trace::{Snapshot, StackIndex, Trace};
use serde_json::{Value, json};

use crate::report::names::TraceNames;

/// Recorded live blocks of a process.
#[derive(Debug, Default)]
pub(super) struct RecordedBlocks {
    /// Address, requested bytes, stack; sorted by address.
    blocks: Vec<(u64, u64, StackIndex)>,
    pins: HashMap<Option<StackIndex>, Pin>,
    /// Blocks of the walk that were recorded.
    pub(super) known: BlockSum,
    /// Number of blocks of the walk that were not recorded.
    pub(super) others: u64,
}

/// Number of blocks, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockSum {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// Free bytes that the blocks of one stack pin.
#[derive(Debug, Clone, Copy, Default)]
struct Pin {
    free_bytes: u64,
    blocks: BlockSum,
    /// Address of the block counted last: a block may lie in two pages.
    last_avma: u64,
}

impl RecordedBlocks {
    /// Reads the blocks of a process in a snapshot of a trace.
    pub(super) fn of(trace: &Trace, snapshot: &Snapshot, pid: u32) -> anyhow::Result<Self> {
        let is_of = |process: heapr_trace::ProcessIndex| {
            trace.processes().get(process.0 as usize).is_some_and(|process| process.pid == pid)
        };
        let mut blocks = Vec::new();
        trace.for_each_snapshot_block(snapshot, |block| {
            if is_of(block.process) && block.heap == heapr_trace::HeapId::MALLOC {
                blocks.push((block.address_avma, block.size_bytes, block.stack));
            }
        })?;
        blocks.sort_unstable();
        Ok(Self { blocks, ..Self::default() })
    }

    fn find(&self, block_avma: u64) -> Option<&(u64, u64, StackIndex)> {
        let place = self.blocks.binary_search_by_key(&block_avma, |(address_avma, ..)| *address_avma).ok()?;
        self.blocks.get(place)
    }

    /// Returns the stacks by the free bytes that their blocks pin, the most first.
    pub(super) fn pinned_by(&self, trace: &Trace, names: &mut TraceNames, own: &OwnCode) -> Vec<PinnedBy> {
        let stacks = self.pins.keys().flatten().copied();
        let groups = StackGroups::of_all(trace, stacks, GroupBy::Stacks, &CullList::built_in(), names);
        let mut sums: HashMap<Option<u32>, Pin> = HashMap::new();
        for (stack, pin) in &self.pins {
            let sum = sums.entry(stack.and_then(|stack| groups.group_of(stack))).or_default();
            sum.free_bytes += pin.free_bytes;
            sum.blocks.count += pin.blocks.count;
            sum.blocks.bytes += pin.blocks.bytes;
        }
        let mut pinned: Vec<PinnedBy> = sums
            .into_iter()
            .map(|(group, pin)| {
                let frames = group.map_or_else(Vec::new, |group| groups.frames(group));
                let own_frame = own.place(&frames).and_then(|place| frames.get(place)).map(frame_name);
                let told = json!(frames.iter().map(FrameJson::from).collect::<Vec<_>>());
                let frames = frames.iter().map(frame_name).collect();
                PinnedBy { free_bytes: pin.free_bytes, blocks: pin.blocks, frames, told, own_frame }
            })
            .collect();
        pinned.sort_rows_by(|a, b| b.free_bytes.cmp(&a.free_bytes).then_with(|| a.frames.cmp(&b.frames)));
        pinned
    }
}

impl BlockWatcher for RecordedBlocks {
    fn asked_bytes(&mut self, block_avma: u64) -> Option<u64> {
        let found = self.find(block_avma).map(|(_, bytes, _)| *bytes);
        match found {
            Some(bytes) => {
                self.known.count += 1;
                self.known.bytes += bytes;
            }
            None => self.others += 1,
        }
        found
    }

    fn pinned_page(&mut self, free_bytes: u64, block_avmas: &[u64]) {
        let Some(count) = std::num::NonZeroU64::new(block_avmas.len() as u64) else { return };
        // The blocks of a page share its free bytes.
        let (share, mut rest) = (free_bytes / count, free_bytes % count);
        for block_avma in block_avmas {
            let found = self.find(*block_avma).copied();
            let pin = self.pins.entry(found.map(|(_, _, stack)| stack)).or_default();
            pin.free_bytes += share + std::mem::take(&mut rest);
            if *block_avma > pin.last_avma {
                pin.last_avma = *block_avma;
                pin.blocks.count += 1;
                pin.blocks.bytes += found.map_or(0, |(_, bytes, _)| bytes);
            }
        }
    }
}

/// Stack whose blocks pin free memory.
#[derive(Debug, Clone)]
pub(super) struct PinnedBy {
    pub(super) free_bytes: u64,
    pub(super) blocks: BlockSum,
    /// Names of frames, innermost first; empty if not recorded.
    pub(super) frames: Vec<String>,
    /// Frames as JSON.
    told: Value,
    /// Name of the own frame.
    pub(super) own_frame: Option<String>,
}

impl PinnedBy {
    /// Returns a short name of the stack.
    pub(super) fn name(&self) -> String {
        match (&self.own_frame, self.frames.as_slice()) {
            (Some(own), _) => own.clone(),
            (None, []) => "blocks that were not recorded".to_owned(),
            (None, [first, ..]) => first.clone(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "free_bytes": self.free_bytes,
            "block_count": self.blocks.count,
            "block_bytes": self.blocks.bytes,
            "own_frame": self.own_frame,
            "frames": self.told,
        })
    }
}
