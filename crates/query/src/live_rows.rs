//! Blocks of a snapshot summed by stack: amounts, ages, and amounts by interval of allocation.

use heapr_table::Cell;
use heapr_table::quantity::{bytes_within, plural_within};
use heapr_trace::{Block, BlockEstimate, Damage, Snapshot, StackIndex, Trace, Weight, half_interval};

use crate::choice::Choice;
use crate::error::Result;
use crate::filter::Filter;

/// Number of blocks and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveAmount {
    /// Number of blocks.
    pub block_count: u64,
    /// Requested bytes of the blocks.
    pub block_bytes: u64,
    /// Variance of the number of blocks; 0 if counted.
    count_variance: u64,
    /// Variance of the bytes in KiB squared; 0 if counted.
    bytes_variance_kib2: u64,
}

impl LiveAmount {
    /// Total of a snapshot.
    #[must_use]
    pub fn of_snapshot(trace: &Trace, snapshot: &Snapshot) -> Self {
        let Snapshot { block_count, block_bytes, .. } = *snapshot;
        let mut sum = Self::default();
        Self::of_processes(trace, snapshot).into_iter().for_each(|of_one| sum.add(of_one));
        Self { block_count, block_bytes, ..sum }
    }

    /// Totals of a snapshot's processes.
    #[must_use]
    pub fn of_processes(trace: &Trace, snapshot: &Snapshot) -> Vec<Self> {
        let of_estimate = |estimate: BlockEstimate| Self {
            block_count: estimate.count.value,
            block_bytes: estimate.bytes.value,
            count_variance: estimate.count.variance,
            bytes_variance_kib2: estimate.bytes.variance,
        };
        trace.snapshot_estimates(snapshot).into_iter().map(of_estimate).collect()
    }

    /// The amount in words: `1.50 MiB ± 120.0 KiB in 1,234 blocks ± 99`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let blocks = plural_within(self.block_count, self.count_plus_minus(), "block");
        format!("{} in {blocks}", bytes_within(self.block_bytes, self.bytes_plus_minus()))
    }

    /// The amount that a block stands for.
    fn of_weight(weight: Weight) -> Self {
        Self {
            block_count: weight.count,
            block_bytes: weight.bytes,
            count_variance: weight.count_variance,
            bytes_variance_kib2: weight.bytes_variance_kib2,
        }
    }

    /// Adds another amount.
    pub fn add(&mut self, other: Self) {
        self.block_count += other.block_count;
        self.block_bytes = self.block_bytes.saturating_add(other.block_bytes);
        self.count_variance = self.count_variance.saturating_add(other.count_variance);
        self.bytes_variance_kib2 = self.bytes_variance_kib2.saturating_add(other.bytes_variance_kib2);
    }

    /// Returns the rest without a part.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            block_count: self.block_count.saturating_sub(part.block_count),
            block_bytes: self.block_bytes.saturating_sub(part.block_bytes),
            count_variance: self.count_variance.saturating_sub(part.count_variance),
            bytes_variance_kib2: self.bytes_variance_kib2.saturating_sub(part.bytes_variance_kib2),
        }
    }

    /// Half of the 95 % interval of the bytes; 0 if they were counted.
    #[must_use]
    pub fn bytes_plus_minus(&self) -> u64 {
        half_interval(true, self.bytes_variance_kib2)
    }

    /// Half of the 95 % interval of the number of blocks; 0 if they were counted.
    #[must_use]
    pub fn count_plus_minus(&self) -> u64 {
        half_interval(false, self.count_variance)
    }

    /// The bytes as a table's cell.
    #[must_use]
    pub fn bytes_cell(&self) -> Cell {
        Cell::from(self.block_bytes).within(self.bytes_plus_minus())
    }

    /// The number of blocks as a table's cell.
    #[must_use]
    pub fn count_cell(&self) -> Cell {
        Cell::from(self.block_count).within(self.count_plus_minus())
    }
}

/// Live blocks of one stack or group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveRow {
    /// Sum of all blocks.
    pub amount: LiveAmount,
    /// Sums by moment of allocation: before the first boundary, between consecutive boundaries, and
    /// after the last.
    pub by_interval: Vec<LiveAmount>,
    /// Age of the oldest block.
    pub oldest_age_ns: u64,
    /// Age of the youngest block.
    pub youngest_age_ns: u64,
    /// Sum of the ages.
    pub age_sum_ns: u128,
}

impl LiveRow {
    fn count(&mut self, one: LiveAmount, age_ns: u64, interval: usize, interval_count: usize) {
        if self.by_interval.is_empty() {
            self.by_interval.resize(interval_count, LiveAmount::default());
        }
        self.by_interval[interval].add(one);
        self.oldest_age_ns = self.oldest_age_ns.max(age_ns);
        self.youngest_age_ns =
            if self.amount.block_count == 0 { age_ns } else { self.youngest_age_ns.min(age_ns) };
        self.age_sum_ns += u128::from(age_ns) * u128::from(one.block_count);
        self.amount.add(one);
    }

    /// Adds the blocks of another row.
    pub fn add(&mut self, other: &Self) {
        if other.amount.block_count == 0 {
            return;
        }
        self.youngest_age_ns = if self.amount.block_count == 0 {
            other.youngest_age_ns
        } else {
            self.youngest_age_ns.min(other.youngest_age_ns)
        };
        self.oldest_age_ns = self.oldest_age_ns.max(other.oldest_age_ns);
        self.age_sum_ns += other.age_sum_ns;
        self.amount.add(other.amount);
        if self.by_interval.len() < other.by_interval.len() {
            self.by_interval.resize(other.by_interval.len(), LiveAmount::default());
        }
        for (sum, amount) in self.by_interval.iter_mut().zip(&other.by_interval) {
            sum.add(*amount);
        }
    }

    /// Mean age; 0 without blocks.
    #[must_use]
    pub fn mean_age_ns(&self) -> u64 {
        let mean = self.age_sum_ns.checked_div(u128::from(self.amount.block_count)).unwrap_or(0);
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
        let weight = trace.sampling().weight(block);
        let one = LiveAmount::of_weight(weight);
        rows[*place as usize - 1].1.count(one, age_ns, interval, interval_count);
        whole.count(one, age_ns, interval, interval_count);
    };
    found.damage = trace.for_each_snapshot_block(snapshot, count)?;
    Ok(found)
}
