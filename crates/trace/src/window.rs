//! The newest events of a recording, held in memory until its end (circular logging).
//!
//! ```text
//! oldest                                                                      newest
//! +------------+--------+--------+------------+--------+--------+--------+
//! | checkpoint | events | events | checkpoint | events | events | events |  <- the next chunk
//! +------------+--------+--------+------------+--------+--------+--------+
//! '------- discarded together ------'
//! ```
//!
//! A window always begins at a checkpoint (or at the session's start). So the blocks that are live
//! then are known with their stacks and ages. Checkpoints are written every eighth of the window,
//! or less often where the live blocks take more than that. The window then exceeds its limit by at
//! most three times the size of the live blocks.
//!
//! At the end the writer puts an allocation for each block that is live at the window's begin
//! before the events of the window. The result is an ordinary trace for any reader. It holds every
//! outstanding block with its true time.

use std::collections::VecDeque;

use crate::blocks::{BLOCK_STREAMS, take_blocks};
use crate::chunk::{ChunkHeader, ChunkKind};
use crate::error::{Error, Malformed, Result};
use crate::events::{EVENT_STREAMS, EventDecoder};
use crate::payload::unpack;
use crate::{Action, Block, Event};

/// Number of checkpoints in a window that is much larger than its live blocks.
const CHECKPOINTS_PER_WINDOW: u64 = 8;

/// A chunk that is not yet written to the file.
#[derive(Debug)]
pub(crate) struct HeldChunk {
    pub(crate) header: ChunkHeader,
    pub(crate) payload: Vec<u8>,
    /// True for the first chunk of a checkpoint.
    begins_checkpoint: bool,
}

impl HeldChunk {
    fn bytes(&self) -> u64 {
        self.payload.len() as u64 + size_of::<Self>() as u64
    }

    fn is_checkpoint(&self) -> bool {
        self.header.kind == ChunkKind::Checkpoint as u16
    }

    fn streams<const N: usize>(&self) -> Result<[Vec<u8>; N]> {
        unpack(&self.payload, self.header.raw_bytes).map_err(own_fault)
    }

    /// Appends the events of a chunk of events to `out`.
    pub(crate) fn events(&self, decoder: &mut EventDecoder, out: &mut Vec<Event>) -> Result<()> {
        if self.header.kind != ChunkKind::Events as u16 {
            return Ok(());
        }
        let streams = self.streams::<EVENT_STREAMS>()?;
        let count = self.header.item_count as usize;
        decoder.decode(&streams, self.header.first_ns, count, usize::MAX, out).map_err(own_fault)
    }
}

/// Converts a decoding error of a chunk that this process wrote: its memory must have been damaged.
fn own_fault(Malformed(what): Malformed) -> Error {
    Error::Damaged { offset: 0, what }
}

/// The window: chunks of events and checkpoints in memory.
#[derive(Debug)]
pub(crate) struct EventWindow {
    limit_bytes: u64,
    held_bytes: u64,
    /// Bytes of the held chunks of events.
    event_bytes: u64,
    chunks: VecDeque<HeldChunk>,
    /// Bytes of the newest checkpoint.
    checkpoint_bytes: u64,
    bytes_since_checkpoint: u64,
    dropped_event_count: u64,
}

impl EventWindow {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: 0,
            event_bytes: 0,
            chunks: VecDeque::new(),
            checkpoint_bytes: 0,
            bytes_since_checkpoint: 0,
            dropped_event_count: 0,
        }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of discarded events.
    pub(crate) fn dropped_event_count(&self) -> u64 {
        self.dropped_event_count
    }

    /// Whether the next checkpoint is due, so that older events can be discarded.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        let due = (self.limit_bytes / CHECKPOINTS_PER_WINDOW).max(self.checkpoint_bytes);
        self.bytes_since_checkpoint >= due
    }

    /// Adds the next chunk, of events or of a checkpoint (`part`: its index in the checkpoint).
    pub(crate) fn push(&mut self, header: ChunkHeader, payload: Vec<u8>, part: Option<u32>) {
        let chunk = HeldChunk { header, payload, begins_checkpoint: part == Some(0) };
        let bytes = chunk.bytes();
        self.held_bytes += bytes;
        match part {
            None => {
                self.event_bytes += bytes;
                self.bytes_since_checkpoint += bytes;
            }
            Some(0) => (self.checkpoint_bytes, self.bytes_since_checkpoint) = (bytes, 0),
            Some(_) => self.checkpoint_bytes += bytes,
        }
        self.chunks.push_back(chunk);
    }

    /// Discards the oldest chunks, if the remaining events fill at least half of the window. Must
    /// not be called within a checkpoint.
    pub(crate) fn trim(&mut self) {
        while self.held_bytes > self.limit_bytes {
            let next = self.chunks.iter().skip(1).position(|chunk| chunk.begins_checkpoint);
            let Some(next) = next.map(|next| next + 1) else { return };
            let oldest = self.chunks.iter().take(next).filter(|chunk| !chunk.is_checkpoint());
            let oldest_bytes: u64 = oldest.map(HeldChunk::bytes).sum();
            if self.event_bytes - oldest_bytes < self.limit_bytes / 2 {
                return;
            }
            self.event_bytes -= oldest_bytes;
            for chunk in self.chunks.drain(..next) {
                self.held_bytes -= chunk.bytes();
                if !chunk.is_checkpoint() {
                    self.dropped_event_count += u64::from(chunk.header.item_count);
                }
            }
        }
    }

    /// Ends the window. Returns the blocks that are live at its begin, in order of their times, and
    /// its chunks.
    pub(crate) fn end(self) -> Result<(Vec<Block>, VecDeque<HeldChunk>)> {
        let mut blocks = Vec::new();
        if self.chunks.front().is_some_and(|chunk| chunk.begins_checkpoint) {
            let others = self.chunks.iter().skip(1);
            let part_count =
                1 + others.take_while(|chunk| chunk.is_checkpoint() && !chunk.begins_checkpoint).count();
            for chunk in self.chunks.iter().take(part_count) {
                let streams = chunk.streams::<BLOCK_STREAMS>()?;
                let (count, time_ns) = (chunk.header.item_count as usize, chunk.header.first_ns);
                take_blocks(&streams, count, time_ns, (usize::MAX, usize::MAX), &mut blocks)
                    .map_err(own_fault)?;
            }
        }
        blocks.sort_by_key(|block| block.alloc_ns);
        Ok((blocks, self.chunks))
    }
}

/// The allocation of a block that is live at a window's begin.
pub(crate) fn birth(block: &Block) -> Event {
    Event {
        time_ns: block.alloc_ns,
        thread: block.thread,
        heap: block.heap,
        action: Action::Alloc {
            address_avma: block.address_avma,
            size_bytes: block.size_bytes,
            stack: block.stack,
            is_moved_realloc: block.is_realloc,
        },
    }
}
