//! Status of a session in its C form.

use heapr_session::{SessionState, SessionStatus, SessionSummary};

/// State of a session.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct heapr_status {
    /// Not 0: the file has reached its largest size, and recording has ended.
    pub is_full: u32,
    /// Not 0: the file could not be written to its end.
    pub has_write_error: u32,
    /// Nanoseconds since the start.
    pub duration_ns: u64,
    /// Buffers that may be in use.
    pub buffer_count: u64,
    /// Buffers that are free.
    pub buffers_free: u64,
    /// Buffers taken to their end.
    pub buffers_written: u64,
    /// Events taken.
    pub event_count: u64,
    /// Events that found no buffer.
    pub events_lost: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Live blocks.
    pub live_count: u64,
    /// Bytes in live blocks.
    pub live_bytes: u64,
    /// Most bytes that were live at once.
    pub peak_bytes: u64,
    /// Process images seen.
    pub process_count: u64,
    /// Number of processes that run.
    pub live_process_count: u64,
}

impl heapr_status {
    pub(crate) fn of_status(status: &SessionStatus) -> Self {
        Self {
            is_full: u32::from(status.state == SessionState::Full),
            has_write_error: u32::from(status.write_error.is_some()),
            duration_ns: status.duration_ns,
            buffer_count: status.buffer_count,
            buffers_free: status.buffers_free,
            buffers_written: status.buffers_written,
            event_count: status.event_count,
            events_lost: status.events_lost,
            file_bytes: status.file_bytes,
            live_count: status.live_count,
            live_bytes: status.live_bytes,
            peak_bytes: status.peak_bytes,
            process_count: status.process_count,
            live_process_count: status.live_process_count,
        }
    }

    /// Converts the totals at the end; numbers that a recording does not contain are 0.
    pub(crate) fn of_summary(summary: &SessionSummary) -> Self {
        let totals = &summary.summary.totals;
        Self {
            has_write_error: u32::from(summary.write_error.is_some()),
            duration_ns: summary.summary.duration_ns,
            buffers_written: summary.statistics.buffers_written,
            event_count: summary.summary.event_count,
            events_lost: summary.statistics.loss.events_lost,
            live_count: totals.outstanding_count,
            live_bytes: totals.outstanding_bytes,
            peak_bytes: totals.peak_bytes,
            process_count: summary.process_count as u64,
            ..Self::default()
        }
    }
}
