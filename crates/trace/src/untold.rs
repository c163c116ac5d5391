//! What the tool that made a file does not tell of allocations: it is unknown, and not 0.

use crate::{Amounts, Variances};

/// Which amounts are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Untold {
    /// How many blocks or allocations: amounts are in bytes alone.
    pub counts: bool,
    /// What was allocated in all, freed or not.
    pub totals: bool,
    /// What is live at the end.
    pub live: bool,
    /// What was live at the peak.
    pub peak: bool,
    /// Which allocations were reallocations.
    pub reallocs: bool,
    /// Which were temporary.
    pub temporary: bool,
    /// At what times.
    pub times: bool,
}

impl Untold {
    /// Whether all is told.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// Marks what is not known of amounts.
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

    /// What is told of amounts: the others are 0 in a summary.
    #[must_use]
    pub fn marked(self, amounts: &Amounts) -> Amounts {
        let mut amounts = *amounts;
        self.mark(&mut amounts.variances);
        amounts
    }
}
