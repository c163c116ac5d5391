//! Closing the session's file and going on in the next: each is whole by itself.
//!
//! What is live then is allocated in the next file, too, with its true times, so that whoever reads
//! that one alone finds every live block, its stack and its age.

use heapr_ledger::{CourseTaker, Observer as _, SummaryBuilder};
use heapr_trace::{Block, Loss, Statistic};

use super::Recorder;
use crate::recorder::sink::Sink;
use crate::rotation::FileSeries;
use crate::{Error, Rotation, SessionProperties};

/// Where a next file could not be begun, the next try comes after this time or the interval.
const AGAIN_NS: u64 = 60_000_000_000;

/// When the next file is due, and what stands in the present one.
#[derive(Debug)]
pub(crate) struct NextFile {
    pub(crate) series: FileSeries,
    rotation: Rotation,
    due_ns: u64,
    /// It has the size at which the next is begun.
    pub(crate) is_full: bool,
    /// Bytes with which the present file began.
    begun_bytes: u64,
    /// Events that are only in earlier files.
    events_before: u64,
    /// Allocations with which the present file began, again.
    births: u64,
    /// Files closed.
    pub(crate) closed_count: u64,
    /// What is told in closed files of what is lost.
    told: Loss,
}

impl NextFile {
    /// Sets aside what an earlier recorder has left.
    pub(crate) fn begin(properties: &SessionProperties) -> Result<Option<Self>, Error> {
        let Some(rotation) = properties.rotation else { return Ok(None) };
        let path = &properties.output;
        let series = FileSeries::new(path, rotation.keep_count);
        let _ = std::fs::remove_file(series.next_path());
        if !series.is_taken_by_another() {
            series.close_present().map_err(|source| {
                let source = heapr_trace::Error::Io { action: "setting an earlier file aside", source };
                Error::Output { path: path.clone(), source }
            })?;
        }
        Ok(Some(Self {
            series,
            rotation,
            due_ns: interval_ns(rotation),
            is_full: false,
            begun_bytes: 0,
            events_before: 0,
            births: 0,
            closed_count: 0,
            told: Loss::default(),
        }))
    }

    /// Events in the present file, of all of the session.
    pub(crate) fn events_in_file(&self, event_count: u64) -> u64 {
        event_count.saturating_sub(self.events_before).saturating_add(self.births)
    }

    /// Whether it is time for the next file.
    fn is_due(&self, now_ns: u64) -> bool {
        self.is_full || now_ns >= self.due_ns
    }

    /// The size at which the next file is begun: never while this one holds little but what it
    /// began with.
    pub(crate) fn most_bytes(&self, most_bytes: u64) -> u64 {
        most_bytes.max(self.begun_bytes.saturating_mul(2))
    }
}

fn interval_ns(rotation: Rotation) -> u64 {
    u64::try_from(rotation.interval.as_nanos()).unwrap_or(u64::MAX)
}

impl Sink {
    /// Ends the present file and begins the next, of what comes after `start_ns`.
    fn go_on_in_next(&mut self, mut next: NextFile, start_ns: u64, now_ns: u64) -> NextFile {
        next.due_ns = now_ns.saturating_add(interval_ns(next.rotation).min(AGAIN_NS));
        let path = next.series.next_path();
        let _ = std::fs::remove_file(&path);
        let file = match heapr_trace::new_file(&path, false) {
            Ok(file) => file,
            // The present one goes on as it can.
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
        // (A file that could not be written is read up to where it was.)
        let outcome = self.writer.finish(&summary);
        self.keep(outcome);
    }
}

impl Recorder {
    /// Goes on in the next file, if it is time and nothing is under way that belongs into one.
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
        // What they held stays outstanding in the files up to here.
        for process in self.processes.iter_mut().filter(|process| process.is_done && !process.is_forgotten) {
            process.is_forgotten = true;
            self.sink.ledger.drop_process(process.index);
        }
        let Some(next) = self.sink.next_file.take() else { return };
        let start_ns = self.sink.last_ns.max(self.watermark_ns);
        self.sink.next_file = Some(self.sink.go_on_in_next(next, start_ns, now_ns));
    }

    /// Writes what was lost since the last file, of all owners together: what an owner counts goes
    /// over all files. `false`: there is only one.
    pub(super) fn tell_losses(&mut self, loss: Loss) -> bool {
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
