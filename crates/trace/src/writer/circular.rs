//! Circular logging: the newest events wait in memory until the end.

use std::io::Write;

use super::TraceWriter;
use crate::error::Result;
use crate::events::{EventColumns, EventDecoder};
use crate::window::{EventWindow, birth};
use crate::{Event, ProcessIndex};

/// What a circular trace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowEnd {
    /// Before, only what was still live then is known; after, everything.
    pub start_ns: u64,
    /// Events that were thrown away.
    pub dropped_event_count: u64,
    /// Events in the file, with the allocations of the blocks that were live at the start.
    pub event_count: u64,
}

impl<W: Write> TraceWriter<W> {
    /// From now on holds events in memory, the newest in about so many bytes, until
    /// [`TraceWriter::end_window`].
    pub fn keep_window(&mut self, limit_bytes: u64) {
        self.window = Some(EventWindow::new(limit_bytes));
    }

    /// Whether a window needs a checkpoint before it can throw away older events.
    #[must_use]
    pub fn window_wants_checkpoint(&self) -> bool {
        self.window.as_ref().is_some_and(EventWindow::wants_checkpoint)
    }

    /// Events that a window has thrown away.
    #[must_use]
    pub fn dropped_event_count(&self) -> u64 {
        self.window.as_ref().map_or(0, EventWindow::dropped_event_count)
    }

    /// Writes a window into the file, showing each event and its process: first the allocations of
    /// what was live when the window begins, then its events. `None`: there is no window.
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
        // Earlier than the last event of the recording: columns of their own.
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
