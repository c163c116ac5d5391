//! Values that are computed once per table, so that a query reads events only at the ends of its
//! range. They are last ends, sums by site, histograms and landmarks of live memory. Together they
//! take less than a third of the table's memory.

use std::sync::Arc;

use heapr_query::engine::Choice;
use heapr_query::{Filter, Result};

use crate::bit_sums::BitSums;
use crate::event_table::EventTable;
use crate::landmarks::{Landmarks, PeakQuery};
use crate::last_ends::LastEnds;
use crate::lazy_value::LazyValue;
use crate::lifetime_column::LifetimeColumn;
use crate::move_columns::MoveColumns;
use crate::parallelism::Parallelism;
use crate::peak::{HeapPeaks, Peak};
use crate::recent_results::RecentResults;
use crate::site_sums::SitePrefixes;

/// Cached values of a table. Each is computed when first needed.
#[derive(Debug, Default)]
pub(crate) struct CachedSums {
    columns: LazyValue<Option<MoveColumns>>,
    last_ends: LazyValue<LastEnds>,
    prefixes: LazyValue<Option<SitePrefixes>>,
    lifetimes: LazyValue<LifetimeColumn>,
    bits: LazyValue<BitSums>,
    landmarks: RecentResults<Choice, Landmarks>,
    /// Peaks of the whole and of the heaps, by range of moves and choice.
    peaks: RecentResults<(u32, u32, Choice), (Peak, HeapPeaks)>,
}

/// The cached values of a table, as seen by one query.
#[derive(Clone, Copy)]
pub(crate) struct SumsView<'a> {
    pub(crate) sums: &'a CachedSums,
    pub(crate) table: &'a EventTable,
    pub(crate) parallelism: Parallelism,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> SumsView<'a> {
    /// Computes the columns in the order of the moves.
    pub(crate) fn make_columns(&self) -> Result<()> {
        let make = || MoveColumns::new(self.table, self.parallelism, self.is_cancelled);
        self.sums.columns.try_get(make).map(|_| ())
    }

    /// The columns in the order of the moves, if they are computed; never waits.
    pub(crate) fn columns(&self) -> Option<&'a MoveColumns> {
        self.sums.columns.get()?.as_ref()
    }

    pub(crate) fn last_ends(&self) -> Result<&'a LastEnds> {
        self.sums.last_ends.try_get(|| LastEnds::new(self.table, self.parallelism))
    }

    /// Sums by site; `None` if the sizes do not fit 64 bits, so that differences of sums would be
    /// wrong.
    pub(crate) fn prefixes(&self) -> Result<Option<&'a SitePrefixes>> {
        let make = || SitePrefixes::new(self.table, self.parallelism, self.is_cancelled);
        self.sums.prefixes.try_get(make).map(Option::as_ref)
    }

    pub(crate) fn lifetimes(&self) -> Result<&'a LifetimeColumn> {
        self.sums.lifetimes.try_get(|| LifetimeColumn::new(self.table, self.parallelism))
    }

    /// The lifetimes, if a scan needs them.
    pub(crate) fn lifetimes_for(
        &self,
        filter: &Filter,
        wants_histograms: bool,
    ) -> Result<Option<&'a LifetimeColumn>> {
        let is_needed = wants_histograms || filter.lifetime.is_some();
        is_needed.then(|| self.lifetimes()).transpose()
    }

    /// Cumulative histograms; only valid if there are [`SumsView::prefixes`].
    pub(crate) fn bits(&self) -> Result<&'a BitSums> {
        let lifetimes = self.lifetimes()?;
        self.sums.bits.try_get(|| BitSums::new(self.table, lifetimes, self.parallelism, self.is_cancelled))
    }

    /// The peak of the chosen processes, heaps, threads and sizes in a range of moves, and the
    /// peaks of the heaps.
    pub(crate) fn peak(&self, from: u32, to: u32, choice: &Choice) -> Result<Arc<(Peak, HeapPeaks)>> {
        let last_ends = self.last_ends()?;
        self.sums.peaks.try_get(&(from, to, choice.clone()), || {
            let columns = (self.table, self.columns());
            let make = || Landmarks::new(columns, choice, self.parallelism, self.is_cancelled);
            let landmarks = self.sums.landmarks.try_get(choice, make)?;
            landmarks.peak(&PeakQuery {
                table: self.table,
                last_ends,
                from,
                to,
                is_cancelled: self.is_cancelled,
            })
        })
    }
}
