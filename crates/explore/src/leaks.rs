//! Ages of outstanding allocations, and the growth of their stacks.

use hashbrown::HashMap;

use heapr_query::engine::Choice;
use heapr_query::{CullList, Error, Filter, Result, Span};

use crate::explorer::Explorer;

/// Times of the outstanding allocations of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// Time of the first allocation.
    pub oldest_ns: u64,
    /// Time of the last allocation.
    pub newest_ns: u64,
    /// Sum of the times, for the mean.
    pub sum_ns: u128,
    /// Number of allocations.
    pub count: u64,
}

/// Live amounts of a stack at some moments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Growth {
    /// Live bytes at each moment.
    pub live_bytes: Vec<u64>,
    /// Variances of the live bytes in KiB squared; 0 if everything is counted.
    pub variances: Vec<u64>,
}

/// Stands for a stack that is not requested.
const NONE: u32 = u32::MAX;
/// Number of allocations between two checks for cancellation.
const CANCEL_INTERVAL: usize = 1 << 20;

impl Explorer {
    /// Ages of the outstanding allocations at the end of the trace or range, by culled stack (the
    /// second number of [`Explorer::stack_key`]). Empty without a table of events.
    ///
    /// # Errors
    /// The errors of [`Explorer::select`].
    pub fn ages(
        &self,
        filter: &Filter,
        cull: &CullList,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<HashMap<u32, Age>> {
        let mut ages = HashMap::new();
        let Some(table) = self.table() else { return Ok(ages) };
        let choice = Choice::new(filter, self.trace().processes(), self.trace().threads())?;
        let has_required = self.has_required(filter);
        let has_required = has_required.as_deref().map(Vec::as_slice);
        let scan = self.timeless_scan(table, filter, &choice, has_required, is_cancelled)?;
        let mut by_site: Vec<Age> = vec![Age::default(); table.sites.len()];
        scan.for_each_outstanding(false, |site, _, alloc_ns| {
            let age = &mut by_site[site];
            // Births come in order.
            age.oldest_ns = if age.count == 0 { alloc_ns } else { age.oldest_ns };
            age.newest_ns = alloc_ns;
            age.sum_ns += u128::from(alloc_ns);
            age.count += 1;
        })?;
        let tree = self.tree();
        let left = self.left(cull);
        for (site, age) in table.sites.iter().zip(by_site).filter(|(_, age)| age.count > 0) {
            let known = ages
                .entry(left[tree.named(site.stack) as usize])
                .or_insert(Age { oldest_ns: u64::MAX, ..Age::default() });
            known.oldest_ns = known.oldest_ns.min(age.oldest_ns);
            known.newest_ns = known.newest_ns.max(age.newest_ns);
            known.sum_ns += age.sum_ns;
            known.count += age.count;
        }
        Ok(ages)
    }

    /// Live amounts of culled stacks at evenly spaced moments of a time span, the last at its end.
    /// Empty without a table of events.
    ///
    /// # Errors
    /// The call was cancelled; or an error of [`Explorer::select`].
    pub fn growth(
        &self,
        filter: &Filter,
        cull: &CullList,
        stacks: &[u32],
        (time, moments): (Span, usize),
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Growth>> {
        let Some(table) = self.table() else { return Ok(vec![Growth::default(); stacks.len()]) };
        let choice = Choice::new(filter, self.trace().processes(), self.trace().threads())?;
        let tree = self.tree();
        let left = self.left(cull);
        let places: HashMap<u32, u32> = stacks.iter().copied().zip(0..).collect();
        let place_of: Vec<u32> = table
            .sites
            .iter()
            .map(|site| {
                let place = places.get(&left[tree.named(site.stack) as usize]);
                place.copied().filter(|_| site.is_chosen(&choice)).unwrap_or(NONE)
            })
            .collect();
        let width = u128::from(time.to.saturating_sub(time.from));
        let borders: Vec<u32> = (1..=moments as u128)
            .map(|moment| table.times.count_before(time.from + (width * moment / moments as u128) as u64))
            .collect();
        let moment_of = |sequence: u32| borders.partition_point(|&border| border <= sequence);
        let parts = self.parallelism.map(0..table.allocation_count(), |part| {
            let mut changes = vec![vec![[0_i128; 2]; moments]; stacks.len()];
            for number in part {
                if number.is_multiple_of(CANCEL_INTERVAL) && is_cancelled() {
                    return Err(Error::GivenUp);
                }
                let place = place_of[table.site_of[number] as usize];
                let Some(changes) = changes.get_mut(place as usize) else { continue };
                let size_bytes = table.size_bytes(number);
                if filter.size.is_some_and(|size| !size.contains(size_bytes)) {
                    continue;
                }
                let amounts = [size_bytes, table.variances(number).0].map(i128::from);
                let (birth, end) = (table.births[number], table.last_move(number));
                for (sequence, sign) in [(birth, 1), (end, -1)] {
                    if let Some(change) = changes.get_mut(moment_of(sequence)) {
                        change.iter_mut().zip(amounts).for_each(|(change, amount)| *change += sign * amount);
                    }
                }
            }
            Ok(changes)
        })?;
        let mut changes = vec![vec![[0_i128; 2]; moments]; stacks.len()];
        for part in parts {
            for (change, more) in changes.iter_mut().flatten().zip(part.into_iter().flatten()) {
                change.iter_mut().zip(more).for_each(|(change, more)| *change += more);
            }
        }
        let levels = |changes: Vec<[i128; 2]>| {
            let mut level = [0; 2];
            let (live_bytes, variances) = changes
                .into_iter()
                .map(|change| {
                    level.iter_mut().zip(change).for_each(|(level, change)| *level += change);
                    let [bytes, variance] = level.map(|level| u64::try_from(level).unwrap_or(0));
                    (bytes, variance)
                })
                .unzip();
            Growth { live_bytes, variances }
        };
        Ok(changes.into_iter().map(levels).collect())
    }
}
