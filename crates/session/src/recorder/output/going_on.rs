//! Closes the session's file and continues in the next one. Each file is complete by itself.
//!
//! The live blocks are written as allocations to the next file, too, with their true times. A
//! reader of that file alone finds every live block, its stack and its age.

use heapr_ledger::{CourseTaker, Observer as _, SummaryBuilder};
use heapr_trace::{Block, Loss, Statistic};

use crate::recorder::Recorder;
use crate::recorder::output::next_file::{NextFile, interval_ns};
use crate::recorder::output::sink::Sink;

/// Longest wait before the next try, if a next file could not be begun.
const AGAIN_NS: u64 = 60_000_000_000;

impl Sink {
    /// Finishes the present file and begins the next, for events after `start_ns`.
    fn go_on_in_next(&mut self, mut next: NextFile, start_ns: u64, now_ns: u64) -> NextFile {
        next.due_ns = now_ns.saturating_add(interval_ns(next.rotation).min(AGAIN_NS));
        let path = next.series.next_path();
        let _ = std::fs::remove_file(&path);
        let file = match heapr_trace::new_file(&path, false) {
            Ok(file) => file,
            // The present file is continued as far as possible.
            Err(error) => {
                self.keep(Err(error));
                return next;
            }
        };
        let mut blocks: Vec<Block> = self.ledger.sorted_blocks().collect();
        blocks.sort_by_key(|block| block.alloc_ns);
        let mut summary =
            self.summary.sampling().map_or_else(SummaryBuilder::new, SummaryBuilder::of_samples);
        blocks.iter().for_each(|block| summary.born(block));
        self.end_file(&mut next, summary, start_ns, now_ns);
        (next.events_before, next.births) = (self.event_count, blocks.len() as u64);
        let statistic = |name: &str, value| Statistic { name: name.to_owned(), value };
        let about = [
            statistic("window_start_ns", start_ns),
            statistic("events_before_window", self.event_count),
            statistic("files_before", next.closed_count + 1),
        ];
        let begun = self.writer.go_on_in(file, &blocks, &about).and_then(|()| self.writer.flush());
        let placed = begun.and_then(|()| {
            let placed = next.series.put_next_in_place();
            placed
                .map_err(|source| heapr_trace::Error::Io { action: "putting the next file in place", source })
        });
        self.write_error = placed.err();
        if self.write_error.is_some() {
            let _ = std::fs::remove_file(&path);
            return next;
        }
        next.closed_count += 1;
        next.begun_bytes = self.writer.written_bytes();
        next.due_ns = now_ns.saturating_add(interval_ns(next.rotation));
        next
    }

    /// Writes the present file's end.
    fn end_file(&mut self, next: &mut NextFile, following: SummaryBuilder, start_ns: u64, now_ns: u64) {
        next.is_full = false;
        self.events_since_checkpoint = 0;
        let course = std::mem::replace(&mut self.course, CourseTaker::since(start_ns));
        let mut summary = std::mem::replace(&mut self.summary, following).finish();
        summary.course = course.finish();
        summary.event_count = next.events_in_file(self.event_count);
        summary.duration_ns = now_ns;
        // A file that could not be finished is readable up to the failure.
        let outcome = self.writer.finish(&summary);
        self.keep(outcome);
    }
}

impl Recorder {
    /// Continues in the next file, if it is due and no snapshot is under way.
    pub(crate) fn go_on_in_next_if_due(&mut self) {
        let now_ns = self.clock.now_ns();
        let is_due = self.sink.next_file.as_ref().is_some_and(|next| next.is_due(now_ns));
        if !is_due || self.sink.has_snapshot() || self.has_snapshots_to_take() {
            return;
        }
        self.sink.take_pending();
        let statistics = self.statistics();
        self.tell_losses(statistics.loss);
        self.write_statistics(statistics);
        let outcome = self.sink.writer.statistic("files_after", 1);
        self.sink.keep(outcome);
        self.sink.end_processes_before(u64::MAX);
        // Blocks of ended processes stay outstanding in the files up to here.
        for process in self.processes.iter_mut().filter(|process| process.is_done && !process.is_forgotten) {
            process.is_forgotten = true;
            self.sink.ledger.drop_process(process.index);
        }
        let Some(next) = self.sink.next_file.take() else { return };
        let start_ns = self.sink.last_ns.max(self.watermark_ns);
        self.sink.next_file = Some(self.sink.go_on_in_next(next, start_ns, now_ns));
    }

    /// Writes the losses since the last file as one sum, because the counters of processes and
    /// threads cover all files. Returns `false` if the session has a single file.
    pub(crate) fn tell_losses(&mut self, loss: Loss) -> bool {
        let Some(next) = &mut self.sink.next_file else { return false };
        let told = std::mem::replace(&mut next.told, loss);
        let since = Loss {
            events_lost: loss.events_lost.saturating_sub(told.events_lost),
            stacks_lost: loss.stacks_lost.saturating_sub(told.stacks_lost),
            events_late: loss.events_late.saturating_sub(told.events_late),
            records_invalid: loss.records_invalid.saturating_sub(told.records_invalid),
            processes_refused: loss.processes_refused.saturating_sub(told.processes_refused),
        };
        if since != Loss::default() {
            let outcome = self.sink.writer.loss(None, None, since);
            self.sink.keep(outcome);
        }
        true
    }
}
