//! Answers computed from a graph. They are saved beside the indexes of snapshots: a second question
//! on a large file reads neither its blocks nor its references.

use std::rc::Rc;

use heapr_v8::SummaryStore;
use serde::{Deserialize, Serialize};

use super::graph_file::{ChosenGraph, GraphFile};
use super::held::{Held, HeldHeap};
use super::leak_sums::LeakSums;
use crate::output::end_output;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::kept_folder::directory_of;

/// Version of the saved answers' meaning.
const VERSION: u32 = 2;
/// Smallest file with saved answers, in bytes; smaller ones are read as quickly.
const LEAST_BYTES: u64 = 64 << 10;

/// Saved answers on a graph; each part as far as it was computed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    /// Bytes of all blocks.
    block_bytes: u64,
    leaks: Option<LeakSums>,
    holders: Option<Vec<(String, Held)>>,
}

/// Graph of a file, and the answers on it.
pub(super) struct GraphAnswers {
    pub(super) chosen: Rc<ChosenGraph>,
    names: NameArguments,
    file: Option<GraphFile>,
    known: Known,
    /// Store of saved answers; `None` if the file is read as quickly.
    store: Option<SummaryStore>,
    is_kept: bool,
}

impl GraphAnswers {
    pub(super) fn of(chosen: ChosenGraph, names: &NameArguments) -> Self {
        let store = directory_of(&chosen.path, LEAST_BYTES).map(SummaryStore::new);
        let known = store.as_ref().and_then(|store| store.load::<Known>(&chosen.path, &part(&chosen)));
        let known = known.filter(|known| known.fits(&chosen));
        Self {
            is_kept: known.as_ref().is_some_and(|known| known.leaks.is_some() && known.holders.is_some()),
            known: known.unwrap_or_default(),
            chosen: Rc::new(chosen),
            names: names.clone(),
            file: None,
            store,
        }
    }

    fn read(&mut self) -> anyhow::Result<&GraphFile> {
        if self.file.is_none() {
            let file = GraphFile::read(Rc::clone(&self.chosen))?;
            self.known.block_bytes = file.blocks.iter().map(|block| block.size_bytes).sum();
            self.file = Some(file);
        }
        self.file.as_ref().ok_or_else(|| anyhow::anyhow!("the graph is not there any more"))
    }

    /// Returns the bytes of all blocks.
    pub(super) fn block_bytes(&mut self) -> anyhow::Result<u64> {
        if self.known.leaks.is_none() && self.known.holders.is_none() {
            self.read()?;
        }
        Ok(self.known.block_bytes)
    }

    /// Returns the leaks.
    pub(super) fn leaks(&mut self) -> anyhow::Result<&LeakSums> {
        if self.known.leaks.is_none() {
            let mut names = TraceNames::new(&self.chosen.trace, &self.names);
            self.known.leaks = Some(LeakSums::of(self.read()?, &mut names)?);
        }
        Ok(self.known.leaks.get_or_insert_default())
    }

    /// Returns what each holder, or several together, hold alone, by name.
    pub(super) fn holders(&mut self) -> anyhow::Result<&[(String, Held)]> {
        if self.known.holders.is_none() {
            let file = self.read()?;
            let heap = HeldHeap::of(file)?;
            let held = heap.held(file, |_| true);
            self.known.holders = Some(heap.names.into_iter().zip(held).collect());
        }
        Ok(self.known.holders.get_or_insert_default())
    }

    /// Saves all answers. The output ends before, so that its reader need not wait.
    pub(super) fn keep(mut self) {
        let Some(store) = self.store.take().filter(|_| !self.is_kept) else { return };
        end_output();
        if self.leaks().is_err() || self.holders().is_err() {
            return;
        }
        let _ = store.store(&self.chosen.path, &part(&self.chosen), &self.known);
    }
}

fn part(chosen: &ChosenGraph) -> String {
    format!("graph{VERSION}-{}-{}", chosen.snapshot.number, chosen.process.0)
}

impl Known {
    /// Checks saved answers, which another program may have written.
    fn fits(&self, chosen: &ChosenGraph) -> bool {
        self.leaks.as_ref().is_none_or(|leaks| leaks.fits(chosen.trace.stacks().len()))
    }
}
