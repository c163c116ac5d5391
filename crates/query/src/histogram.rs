//! Histograms of size and lifetime: one bucket per power of two.

use heapr_trace::{Amounts, Variances, Weight};

use crate::metrics::Metric;

/// The distributed quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HistogramOf {
    /// Requested bytes.
    Size,
    /// Nanoseconds from allocation to free, or to the end of the trace or range.
    Lifetime,
}

/// Amounts of the allocations whose value lies in `from..=last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// Least value, in bytes or ns.
    pub from: u64,
    /// Greatest value, in bytes or ns.
    pub last: u64,
    /// Amounts of these allocations. Reallocations, temporary allocations and peaks are not
    /// counted.
    pub amounts: Amounts,
}

/// The amounts that tables show for each bucket.
const BUCKET_METRICS: [Metric; 4] =
    [Metric::TotalCount, Metric::TotalBytes, Metric::OutstandingCount, Metric::OutstandingBytes];

impl Bucket {
    /// The amounts that a bucket holds.
    pub fn metrics() -> impl Iterator<Item = Metric> {
        BUCKET_METRICS.into_iter()
    }
}

/// A histogram: buckets without gaps, from the first to the last that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The distributed quantity.
    pub of: HistogramOf,
    /// Buckets in ascending order: 0, 1, 2–3, 4–7, 8–15 and so on.
    pub buckets: Vec<Bucket>,
}

/// Counts of a bucket.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    total_count: u64,
    total_bytes: u64,
    outstanding_count: u64,
    outstanding_bytes: u64,
}

/// One entry for each number of bits of a value.
type ByBits<T> = Box<[T; 65]>;

/// Counts allocations by the number of bits of a value.
#[derive(Debug, Clone)]
pub struct HistogramCounter {
    of: HistogramOf,
    counts: ByBits<Counts>,
    /// Variances, if samples are counted.
    variances: Option<ByBits<Variances>>,
}

impl HistogramCounter {
    /// An empty counter.
    pub fn new(of: HistogramOf) -> Self {
        Self { of, counts: Box::new([Counts::default(); 65]), variances: None }
    }

    /// Adds an allocation with its weight.
    pub fn add(&mut self, size_bytes: u64, lifetime_ns: u64, weight: Weight, is_outstanding: bool) {
        let value = match self.of {
            HistogramOf::Size => size_bytes,
            HistogramOf::Lifetime => lifetime_ns,
        };
        let bits = u64::BITS - value.leading_zeros();
        self.add_many_to(bits, (weight.count, weight.bytes), is_outstanding);
        if (weight.count_variance, weight.bytes_variance_kib2) != (0, 0) {
            let all = self.variances.get_or_insert_with(|| Box::new([Variances::default(); 65]));
            let mut one = Variances {
                total_count: weight.count_variance,
                total_bytes: weight.bytes_variance_kib2,
                ..Variances::default()
            };
            if is_outstanding {
                (one.outstanding_count, one.outstanding_bytes) = (one.total_count, one.total_bytes);
            }
            all[bits as usize] += &one;
        }
    }

    /// Adds an allocation that stands for itself, by the number of bits of its value.
    #[inline(always)]
    pub fn add_to(&mut self, bits: u32, size_bytes: u64, is_outstanding: bool) {
        self.add_many_to(bits, (1, size_bytes), is_outstanding);
    }

    #[inline(always)]
    fn add_many_to(&mut self, bits: u32, (count, bytes): (u64, u64), is_outstanding: bool) {
        let counts = &mut self.counts[bits as usize];
        counts.total_count += count;
        counts.total_bytes = counts.total_bytes.saturating_add(bytes);
        if is_outstanding {
            counts.outstanding_count += count;
            counts.outstanding_bytes = counts.outstanding_bytes.saturating_add(bytes);
        }
    }

    /// Adds the counts of another counter, without variances.
    pub fn merge(&mut self, other: &Self) {
        for (sum, counts) in self.counts.iter_mut().zip(other.counts.iter()) {
            sum.total_count += counts.total_count;
            sum.total_bytes = sum.total_bytes.saturating_add(counts.total_bytes);
            sum.outstanding_count += counts.outstanding_count;
            sum.outstanding_bytes = sum.outstanding_bytes.saturating_add(counts.outstanding_bytes);
        }
    }

