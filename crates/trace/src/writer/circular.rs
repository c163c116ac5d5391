//! Circular logging: the newest events are held in memory until the end.

use std::io::Write;

use super::TraceWriter;
use crate::error::Result;
use crate::events::{EventColumns, EventDecoder};
use crate::window::{EventWindow, birth};
use crate::{Event, ProcessIndex};

/// Facts of a circular trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowEnd {
    /// Start of the window. Of earlier blocks only those that were still live then are known.
    pub start_ns: u64,
    /// Number of discarded events.
    pub dropped_event_count: u64,
    /// Number of events in the file, including the allocations of the blocks that were live at the
    /// start.
    pub event_count: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Holds events in memory from now on, the newest in about `limit_bytes`, until
    /// [`TraceWriter::end_window`].
    pub fn keep_window(&mut self, limit_bytes: u64) {
        self.window = Some(EventWindow::new(limit_bytes));
    }

    /// Whether a window needs a checkpoint before it can discard older events.
    #[must_use]
    pub fn window_wants_checkpoint(&self) -> bool {
        self.window.as_ref().is_some_and(EventWindow::wants_checkpoint)
    }

    /// Number of events that a window has discarded.
    #[must_use]
    pub fn dropped_event_count(&self) -> u64 {
        self.window.as_ref().map_or(0, EventWindow::dropped_event_count)
    }

    /// Writes a window into the file, and passes each event with its process to `visit`. The
    /// allocations of blocks that are live at the window's begin come first, then its events.
    /// Returns `None` if there is no window.
    pub fn end_window(&mut self, mut visit: impl FnMut(&Event, ProcessIndex)) -> Result<Option<WindowEnd>> {
        if self.window.is_none() {
            return Ok(None);
        }
        self.write_events()?;
        let Some(window) = self.window.take() else { return Ok(None) };
        let dropped_event_count = window.dropped_event_count();
        let (blocks, chunks) = window.end()?;
        let start_ns = match (dropped_event_count, chunks.front()) {
            (1.., Some(first)) => first.header.first_ns,
            _ => 0,
        };
        let mut event_count = blocks.len() as u64;
        // These times lie before the last event of the recording, so that fresh columns are needed.
        self.events = EventColumns::new();
        for block in &blocks {
            let event = birth(block);
            visit(&event, block.process);
            self.event(&event)?;
        }
        drop(blocks);
        self.write_events()?;
        let mut decoder = EventDecoder::new();
        let mut events = Vec::new();
        for chunk in chunks {
            events.clear();
            chunk.events(&mut decoder, &mut events)?;
            event_count += events.len() as u64;
            for event in &events {
                let process = self.thread_processes.get(event.thread.0 as usize);
                visit(event, process.copied().unwrap_or_default());
            }
            self.write_chunk(chunk.header, chunk.payload)?;
        }
        Ok(Some(WindowEnd { start_ns, dropped_event_count, event_count }))
    }
}
