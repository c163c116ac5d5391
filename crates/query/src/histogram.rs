//! Histograms of size and lifetime: one bucket per power of two.

/// What a histogram is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HistogramOf {
    /// Bytes asked for.
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
    /// Allocations.
    pub total_count: u64,
    /// Their bytes.
    pub total_bytes: u64,
    /// Not freed (inside the range).
    pub outstanding_count: u64,
    /// Their bytes.
    pub outstanding_bytes: u64,
}

/// A histogram: buckets without gaps, from the first to the last that holds something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Of what.
    pub of: HistogramOf,
    /// In ascending order: 0, 1, 2–3, 4–7, 8–15 and so on.
    pub buckets: Vec<Bucket>,
}

/// Counts allocations by the number of bits of a value.
#[derive(Debug, Clone)]
pub struct HistogramCounter {
    of: HistogramOf,
    buckets: Box<[Bucket; 65]>,
}

impl HistogramCounter {
    /// Nothing is counted yet.
    pub fn new(of: HistogramOf) -> Self {
        Self { of, buckets: Box::new([Bucket::default(); 65]) }
    }

    /// Adds an allocation that stands for `count` of `bytes` together.
    pub fn add(
        &mut self,
        size_bytes: u64,
        lifetime_ns: u64,
        (count, bytes): (u64, u64),
        is_outstanding: bool,
    ) {
        let value = match self.of {
            HistogramOf::Size => size_bytes,
            HistogramOf::Lifetime => lifetime_ns,
        };
        self.add_many_to(u64::BITS - value.leading_zeros(), (count, bytes), is_outstanding);
    }

    /// Adds an allocation whose value has so many bits.
    #[inline(always)]
    pub fn add_to(&mut self, bits: u32, size_bytes: u64, is_outstanding: bool) {
        self.add_many_to(bits, (1, size_bytes), is_outstanding);
    }

    #[inline(always)]
    fn add_many_to(&mut self, bits: u32, (count, bytes): (u64, u64), is_outstanding: bool) {
        let bucket = &mut self.buckets[bits as usize];
        bucket.total_count += count;
        bucket.total_bytes = bucket.total_bytes.saturating_add(bytes);
        if is_outstanding {
            bucket.outstanding_count += count;
            bucket.outstanding_bytes = bucket.outstanding_bytes.saturating_add(bytes);
        }
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (sum, bucket) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            sum.total_count += bucket.total_count;
            sum.total_bytes = sum.total_bytes.saturating_add(bucket.total_bytes);
            sum.outstanding_count += bucket.outstanding_count;
            sum.outstanding_bytes = sum.outstanding_bytes.saturating_add(bucket.outstanding_bytes);
        }
    }

    /// Takes away what another one has counted, all of which this one has.
    pub fn subtract(&mut self, other: &Self) {
        for (sum, bucket) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            sum.total_count -= bucket.total_count;
            sum.total_bytes -= bucket.total_bytes;
            sum.outstanding_count -= bucket.outstanding_count;
            sum.outstanding_bytes -= bucket.outstanding_bytes;
        }
    }

    /// The histogram.
    pub fn finish(self) -> Histogram {
        let mut buckets = *self.buckets;
        for (bits, bucket) in buckets.iter_mut().enumerate() {
            bucket.from = if bits == 0 { 0 } else { 1 << (bits - 1) };
            bucket.last = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        }
        let is_used = |bucket: &Bucket| bucket.total_count > 0;
        let buckets = match (buckets.iter().position(is_used), buckets.iter().rposition(is_used)) {
            (Some(first), Some(last)) => buckets[first..=last].to_vec(),
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
            counter.add(5, value, (1, 5), true);
            let histogram = counter.finish();
            let [bucket] = histogram.buckets[..] else { panic!("{histogram:?}") };
            assert!((bucket.from..=bucket.last).contains(&value), "{value} in {bucket:?}");
            assert_eq!((bucket.total_count, bucket.total_bytes, bucket.outstanding_bytes), (1, 5, 5));
        }
    }

    #[test]
    fn buckets_in_between_are_kept() {
        let mut counter = HistogramCounter::new(HistogramOf::Size);
        counter.add(1, 0, (1, 1), false);
        counter.add(8, 0, (1, 8), false);
        let counts: Vec<u64> = counter.finish().buckets.iter().map(|bucket| bucket.total_count).collect();
        assert_eq!(counts, [1, 0, 0, 1]);
    }
}