    /// Subtracts the counts of another counter, all of which must be contained in this one.
    pub fn subtract(&mut self, other: &Self) {
        for (sum, counts) in self.counts.iter_mut().zip(other.counts.iter()) {
            sum.total_count -= counts.total_count;
            sum.total_bytes -= counts.total_bytes;
            sum.outstanding_count -= counts.outstanding_count;
            sum.outstanding_bytes -= counts.outstanding_bytes;
        }
    }

    /// Returns the histogram.
    pub fn finish(self) -> Histogram {
        let bucket = |bits: usize| {
            let Counts { total_count, total_bytes, outstanding_count, outstanding_bytes } = self.counts[bits];
            let variances = self.variances.as_ref().map_or_else(Variances::default, |all| all[bits]);
            Bucket {
                from: if bits == 0 { 0 } else { 1 << (bits - 1) },
                last: if bits == 0 { 0 } else { u64::MAX >> (64 - bits) },
                amounts: Amounts {
                    total_count,
                    total_bytes,
                    outstanding_count,
                    outstanding_bytes,
                    variances,
                    ..Amounts::default()
                },
            }
        };
        let is_used = |counts: &Counts| counts.total_count > 0;
        let buckets = match (self.counts.iter().position(is_used), self.counts.iter().rposition(is_used)) {
            (Some(first), Some(last)) => (first..=last).map(bucket).collect(),
            _ => Vec::new(),
        };
        Histogram { of: self.of, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_falls_into_the_bucket_that_names_it() {
        for value in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            let mut counter = HistogramCounter::new(HistogramOf::Lifetime);
            counter.add(5, value, Weight::exact(5), true);
            let histogram = counter.finish();
            let [bucket] = histogram.buckets[..] else { panic!("{histogram:?}") };
            assert!((bucket.from..=bucket.last).contains(&value), "{value} in {bucket:?}");
            let Amounts { total_count, total_bytes, outstanding_bytes, .. } = bucket.amounts;
            assert_eq!((total_count, total_bytes, outstanding_bytes), (1, 5, 5));
        }
    }

    /// Pseudo-random numbers from 0 to 1.
    fn draws(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn of_samples_each_bucket_says_how_sure_it_is() {
        const MEAN: u64 = 64 << 10;
        const SEEDS: u64 = 1000;
        // Size of the blocks, their number, and the number that is never freed.
        let blocks = [(100_u64, 60_000_u64, 30_000_u64), (3_000, 2_000, 1_000), (50_000, 300, 100)];
        let metrics: Vec<Metric> = Bucket::metrics().collect();
        let mut inside = vec![[0_u64; 4]; blocks.len()];
        for seed in 0..SEEDS {
            let (mut counter, mut draw) = (HistogramCounter::new(HistogramOf::Size), draws(seed + 1));
            let mut salt = seed << 32;
            for (size, count, kept) in blocks {
                let chance = -(-((size + 1) as f64) / MEAN as f64).exp_m1();
                for number in 0..count {
                    if draw() < chance {
                        salt += 1;
                        counter.add(size, 0, Weight::of_sample(size, MEAN, salt), number < kept);
                    }
                }
            }
            let found = counter.finish();
            for (place, (size, count, kept)) in blocks.into_iter().enumerate() {
                let bucket = found.buckets.iter().find(|bucket| (bucket.from..=bucket.last).contains(&size));
                let amounts = bucket.unwrap().amounts;
                let truth = [count, count * size, kept, kept * size];
                for ((inside, metric), truth) in inside[place].iter_mut().zip(&metrics).zip(truth) {
                    let off = metric.of(&amounts).abs_diff(truth);
                    *inside += u64::from(off <= metric.plus_minus(&amounts));
                }
            }
        }
        for shares in inside.iter().flatten() {
            // 95 % of 1,000 seeds, within four standard deviations.
            assert!((922..=978).contains(shares), "{inside:?}");
        }
    }

    #[test]
    fn buckets_in_between_are_kept() {
        let mut counter = HistogramCounter::new(HistogramOf::Size);
        counter.add(1, 0, Weight::exact(1), false);
        counter.add(8, 0, Weight::exact(8), false);
        let buckets = counter.finish().buckets;
        let counts: Vec<u64> = buckets.iter().map(|bucket| bucket.amounts.total_count).collect();
        assert_eq!(counts, [1, 0, 0, 1]);
    }
}
