//! Amounts that the tool that made a file does not tell: these are unknown, not 0.

use crate::{Amounts, Variances};

/// Set of amounts that a file does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Untold {
    /// Numbers of blocks and allocations: only bytes are told.
    pub counts: bool,
    /// Total allocations, freed or not.
    pub totals: bool,
    /// Live memory at the end.
    pub live: bool,
    /// Live memory at the peak.
    pub peak: bool,
    /// Distinction of reallocations from other allocations.
    pub reallocs: bool,
    /// Distinction of temporary allocations from others.
    pub temporary: bool,
    /// Times of events.
    pub times: bool,
}

impl Untold {
    /// Whether the file tells everything.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// Sets the variances of unknown amounts to [`Variances::UNKNOWN`].
    pub fn mark(self, variances: &mut Variances) {
        let mark = |is_untold: bool, variance: &mut u64| {
            if is_untold {
                *variance = Variances::UNKNOWN;
            }
        };
        mark(self.totals, &mut variances.total_bytes);
        mark(self.totals || self.counts, &mut variances.total_count);
        mark(self.reallocs, &mut variances.realloc_count);
        mark(self.temporary, &mut variances.temporary_count);
        mark(self.live, &mut variances.outstanding_bytes);
        mark(self.live || self.counts, &mut variances.outstanding_count);
        mark(self.peak, &mut variances.peak_bytes);
        mark(self.peak || self.counts, &mut variances.peak_count);
    }

    /// A copy of the amounts with the unknown ones marked.
    #[must_use]
    pub fn marked(self, amounts: &Amounts) -> Amounts {
        let mut amounts = *amounts;
        self.mark(&mut amounts.variances);
        amounts
    }
}
