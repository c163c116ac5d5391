//! The timeline of live memory over time, in bins.

use heapr_query::{CullList, Filter, Span};
use heapr_trace::ThreadIndex;

use crate::frame_number::FrameNumber;

/// What the series of a timeline are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimelineBy {
    /// There are none.
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

/// What the series of a timeline show.
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
    /// The blocks of what is bytes, and the other way round.
    pub(crate) fn beside(self) -> Self {
        match self {
            Self::LiveBytes => Self::LiveCount,
            Self::LiveCount => Self::LiveBytes,
            Self::AllocBytes => Self::AllocCount,
            Self::AllocCount => Self::AllocBytes,
        }
    }
}

/// What is drawn.
#[derive(Debug, Clone)]
pub struct TimelineQuery {
    /// Which allocations count. Its range, moment and type do not.
    pub filter: Filter,
    /// For the series.
    pub cull: CullList,
    /// The time that is drawn.
    pub time: Span,
    /// Number of bins.
    pub bins: usize,
    /// What the series are.
    pub by: TimelineBy,
    /// Most series.
    pub series_max: usize,
    /// What the series show.
    pub of: TimelineOf,
}

/// What a series is of.
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
    /// Of what.
    pub key: SeriesKey,
    /// By bin.
    pub values: Vec<u64>,
    /// Of samples, by which the interval of a value is told: the blocks of bytes, or the bytes of
    /// blocks. Empty where all is counted.
    pub beside: Vec<u64>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// At the end of each bin.
    pub live_bytes: Vec<u64>,
    /// At the end of each bin.
    pub live_count: Vec<u64>,
    /// The most live bytes at any moment of each bin.
    pub most_bytes: Vec<u64>,
    /// Live allocations at that moment.
    pub most_count: Vec<u64>,
    /// In each bin.
    pub alloc_bytes: Vec<u64>,
    /// In each bin.
    pub alloc_count: Vec<u64>,
    /// In each bin.
    pub free_bytes: Vec<u64>,
    /// In each bin.
    pub free_count: Vec<u64>,
    /// The greatest, by their largest values.
    pub series: Vec<Series>,
    /// All others together.
    pub rest: Vec<u64>,
    /// As that of a series.
    pub rest_beside: Vec<u64>,
    /// The most live bytes in the time that is drawn: when first, bytes, count.
    pub peak: (u64, u64, u64),
}

impl Timeline {
    /// The curve of all together.
    pub(crate) fn whole(&self, of: TimelineOf) -> &[u64] {
        match of {
            TimelineOf::LiveBytes => &self.live_bytes,
            TimelineOf::LiveCount => &self.live_count,
            TimelineOf::AllocBytes => &self.alloc_bytes,
            TimelineOf::AllocCount => &self.alloc_count,
        }
    }
}

/// What the sites of a table are in a timeline.
#[derive(Debug)]
pub(crate) struct SiteGroups {
    /// By site.
    pub(crate) group_of: Vec<u32>,
    pub(crate) keys: Vec<SeriesKey>,
}
