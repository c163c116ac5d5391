//! Common inputs of the scans of many filters, computed once and cached. These are the rows of the
//! table's sites, lifetimes, the peak, stacks with required frames, and the allocations that pass.

use std::sync::Arc;

use heapr_query::engine::{Choice, chosen_stacks};
use heapr_query::{CullList, Filter, Result, Suppressions};

use crate::allocation_set::{AllocationSet, AllocationSetQuery};
use crate::cached_sums::SumsView;
use crate::event_table::EventTable;
use crate::explorer::Explorer;
use crate::row_plan::RowPlan;
use crate::scan::Scan;
use crate::site_table::Site;

impl Explorer {
    /// Whether each stack of the file passes a filter's conditions on frames; `None` if all do.
    pub(crate) fn has_required(&self, filter: &Filter) -> Option<Arc<Vec<bool>>> {
        if filter.takes_all_stacks() {
            return None;
        }
        let of_frames = filter.of_frames();
        let chosen = |filter: &Filter| chosen_stacks(&**self.trace(), self.tree(), filter);
        // Rules of what is left out are many: their answers serve filters with other frames, too.
        let of_rules = Filter { left_out: of_frames.left_out.clone(), ..Filter::default() };
        if of_frames == of_rules {
            return Some(self.left_out.get(&of_rules, || chosen(&of_rules)));
        }
        Some(self.required.get(&of_frames, || {
            let others = Filter { left_out: Suppressions::default(), ..of_frames.clone() };
            let mut passing = chosen(&others);
            if !of_rules.left_out.is_empty() {
                let by_rules = self.left_out.get(&of_rules, || chosen(&of_rules));
                passing.iter_mut().zip(by_rules.iter()).for_each(|(one, other)| *one &= *other);
            }
            passing
        }))
    }

    /// The cached values of the table.
    pub(crate) fn kept<'a>(
        &'a self,
        table: &'a EventTable,
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> SumsView<'a> {
        SumsView { sums: &self.sums, table, parallelism: self.parallelism, is_cancelled }
    }

    /// A scan without a peak.
    pub(crate) fn timeless_scan<'a>(
        &'a self,
        table: &'a EventTable,
        filter: &'a Filter,
        choice: &'a Choice,
        has_required: Option<&'a [bool]>,
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Scan<'a>> {
        let kept = self.kept(table, is_cancelled);
        Ok(Scan {
            kept,
            table,
            filter,
            choice,
            has_required,
            duration_ns: self.trace().duration_ns(),
            file_peak: None,
            wants_histograms: false,
            lifetimes: kept.lifetimes_for(filter, false)?,
            passing: None,
        })
    }

    /// The allocations that pass a filter, ignoring its range, moment and type.
    pub(crate) fn passing(
        &self,
        table: &EventTable,
        filter: &Filter,
        choice: &Choice,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Arc<AllocationSet>> {
        let filter = Filter { range: None, at: None, allocation_type: None, ..filter.clone() };
        self.passing.try_get(&filter, || {
            let sites = self.passing_sites(table, &filter, choice);
            let query = AllocationSetQuery {
                table,
                filter: &filter,
                sites: sites.as_deref(),
                lifetimes: self.kept(table, is_cancelled).lifetimes_for(&filter, false)?,
                duration_ns: self.trace().duration_ns(),
                parallelism: self.parallelism,
                is_cancelled,
            };
            query.run()
        })
    }

    /// Whether each site passes a filter; `None` if all do.
    fn passing_sites(&self, table: &EventTable, filter: &Filter, choice: &Choice) -> Option<Vec<bool>> {
        let has_required = self.has_required(filter);
        if has_required.is_none() && choice.is_every_origin() {
            return None;
        }
        let passes = |site: &Site| {
            let is_required = |has: &Arc<Vec<bool>>| has.get(site.stack.0 as usize).copied().unwrap_or(false);
            site.is_chosen(choice) && has_required.as_ref().is_none_or(is_required)
        };
        Some(table.sites.iter().map(passes).collect())
    }

    /// Computes the culled stack of each stack before the first table is requested.
    pub fn prepare_culling(&self, cull: &CullList) {
        self.left(cull);
    }

    /// Computes the values that nearly all queries need, before the first of them. These are cached
    /// sums, the peak of the whole, and the rows of the table's sites. Does not do anything without
    /// a table.
    ///
    /// # Errors
    /// The call was cancelled.
    pub fn prepare(&self, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let Some(table) = self.table() else { return Ok(()) };
        let kept = self.kept(table, is_cancelled);
        kept.make_columns()?;
        kept.peak(0, table.move_count(), &Choice::default())?;
        self.plans(table);
        if kept.prefixes()?.is_some() {
            kept.bits()?;
        }
        kept.lifetimes()?;
        Ok(())
    }

    pub(crate) fn plans(&self, table: &EventTable) -> &[RowPlan; 2] {
        self.plans.get_or_init(|| [RowPlan::new(table, false), RowPlan::new(table, true)])
    }
}
