//! Sums of a range from cached sums. Births are differences of cumulative sums. Only allocations
//! that are alive at the range's end or at its peak are examined one by one.

use heapr_query::Result;

use crate::allocation_walk::{AtPeak, Window};
use crate::bit_sums::Histograms;
use crate::cached_sums::SumsView;
use crate::lifetime_column::bits_of;
use crate::site_sums::{Amount, SitePrefixes, SiteSums};

/// Sums of a window of allocations that are born inside. Either all are wanted, or only those that
/// end in the window.
pub(crate) struct RangeSums<'a> {
    pub(crate) kept: SumsView<'a>,
    pub(crate) prefixes: &'a SitePrefixes,
    pub(crate) window: &'a Window,
    pub(crate) at_peak: AtPeak,
    pub(crate) wants_histograms: bool,
}

impl RangeSums<'_> {
    /// Sums by site, and the histograms of all sites if requested.
    pub(crate) fn find(&self) -> Result<(Vec<SiteSums>, Option<Histograms>)> {
        let (kept, window) = (&self.kept, self.window);
        let wants_outstanding = window.wants_ended.is_none();
        let mut sums = self.prefixes.totals(kept.table, window.first..window.last);
        // The two walks over live allocations are independent.
        let mut looks = kept
            .parallelism
            .each()
            .map(0..2, |looks| {
                let look = |number| if number == 0 { self.alive_at_end() } else { self.alive_at_peak() };
                looks.map(look).collect::<Result<Vec<_>>>()
            })?
            .into_iter()
            .flatten();
        let (alive, alive_bits) = looks.next().unwrap_or_default();
        let (at_peak, _) = looks.next().unwrap_or_default();
        for (sums, alive) in sums.iter_mut().zip(&alive) {
            sums.set_alive(*alive, wants_outstanding);
        }
        for (sums, at_peak) in sums.iter_mut().zip(&at_peak) {
            sums.set_at_peak(*at_peak);
        }
        self.leave_out_unseen_reuse(&mut sums);
        let histograms = match alive_bits {
            Some([gone, added]) => {
                let range = window.first..window.last;
                let mut all = kept.bits()?.totals(kept.table, kept.lifetimes()?, range);
                all.sizes.subtract(&gone.sizes);
                all.lifetimes.subtract(&gone.lifetimes);
                all.sizes.merge(&added.sizes);
                all.lifetimes.merge(&added.lifetimes);
                Some(all)
            }
            None => None,
        };
        Ok((sums, histograms))
    }

    /// Allocations of each site that are not freed in the window. For the histograms also the
    /// entries to subtract, and those to add instead.
    fn alive_at_end(&self) -> Result<(Vec<Amount>, Option<[Histograms; 2]>)> {
        let (table, window) = (self.kept.table, self.window);
        let mut alive = vec![Amount::default(); table.sites.len()];
        let mut bits = self.wants_histograms.then(|| [Histograms::new(), Histograms::new()]);
        let lifetimes = if self.wants_histograms { Some(self.kept.lifetimes()?) } else { None };
        let visit = |allocation: usize| {
            let size_bytes = table.size_bytes(allocation);
            let end = table.ends[allocation];
            alive[table.site_of[allocation] as usize].count(table, allocation);
            let Some(([gone, added], lifetimes)) = bits.as_mut().zip(lifetimes) else { return };
            gone.sizes.add_to(bits_of(size_bytes), size_bytes, false);
            if end.sequence() < table.move_count() {
                gone.lifetimes.add_to(lifetimes.bits(allocation), size_bytes, false);
            }
            if window.wants_ended.is_none() {
                let lifetime_ns = window.end_ns.saturating_sub(table.times.get(table.births[allocation]));
                added.sizes.add_to(bits_of(size_bytes), size_bytes, true);
                added.lifetimes.add_to(bits_of(lifetime_ns), size_bytes, true);
            }
        };
        let range = window.first..window.last;
        let last_ends = self.kept.last_ends()?;
        last_ends.for_each_alive(table, range, window.end, self.kept.is_cancelled, visit)?;
        Ok((alive, bits))
    }

    /// Allocations of each site that are alive at the peak.
    fn alive_at_peak(&self) -> Result<(Vec<Amount>, Option<[Histograms; 2]>)> {
        let (table, window) = (self.kept.table, self.window);
        let AtPeak::Behind(peak) = self.at_peak else { return Ok(Default::default()) };
        let mut alive = vec![Amount::default(); table.sites.len()];
        let visit = |allocation: usize| {
            let is_ended = table.ends[allocation].sequence() < window.end;
            if window.wants_ended.is_none_or(|wanted| wanted == is_ended) {
                alive[table.site_of[allocation] as usize].count(table, allocation);
            }
        };
        let born = window.first..table.born_in(0, peak + 1).end.clamp(window.first, window.last);
        let last_ends = self.kept.last_ends()?;
        last_ends.for_each_live(table, born, peak + 1, self.kept.is_cancelled, visit)?;
        Ok((alive, None))
    }

    /// Removes temporary allocations that a replay of the range would not recognise. They are
    /// recognised by their thread's last allocation from malloc, which lies before the range.
    fn leave_out_unseen_reuse(&self, sums: &mut [SiteSums]) {
        let (table, window) = (self.kept.table, self.window);
        let since = &table.temporary_since;
        let place = |number: usize| since.partition_point(|&(allocation, _)| (allocation as usize) < number);
        for &(allocation, seen_from) in &since[place(window.first)..place(window.last)] {
            let allocation = allocation as usize;
            let is_ended = table.ends[allocation].sequence() < window.end;
            if is_ended && (seen_from as usize) < window.replayed_from {
                sums[table.site_of[allocation] as usize].temporary_count -= 1;
            }
        }
    }
}
