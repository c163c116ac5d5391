//! What is asked.

use crate::cull_list::CullList;
use crate::error::Result;
use crate::filter::Filter;
use crate::frame_pattern::FramePattern;
use crate::histogram::HistogramOf;
use crate::metrics::Metric;

/// What allocations are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// Whole stack, after culling.
    Stacks,
    /// Innermost frame, after culling.
    Frames,
    /// Line of the source of the innermost frame, after culling.
    Lines,
    /// Module of the innermost frame, after culling.
    Images,
    /// Allocating thread.
    Threads,
}

/// One action: a section of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A ranking.
    Ranking {
        /// Of what.
        by: GroupBy,
        /// In which order.
        sort: Metric,
    },
    /// Functions, each with all that it calls.
    Functions {
        /// By which amount.
        sort: Metric,
        /// Each line of a function by itself.
        by_line: bool,
    },
    /// The tree of frames from the program's start down.
    TopDown {
        /// Order of the frames below a frame.
        sort: Metric,
    },
    /// The tree of callers of the innermost frame that matches.
    Callers {
        /// Of whom.
        of: FramePattern,
        /// Order of the callers of a frame.
        sort: Metric,
    },
}

/// A query: filters, then culling, then actions, each cut to the top.
#[derive(Debug, Clone)]
pub struct Query {
    /// Which allocations are counted.
    pub filter: Filter,
    /// Which innermost frames are removed.
    pub cull: CullList,
    /// What is shown of them.
    pub actions: Vec<Action>,
    /// Histograms, each over all that is counted.
    pub histograms: Vec<HistogramOf>,
    /// Most items of each action.
    pub top: usize,
    /// Only stacks that hold something, at the end or at the peak, are told apart and named: what
    /// others allocated is missing from the totals of groups. For rankings by what is held; the
    /// amounts that are held are whole.
    pub only_held: bool,
    /// Stacks and trees tell lines apart: for answers that are shown with lines. A ranking of lines
    /// does so anyway.
    pub tells_lines: bool,
    /// Which frames are shown; `None`: those that the trace says.
    pub language_frames: Option<heapr_trace::LanguageFrames>,
}

impl Query {
    /// Items of an action unless told otherwise.
    pub const DEFAULT_TOP: usize = 10_000;

    /// Looks for what can't be meant.
    ///
    /// # Errors
    /// As [`Filter::check`].
    pub fn check(&self) -> Result<()> {
        self.filter.check()
    }

    /// Whether lines must be told apart.
    pub(crate) fn is_by_line(&self) -> bool {
        let is_of_lines = |action: &Action| {
            matches!(
                action,
                Action::Ranking { by: GroupBy::Lines, .. } | Action::Functions { by_line: true, .. }
            )
        };
        self.tells_lines || self.actions.iter().any(is_of_lines)
    }

    /// Whether threads must be told apart.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Ranking { by: GroupBy::Threads, .. }))
    }

    /// Whether frames need names to answer it.
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
