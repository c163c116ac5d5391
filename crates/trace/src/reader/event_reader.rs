//! The events of a trace and its checkpoints, read chunk by chunk.

use super::Trace;
use crate::blocks::{BLOCK_STREAMS, take_blocks};
use crate::chunk::{CHUNK_HEADER_BYTES, ChunkInfo, ChunkKind};
use crate::error::{Damage, Error, Malformed, Result};
use crate::events::{EVENT_STREAMS, EventDecoder};
use crate::*;

/// The live blocks at a time.
#[derive(Debug)]
pub struct Checkpoint {
    /// Time of the checkpoint: all events up to and including this time have happened.
    pub time_ns: u64,
    /// Number of events before the checkpoint.
    pub event_index: u64,
    /// The blocks, in order of process, heap and address.
    pub blocks: Vec<Block>,
}

impl Trace {
    /// The events of `from_ns..to_ns`, chunk by chunk; only chunks that hold some of them are read.
    #[must_use]
    pub fn events(&self, from_ns: u64, to_ns: u64) -> EventReader<'_> {
        let chunks = self
            .of_kind(ChunkKind::Events)
            .filter(|chunk| chunk.last_ns >= from_ns && chunk.first_ns < to_ns)
            .copied()
            .collect();
        EventReader {
            trace: self,
            chunks,
            next: 0,
            from_ns,
            to_ns,
            decoder: EventDecoder::new(),
            events: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The chunks of events, in the order of the file.
    pub fn event_chunks(&self) -> impl Iterator<Item = &ChunkInfo> {
        self.of_kind(ChunkKind::Events)
    }

    /// All events except those of the first `chunk_count` chunks of events. For a file that grows,
    /// these are the added ones.
    #[must_use]
    pub fn events_behind(&self, chunk_count: usize) -> EventReader<'_> {
        let mut reader = self.events(0, u64::MAX);
        reader.chunks = self.event_chunks().skip(chunk_count).copied().collect();
        reader
    }

    /// The events after a checkpoint and before `to_ns`. A checkpoint lies between two chunks of
    /// events, so that earlier events of the same nanosecond are excluded.
    #[must_use]
    pub fn events_after(&self, checkpoint: &Checkpoint, to_ns: u64) -> EventReader<'_> {
        let mut before = 0_u64;
        let mut reader = self.events(0, to_ns);
        let is_after = |chunk: &ChunkInfo| {
            let is_after = before >= checkpoint.event_index;
            before += u64::from(chunk.item_count);
            is_after
        };
        reader.chunks.retain(is_after);
        reader
    }

    /// The last checkpoint at or before a time.
    ///
    /// # Errors
    /// The checkpoint is damaged.
    pub fn checkpoint_before(&self, time_ns: u64) -> Result<Option<Checkpoint>> {
        let is_part = |chunk: &ChunkInfo| chunk.kind == Some(ChunkKind::Checkpoint);
        let mut end = self.chunks.len();
        // From the last one back: an incomplete checkpoint (the file ends within it) is skipped.
        while let Some(last) =
            self.chunks[..end].iter().rposition(|chunk| is_part(chunk) && chunk.first_ns <= time_ns)
        {
            let at_ns = self.chunks[last].first_ns;
            let before =
                self.chunks[..last].iter().rposition(|chunk| !is_part(chunk) || chunk.first_ns != at_ns);
            let first = before.map_or(0, |before| before + 1);
            if let Some((begin, blocks)) = self.blocks_of(first, last)? {
                let events =
                    self.chunks[..begin].iter().filter(|chunk| chunk.kind == Some(ChunkKind::Events));
                let event_index = events.map(|chunk| u64::from(chunk.item_count)).sum();
                return Ok(Some(Checkpoint { time_ns: at_ns, event_index, blocks }));
            }
            end = first;
        }
        Ok(None)
    }

    /// The last checkpoint in these chunks of one time, with the index of its first chunk; `None`
    /// if parts are missing.
    fn blocks_of(&self, first: usize, last: usize) -> Result<Option<(usize, Vec<Block>)>> {
        let mut blocks = Vec::new();
        let (mut begin, mut expected, mut is_whole) = (first, 0, false);
        for (place, info) in self.chunks.iter().enumerate().take(last + 1).skip(first) {
            let streams = self.streams::<BLOCK_STREAMS>(info)?;
            let known = blocks.len();
            let (count, counts) = (info.item_count as usize, (self.stacks().len(), self.processes.len()));
            let (part, is_last) = take_blocks(&streams, count, info.first_ns, counts, &mut blocks)
                .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
            if part == 0 {
                // A later checkpoint of the same nanosecond begins.
                blocks.drain(..known);
                (begin, expected) = (place, 0);
            }
            is_whole = is_last && part == expected;
            expected = expected.wrapping_add(1);
        }
        Ok(is_whole.then_some((begin, blocks)))
    }
}

/// Events of a range, in batches of a chunk each.
#[derive(Debug)]
pub struct EventReader<'a> {
    trace: &'a Trace,
    chunks: Vec<ChunkInfo>,
    next: usize,
    from_ns: u64,
    to_ns: u64,
    decoder: EventDecoder,
    events: Vec<Event>,
    damage: Vec<Damage>,
}

impl EventReader<'_> {
    /// The next events, in order of time; `None` at the end. A damaged chunk is left out (see
    /// [`EventReader::damage`]).
    ///
    /// # Errors
    /// Reading the file fails.
    pub fn next_batch(&mut self) -> Result<Option<&[Event]>> {
        loop {
            let Some(&info) = self.chunks.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.events.clear();
            let decoded = match self.trace.streams::<EVENT_STREAMS>(&info) {
                Ok(streams) => self.decoder.decode(
                    &streams,
                    info.first_ns,
                    info.item_count as usize,
                    self.trace.stacks().len(),
                    &mut self.events,
                ),
                Err(Error::Damaged { what, .. }) => Err(Malformed(what)),
                Err(error) => return Err(error),
            };
            if let Err(Malformed(what)) = decoded {
                let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(info.stored_bytes);
                self.damage.push(Damage { offset: info.offset, bytes, what });
            }
            let start = self.events.partition_point(|event| event.time_ns < self.from_ns);
            let end = self.events.partition_point(|event| event.time_ns < self.to_ns);
            if start < end {
                return Ok(Some(&self.events[start..end]));
            }
        }
    }

    /// Chunks of events that could not be used so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Numbers of chunks read and in all, for a progress display.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.next, self.chunks.len())
    }
}
