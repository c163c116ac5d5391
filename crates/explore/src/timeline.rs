//! The timeline of live memory over time, in bins.

use heapr_query::{CullList, Filter, Span};
use heapr_trace::ThreadIndex;

use crate::frame_number::FrameNumber;

/// Unit of the series of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimelineBy {
    /// No series.
    Nothing,
    /// Processes.
    Processes,
    /// Allocating threads.
    Threads,
    /// Modules of the innermost frames, after culling.
    Images,
    /// Innermost frames, after culling.
    Frames,
    /// Stacks, after culling.
    Stacks,
}

/// Quantity that the series of a timeline show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimelineOf {
    /// Live bytes at the end of each bin.
    LiveBytes,
    /// Live allocations at the end of each bin.
    LiveCount,
    /// Bytes allocated in each bin.
    AllocBytes,
    /// Allocations made in each bin.
    AllocCount,
}

impl TimelineOf {
    /// Whether the quantity is bytes.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::LiveBytes | Self::AllocBytes)
    }

    /// The bytes of the blocks of this quantity.
    pub(crate) fn in_bytes(self) -> Self {
        match self {
            Self::LiveBytes | Self::LiveCount => Self::LiveBytes,
            Self::AllocBytes | Self::AllocCount => Self::AllocBytes,
        }
    }
}

/// Options of a timeline.
#[derive(Debug, Clone)]
pub struct TimelineQuery {
    /// Selection of the allocations that count; its range, moment and type are ignored.
    pub filter: Filter,
    /// Cull list for the series.
    pub cull: CullList,
    /// Time span of the timeline.
    pub time: Span,
    /// Number of bins.
    pub bins: usize,
    /// Unit of the series.
    pub by: TimelineBy,
    /// Largest number of series.
    pub series_max: usize,
    /// Quantity that the series show.
    pub of: TimelineOf,
}

/// Identity of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeriesKey {
    /// A process, by its index.
    Process(u32),
    /// A thread.
    Thread(ThreadIndex),
    /// The module of a frame; `None`: code outside all modules, or no stack.
    Image(Option<FrameNumber>),
    /// A frame; `None`: no stack.
    Frame(Option<FrameNumber>),
    /// A stack: key for [`crate::Explorer::stack_frames`].
    Stack((u32, u32)),
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Identity of the series.
    pub key: SeriesKey,
    /// Value of each bin.
    pub values: Vec<u64>,
    /// Variances of the values; empty if everything is counted.
    pub variances: Vec<u64>,
}

/// Variances of a timeline's curves by bin; those of bytes in KiB squared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimelineVariances {
    /// Variance of the live bytes at the end of each bin.
    pub live_bytes: Vec<u64>,
    /// Variance of the number of live allocations at the end of each bin.
    pub live_count: Vec<u64>,
    /// Largest variance of the live bytes in each bin.
    pub most_bytes: Vec<u64>,
    /// Variance of the bytes allocated in each bin.
    pub alloc_bytes: Vec<u64>,
    /// Variance of the number of allocations made in each bin.
    pub alloc_count: Vec<u64>,
    /// Variance of the number of allocations freed in each bin.
    pub free_count: Vec<u64>,
    /// Variance of the sum of all other series in each bin.
    pub rest: Vec<u64>,
    /// Variances of the peak's bytes and count.
    pub peak: (u64, u64),
}

/// The timeline of live memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// Live bytes at the end of each bin.
    pub live_bytes: Vec<u64>,
    /// Live allocations at the end of each bin.
    pub live_count: Vec<u64>,
    /// The most live bytes at any moment of each bin.
    pub most_bytes: Vec<u64>,
    /// Live allocations at that moment.
    pub most_count: Vec<u64>,
    /// Bytes allocated in each bin.
    pub alloc_bytes: Vec<u64>,
    /// Allocations made in each bin.
    pub alloc_count: Vec<u64>,
    /// Bytes freed in each bin.
    pub free_bytes: Vec<u64>,
    /// Allocations freed in each bin.
    pub free_count: Vec<u64>,
    /// The greatest series, by their largest values.
    pub series: Vec<Series>,
    /// Sum of all other series.
    pub rest: Vec<u64>,
    /// Variances of the curves above; `None` if everything is counted.
    pub variances: Option<Box<TimelineVariances>>,
    /// The peak of live bytes in the time span: time first reached, bytes, count.
    pub peak: (u64, u64, u64),
    /// Number of the move after the peak.
    pub(crate) peak_end: u32,
}

impl Timeline {
    /// The curve of all series together.
    pub(crate) fn whole(&self, of: TimelineOf) -> &[u64] {
        match of {
            TimelineOf::LiveBytes => &self.live_bytes,
            TimelineOf::LiveCount => &self.live_count,
            TimelineOf::AllocBytes => &self.alloc_bytes,
            TimelineOf::AllocCount => &self.alloc_count,
        }
    }
}

/// Groups of the sites of a table in a timeline.
#[derive(Debug)]
pub(crate) struct SiteGroups {
    /// Group of each site.
    pub(crate) group_of: Vec<u32>,
    pub(crate) keys: Vec<SeriesKey>,
}
