//! End of a recording: everything that was published is read, counters and losses are written.

use std::sync::atomic::Ordering::Relaxed;

use heapr_ring::reader;
use heapr_trace::Loss;

use crate::recorder::Recorder;
use crate::recorder::state::statistics::{Statistics, ThreadCounters};

impl Recorder {
    /// Reads everything that was published, even from threads that are in the middle of an event.
    pub(crate) fn drain(&mut self) {
        self.is_final = true;
        self.round();
        // Requested snapshots are of live processes: taken before these count as ended.
        self.request_last_snapshot();
        self.finish_snapshots();
        let now_ns = self.clock.now_ns();
        self.look_at_go(u64::MAX);
        self.keep_house(now_ns);
        for place in 0..self.processes.len() {
            self.end_process(place, now_ns);
        }
    }

    /// Ends the recording: reads everything that was published and tells the agents.
    pub(crate) fn close(&mut self) {
        reader::close_session(&self.pool);
        self.drain();
        while !self.streams.is_empty() {
            let last = self.streams.len() - 1;
            self.retire_stream(last);
        }
        self.finish_snapshots();
        let loss = self.statistics().loss;
        if self.tell_losses(loss) {
            return;
        }
        let whole = Loss { events_lost: 0, stacks_lost: 0, ..loss };
        if whole != Loss::default() {
            let outcome = self.sink.writer.loss(None, None, whole);
            self.sink.keep(outcome);
        }
    }

    /// Finishes the file.
    pub(crate) fn finish(
        mut self,
        duration_ns: u64,
        statistics: Statistics,
    ) -> (heapr_trace::Summary, Option<heapr_trace::Error>) {
        self.write_statistics(statistics);
        self.sink.finish(duration_ns)
    }

    /// Writes the counters of the recording so far.
    pub(crate) fn write_statistics(&mut self, statistics: Statistics) {
        let named = [
            ("buffers_written", statistics.buffers_written),
            ("buffers_claimed_max", statistics.buffers_claimed_max),
            ("wait_count", statistics.wait_count),
            ("wait_ns", statistics.wait_ns),
            ("stacks_unwound", statistics.stack_count),
            ("frames_unwound", statistics.frames_unwound),
            ("rules_read", statistics.rule_miss_count),
            ("turns_in_spare_time", statistics.spare_turns),
            ("stacks_truncated", statistics.stacks_truncated),
            ("stacks_verified", statistics.verify_count),
            ("stacks_verified_mismatches", statistics.verify_mismatch_count),
        ];
        for (name, value) in named {
            let outcome = self.sink.writer.statistic(name, value);
            self.sink.keep(outcome);
        }
        if self.snapshots_left_out() > 0 {
            let outcome = self.sink.writer.statistic("snapshots_left_out", self.snapshots_left_out());
            self.sink.keep(outcome);
        }
    }

    /// Flushes the file, so that everything so far is readable after a crash.
    pub(crate) fn flush(&mut self) {
        self.sink.flush();
    }

    /// Returns the counters of the session so far, of live and ended threads.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        for stream in &self.streams {
            let Some(slot) = self.pool.thread_slot(stream.slot) else { continue };
            if slot.generation.load(Relaxed) != stream.generation {
                continue;
            }
            statistics.add_thread(ThreadCounters::read(slot));
        }
        let control = self.pool.control();
        statistics.loss.processes_refused = u64::from(control.processes_refused.load(Relaxed));
        statistics
    }
}
