//! Decides when the session's next file is due, and counts the contents of the present one.

use heapr_trace::Loss;

use crate::rotation::FileSeries;
use crate::{Error, Rotation, SessionProperties};

/// State of the present file of a session with files in turn.
#[derive(Debug)]
pub(crate) struct NextFile {
    pub(crate) series: FileSeries,
    pub(crate) rotation: Rotation,
    pub(crate) due_ns: u64,
    /// True if the present file has the size at which the next is begun.
    pub(crate) is_full: bool,
    /// Size in bytes of the present file when it was begun.
    pub(crate) begun_bytes: u64,
    /// Number of events that are only in earlier files.
    pub(crate) events_before: u64,
    /// Number of allocations of earlier files that are repeated at the beginning of the present
    /// one.
    pub(crate) births: u64,
    /// Number of closed files.
    pub(crate) closed_count: u64,
    /// Losses that are written in closed files.
    pub(crate) told: Loss,
}

impl NextFile {
    /// Prepares files in turn, and closes a file that an earlier recorder has left.
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

    /// Number of events in the present file, out of all events of the session.
    pub(crate) fn events_in_file(&self, event_count: u64) -> u64 {
        event_count.saturating_sub(self.events_before).saturating_add(self.births)
    }

    /// Whether the next file is due.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.is_full || now_ns >= self.due_ns
    }

    /// Size at which the next file is begun: at least twice the size with which the present one
    /// began.
    pub(crate) fn most_bytes(&self, most_bytes: u64) -> u64 {
        most_bytes.max(self.begun_bytes.saturating_mul(2))
    }
}

pub(crate) fn interval_ns(rotation: Rotation) -> u64 {
    u64::try_from(rotation.interval.as_nanos()).unwrap_or(u64::MAX)
}
