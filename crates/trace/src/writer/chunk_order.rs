//! Order of chunks where a second thread packs some of them (see [`super::second_thread`]).

use std::io::{self, Write};

use super::second_thread::SecondThread;
use super::{TraceWriter, write_failed};
use crate::Event;
use crate::chunk::ChunkHeader;
use crate::error::Result;
use crate::events::EVENTS_PER_CHUNK;

/// Largest number of chunks that wait behind one of events. Between two of those are a few small
/// chunks, or the parts of a checkpoint.
const WAITING_MAX: usize = 32;

/// A chunk that is not yet packed, or one that waits behind it.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Job number of a chunk at the second thread.
    Later(u64),
    Ready(ChunkHeader, Vec<u8>),
}

impl<W: Write> TraceWriter<W> {
    /// Selects whether a second thread encodes and packs the events from the next chunk on. Meant
    /// for times at which the writer is behind. The file's bytes are the same, but up to 20 MiB
    /// more memory is needed, and some chunks are written later.
    pub fn use_second_thread(&mut self, is_wanted: bool) {
        let is_new = is_wanted != self.is_second_wanted;
        self.is_second_wanted = is_wanted;
        let is_begun = self.events.count > 0 || self.later.as_ref().is_some_and(|chunk| !chunk.is_empty());
        if is_new && !is_begun {
            self.begin_chunk();
        }
    }

    /// Adds events; faster than [`TraceWriter::event`] for each.
    ///
    /// # Errors
    /// Writing to the sink fails.
    pub fn events<'a>(&mut self, mut events: impl ExactSizeIterator<Item = &'a Event>) -> Result<()> {
        while events.len() > 0 {
            let is_full = match &mut self.later {
                Some(later) => {
                    let (is_full, last_ns) = later.fill(&mut events);
                    self.events.last_ns = self.events.last_ns.max(last_ns);
                    is_full
                }
                None => {
                    let room = EVENTS_PER_CHUNK.saturating_sub(self.events.count);
                    events = self.events.push_all(events, room);
                    self.events.count >= EVENTS_PER_CHUNK
                }
            };
            if is_full {
                self.write_events()?;
            }
        }
        Ok(())
    }

    /// Begins a chunk, and decides which thread packs it.
    pub(super) fn begin_chunk(&mut self) {
        self.later = None;
        // A window's chunks stay in memory, in its own order.
        if !self.is_second_wanted || self.window.is_some() {
            return;
        }
        if self.second_thread.is_none() {
            self.second_thread = SecondThread::start();
            // If a thread cannot start now, it will hardly start for the next chunk.
            self.is_second_wanted = self.second_thread.is_some();
        }
        let last_ns = self.events.last_ns;
        self.later = self.second_thread.as_mut().map(|second| second.begin_chunk(last_ns));
    }

    /// Ends the second thread and frees its memory, unless it is wanted. (Called at each flush, so
    /// that it does not come and go with every chunk.)
    pub(super) fn end_second_thread(&mut self) {
        if !self.is_second_wanted && self.later.is_none() && self.waiting.is_empty() {
            self.second_thread = None;
        }
    }

    /// Passes the current chunk to the second thread. Returns whether it has.
    pub(super) fn hand_over(&mut self) -> bool {
        let Some(chunk) = self.later.take_if(|chunk| !chunk.is_empty()) else { return false };
        let Some(second) = &mut self.second_thread else { return false };
        let number = second.push(chunk);
        self.waiting.push_back(Waiting::Later(number));
        true
    }

    /// Writes a chunk after those that wait.
    pub(super) fn write_chunk(&mut self, header: ChunkHeader, payload: Vec<u8>) -> Result<()> {
        if self.waiting.is_empty() {
            self.write_now(&header, &payload)?;
            self.packer.give_back(payload);
            return Ok(());
        }
        let payload = self.packer.without_room(payload);
        self.waiting.push_back(Waiting::Ready(header, payload));
        self.write_waiting(self.waiting.len() > WAITING_MAX)
    }

    /// Writes waiting chunks: up to the first that is not yet packed, or all if `is_all`.
    pub(super) fn write_waiting(&mut self, is_all: bool) -> Result<()> {
        while let Some(next) = self.waiting.pop_front() {
            let (header, payload) = match next {
                Waiting::Ready(header, payload) => (header, payload),
                Waiting::Later(number) => {
                    let taken = self.second_thread.as_mut().and_then(|second| second.take(number, is_all));
                    match taken {
                        Some(Some(packed)) => packed,
                        Some(None) => {
                            self.waiting.push_front(Waiting::Later(number));
                            return Ok(());
                        }
                        None => {
                            self.has_failed = true;
                            return Err(write_failed(io::Error::other("the thread that packs it has died")));
                        }
                    }
                }
            };
            self.write_now(&header, &payload)?;
        }
        Ok(())
    }
}
