//! Continuing a recording in another file, which begins with all earlier definitions.

use std::io::Write;

use super::{TraceWriter, put_header};
use crate::chunk::{ChunkHeader, ChunkKind};
use crate::error::Result;
use crate::events::EventColumns;
use crate::window::birth;
use crate::{Block, Statistic};

/// Chunks of definitions as they were written; each next file begins with them.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    chunks: Vec<(ChunkHeader, Vec<u8>)>,
}

impl Definitions {
    /// Remembers a chunk, if later ones may refer to it.
    pub(super) fn keep(&mut self, header: &ChunkHeader, payload: &[u8]) {
        let is_definition = matches!(
            ChunkKind::from_number(header.kind),
            Some(
                ChunkKind::System
                    | ChunkKind::Session
                    | ChunkKind::Processes
                    | ChunkKind::Threads
                    | ChunkKind::Modules
                    | ChunkKind::Mappings
                    | ChunkKind::Stacks
                    | ChunkKind::HeapNames
                    | ChunkKind::Notices
                    | ChunkKind::Functions
                    | ChunkKind::Sampling
            )
        );
        if is_definition {
            self.chunks.push((*header, payload.to_vec()));
        }
    }
}

impl<W: Write> TraceWriter<W> {
    /// Remembers definitions, because other files follow this one. Must be called before anything
    /// is written.
    pub fn keep_definitions(&mut self) {
        self.definitions = Some(Definitions::default());
    }

    /// Continues in another file, whether or not the present one was finished or could be written.
    /// `live`: the blocks at that moment, by time of allocation, which the new file allocates at
    /// its start. `about`: statistics of the new file. Requires [`TraceWriter::keep_definitions`].
    pub fn go_on_in(&mut self, sink: W, live: &[Block], about: &[Statistic]) -> Result<()> {
        // Waiting chunks hold definitions. With `has_failed` these are remembered, but not written.
        self.has_failed = true;
        while !self.waiting.is_empty() {
            let _ = self.write_waiting(true);
        }
        let _ = self.write_definitions();
        self.sink = sink;
        self.offset = 0;
        self.index.clear();
        self.has_failed = false;
        self.offset = put_header(&mut self.sink, self.version).inspect_err(|_| self.has_failed = true)?;
        let definitions = self.definitions.take().unwrap_or_default();
        let mut outcome = Ok(());
        for (header, payload) in &definitions.chunks {
            outcome = outcome.and_then(|()| self.write_now(header, payload));
        }
        self.definitions = Some(definitions);
        outcome?;
        for statistic in about {
            self.statistic(&statistic.name, statistic.value)?;
        }
        // These times lie before the last event, so that fresh columns are needed.
        self.events = EventColumns::new();
        self.later = None;
        for block in live {
            self.event(&birth(block))?;
        }
        self.write_events()
    }
}
