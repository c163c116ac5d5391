//! Builds a session's status from the recorder's data.

use std::sync::atomic::Ordering::Relaxed;

use crate::status::PROCESSES_LISTED_MAX;
use crate::{Session, SessionState, SessionStatus};

impl Session {
    /// Returns the current status.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        let properties = self.properties();
        let recorder = self.recorder();
        let statistics = recorder.statistics();
        let totals = recorder.sink.summary.totals();
        let live = recorder.sink.summary.live();
        let claimed = u64::from(recorder.pool().control().buffers_claimed.load(Relaxed));
        let buffer_count = properties.max_buffers as u64;
        SessionStatus {
            name: properties.name.clone(),
            state: if self.is_full() { SessionState::Full } else { SessionState::Recording },
            mode: properties.mode.name().to_owned(),
            recorder_pid: std::process::id(),
            output: properties.output.clone().into_os_string(),
            start_unix_ns: self.start_unix_ns(),
            duration_ns: recorder.clock().now_ns(),
            buffer_bytes: properties.buffer_bytes as u64,
            buffer_count,
            buffers_free: buffer_count.saturating_sub(claimed),
            buffers_claimed_max: statistics.buffers_claimed_max,
            buffers_written: statistics.buffers_written,
            wait_count: statistics.wait_count,
            event_count: recorder.sink.event_count,
            events_lost: statistics.loss.missing_events(),
            stacks_lost: statistics.loss.stacks_lost,
            events_late: statistics.loss.events_late,
            records_invalid: statistics.loss.records_invalid,
            processes_refused: statistics.loss.processes_refused,
            events_dropped: recorder.sink.writer.dropped_event_count(),
            file_bytes: recorder.sink.writer.written_bytes(),
            sample: recorder.sample_rate().map(|(rate, _)| rate.to_text()),
            sample_mean_bytes: recorder.sample_rate().map_or(0, |(_, mean_bytes)| mean_bytes),
            live_count: live.count.value,
            live_count_plus_minus: live.count_plus_minus(),
            live_bytes: live.bytes.value,
            live_bytes_plus_minus: live.bytes_plus_minus(),
            peak_bytes: totals.peak_bytes,
            peak_bytes_plus_minus: totals.amounts().at_peak().bytes_plus_minus(),
            peak_time_ns: totals.peak_time_ns,
            marker_count: self.marker_count(),
            snapshot_count: recorder.snapshot_count(),
            stacks: properties.stacks.to_text(),
            write_error: recorder.sink.write_error.as_ref().map(ToString::to_string),
            flag_watch: None,
            remarks: Vec::new(),
            process_count: recorder.process_count() as u64,
            live_process_count: recorder.live_process_count() as u64,
            processes: recorder.process_statuses(PROCESSES_LISTED_MAX),
        }
    }
}
