//! The query: its filter, culling and actions.

use serde::Deserialize;

use crate::cull_list::CullList;
use crate::error::Result;
use crate::filter::Filter;
use crate::frame_pattern::FramePattern;
use crate::histogram::HistogramOf;
use crate::metrics::Metric;

/// Unit by which allocations are grouped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// The whole stack, after culling.
    #[default]
    Stacks,
    /// The innermost frame, after culling.
    Frames,
    /// The source line of the innermost frame, after culling.
    Lines,
    /// The module of the innermost frame, after culling.
    Images,
    /// The allocating thread.
    #[serde(rename = "by-thread", alias = "threads")]
    Threads,
}

/// One action, which makes a section of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A ranking of groups.
    Ranking {
        /// Unit of the groups.
        by: GroupBy,
        /// Metric that groups are sorted by.
        sort: Metric,
    },
    /// A ranking of functions, each with all that it calls.
    Functions {
        /// Metric that functions are sorted by.
        sort: Metric,
        /// True to count each line of a function by itself.
        by_line: bool,
    },
    /// The tree of frames from the program's start down.
    TopDown {
        /// Order of the frames below a frame.
        sort: Metric,
    },
    /// The tree of callers of the innermost matching frame.
    Callers {
        /// Pattern of the frame.
        of: FramePattern,
        /// Order of the callers of a frame.
        sort: Metric,
    },
}

/// A query: a filter, then culling, then actions, each cut to the top.
#[derive(Debug, Clone)]
pub struct Query {
    /// Selection of the allocations that are counted.
    pub filter: Filter,
    /// Innermost frames to remove.
    pub cull: CullList,
    /// Actions, which make the sections of the report.
    pub actions: Vec<Action>,
    /// Requested histograms, each over all that is counted.
    pub histograms: Vec<HistogramOf>,
    /// Largest number of items per action.
    pub top: usize,
    /// True to distinguish and name only stacks that hold something, at the end or at the peak.
    /// Allocations of other stacks are missing from the totals of groups; held amounts are
    /// complete. Meant for rankings by held amounts.
    pub only_held: bool,
    /// True if stacks and trees distinguish lines, for answers that are shown with lines. A ranking
    /// of lines does so anyway.
    pub tells_lines: bool,
    /// Choice of the frames to show; `None`: the trace's choice.
    pub language_frames: Option<heapr_trace::LanguageFrames>,
}

impl Query {
    /// Default number of items per action.
    pub const DEFAULT_TOP: usize = 10_000;

    /// Refuses queries that make no sense.
    ///
    /// # Errors
    /// The errors of [`Filter::check`].
    pub fn check(&self) -> Result<()> {
        self.filter.check()
    }

    /// Whether lines must be distinguished.
    pub(crate) fn is_by_line(&self) -> bool {
        let is_of_lines = |action: &Action| {
            matches!(
                action,
                Action::Ranking { by: GroupBy::Lines, .. } | Action::Functions { by_line: true, .. }
            )
        };
        self.tells_lines || self.actions.iter().any(is_of_lines)
    }

    /// Whether threads must be distinguished.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Ranking { by: GroupBy::Threads, .. }))
    }

    /// Whether the answer needs symbols.
    pub(crate) fn needs_symbols(&self) -> bool {
        self.cull.needs_symbols()
            || self.filter.needs_symbols()
            || self.actions.iter().any(|action| match action {
                Action::Ranking { by, .. } => {
                    matches!(by, GroupBy::Stacks | GroupBy::Frames | GroupBy::Lines)
                }
                Action::Functions { .. } | Action::TopDown { .. } | Action::Callers { .. } => true,
            })
    }
}

impl Default for Query {
    /// No filter, the built-in cull list, no action.
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            cull: CullList::built_in(),
            actions: Vec::new(),
            histograms: Vec::new(),
            top: Self::DEFAULT_TOP,
            language_frames: None,
            only_held: false,
            tells_lines: false,
        }
    }
}
