//! Request for memory over time.

use heapr_explore::{TimelineBy, TimelineOf};
use heapr_filters::FilterArguments;
use heapr_query::Span;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::trace_file::TraceFile;

/// Request for memory over time.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TimelineRequest {
    pub(super) file: usize,
    pub(super) filter: FilterArguments,
    pub(super) from_ns: u64,
    pub(super) to_ns: Option<u64>,
    pub(super) bins: usize,
    pub(super) by: SeriesBy,
    pub(super) series_max: usize,
    pub(super) value: SeriesValue,
}

impl Default for TimelineRequest {
    fn default() -> Self {
        Self {
            file: usize::MAX,
            filter: FilterArguments::default(),
            from_ns: 0,
            to_ns: None,
            bins: 1000,
            by: SeriesBy::None,
            series_max: 8,
            value: SeriesValue::Bytes,
        }
    }
}

/// Groups that series stand for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SeriesBy {
    None,
    Process,
    Thread,
    Image,
    Frame,
    Stack,
}

impl From<SeriesBy> for TimelineBy {
    fn from(by: SeriesBy) -> Self {
        match by {
            SeriesBy::None => Self::Nothing,
            SeriesBy::Process => Self::Processes,
            SeriesBy::Thread => Self::Threads,
            SeriesBy::Image => Self::Images,
            SeriesBy::Frame => Self::Frames,
            SeriesBy::Stack => Self::Stacks,
        }
    }
}

/// Quantity that series count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SeriesValue {
    Bytes,
    Count,
    AllocBytes,
    AllocCount,
    /// Resident memory; live memory is one of its bands.
    Resident,
}

impl From<SeriesValue> for TimelineOf {
    fn from(value: SeriesValue) -> Self {
        match value {
            SeriesValue::Bytes | SeriesValue::Resident => Self::LiveBytes,
            SeriesValue::Count => Self::LiveCount,
            SeriesValue::AllocBytes => Self::AllocBytes,
            SeriesValue::AllocCount => Self::AllocCount,
        }
    }
}

impl TimelineRequest {
    /// The range of times; its end is exclusive: the last event lies inside.
    pub(super) fn time(&self, file: &TraceFile) -> Result<Span> {
        let to_ns = self.to_ns.unwrap_or_else(|| file.trace().duration_ns().saturating_add(1));
        if self.from_ns >= to_ns {
            return Err(Error::bad("to_ns", format!("the time {}..{to_ns} is empty", self.from_ns)));
        }
        Ok(Span { from: self.from_ns, to: to_ns })
    }
}
