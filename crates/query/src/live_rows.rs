//! Blocks of a snapshot summed by stack: amounts, ages, and amounts by interval of allocation.

use heapr_trace::{Block, BlockEstimate, Damage, Snapshot, StackIndex, Trace};

use crate::choice::Choice;
use crate::error::Result;
use crate::filter::Filter;

/// Live blocks of one stack or group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveRow {
    /// Sum of all blocks.
    pub amount: BlockEstimate,
    /// Sums by moment of allocation: before the first boundary, between consecutive boundaries, and
    /// after the last.
    pub by_interval: Vec<BlockEstimate>,
    /// Age of the oldest block.
    pub oldest_age_ns: u64,
    /// Age of the youngest block.
    pub youngest_age_ns: u64,
    /// Sum of the ages.
    pub age_sum_ns: u128,
}

impl LiveRow {
    fn count(&mut self, one: BlockEstimate, age_ns: u64, interval: usize, interval_count: usize) {
        if self.by_interval.is_empty() {
            self.by_interval.resize(interval_count, BlockEstimate::default());
        }
        self.by_interval[interval] += one;
        self.oldest_age_ns = self.oldest_age_ns.max(age_ns);
        self.youngest_age_ns =
            if self.amount.count.value == 0 { age_ns } else { self.youngest_age_ns.min(age_ns) };
        self.age_sum_ns += u128::from(age_ns) * u128::from(one.count.value);
        self.amount += one;
    }

    /// Adds the blocks of another row.
    pub fn add(&mut self, other: &Self) {
        if other.amount.count.value == 0 {
            return;
        }
        self.youngest_age_ns = if self.amount.count.value == 0 {
            other.youngest_age_ns
        } else {
            self.youngest_age_ns.min(other.youngest_age_ns)
        };
        self.oldest_age_ns = self.oldest_age_ns.max(other.oldest_age_ns);
        self.age_sum_ns += other.age_sum_ns;
        self.amount += other.amount;
        if self.by_interval.len() < other.by_interval.len() {
            self.by_interval.resize(other.by_interval.len(), BlockEstimate::default());
        }
        for (sum, amount) in self.by_interval.iter_mut().zip(&other.by_interval) {
            *sum += *amount;
        }
    }

    /// Mean age; 0 without blocks.
    #[must_use]
    pub fn mean_age_ns(&self) -> u64 {
        let mean = self.age_sum_ns.checked_div(u128::from(self.amount.count.value)).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX)
    }
}

/// A snapshot by stack.
#[derive(Debug, Default)]
pub struct LiveRows {
    /// Rows by stack; stacks without blocks are left out.
    pub rows: Vec<(StackIndex, LiveRow)>,
    /// Sum over all stacks.
    pub whole: LiveRow,
    /// Damage of the snapshot.
    pub damage: Vec<Damage>,
}

/// Sums the blocks of a snapshot that pass the filter's processes, heaps, threads, sizes and
/// lifetimes (here: ages). `boundaries_ns`: moments, in rising order, that divide allocations into
/// intervals.
///
/// # Errors
/// The filter names what the trace does not have, or the file cannot be read.
pub fn live_rows(
    trace: &Trace,
    snapshot: &Snapshot,
    filter: &Filter,
    boundaries_ns: &[u64],
) -> Result<LiveRows> {
    let choice = Choice::new(filter, trace.processes(), trace.threads())?;
    let interval_count = boundaries_ns.len() + 1;
    // Index + 1 in the rows of each stack.
    let mut places = vec![0_u32; trace.stacks().len()];
    let mut found = LiveRows::default();
    let (rows, whole) = (&mut found.rows, &mut found.whole);
    let count = |block: &Block| {
        let age_ns = snapshot.time_ns.saturating_sub(block.alloc_ns);
        let passes = choice.has(block) && filter.lifetime.is_none_or(|lifetime| lifetime.contains(age_ns));
        // A stack that the file does not have was read as the empty one; a file without stacks has
        // no entry for it.
        let place = places.get_mut(block.stack.0 as usize);
        let Some(place) = place.filter(|_| passes) else { return };
        if *place == 0 {
            rows.push((block.stack, LiveRow::default()));
            *place = rows.len() as u32;
        }
        let interval = boundaries_ns.partition_point(|&boundary_ns| boundary_ns < block.alloc_ns);
        let one = BlockEstimate::of_weight(trace.sampling().weight(block));
        rows[*place as usize - 1].1.count(one, age_ns, interval, interval_count);
        whole.count(one, age_ns, interval, interval_count);
    };
    found.damage = trace.for_each_snapshot_block(snapshot, count)?;
    Ok(found)
}
