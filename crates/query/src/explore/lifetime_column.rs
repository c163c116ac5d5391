//! How long each allocation lived, to the power of two: a byte, in order of birth.
//!
//! The exact lifetime takes the time of the end, which lies anywhere in a column of many megabytes. The number of its bits is
//! what a histogram asks for, and settles all but a few comparisons with a span:
//!
//! ```text
//! bits      …  18 │ 19 │ 20 │ 21 …
//! span            [──────)          19 passes, 20 is compared exactly, all others fail
//! ```

use super::event_table::EventTable;
use super::spread::Spread;
use crate::error::Result;
use crate::filter::Span;

/// Number of bits of a value: 0 for 0.
#[inline(always)]
pub(super) fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// See the module. What is not freed in the trace has none.
#[derive(Debug)]
pub(super) struct LifetimeColumn(Vec<u8>);

impl LifetimeColumn {
    /// The lifetimes of a table's allocations.
    pub(super) fn new(table: &EventTable, spread: Spread) -> Result<Self> {
        let moves = table.move_count();
        let parts = spread.map(0..table.allocation_count(), |part| {
            let bits = part.map(|allocation| {
                let end = table.ends[allocation].sequence();
                // A lifetime has at most 64 bits.
                if end < moves { bits_of(table.lifetime_ns(allocation, end)) as u8 } else { 0 }
            });
            Ok(bits.collect::<Vec<u8>>())
        })?;
        let mut parts = parts.into_iter();
        let mut bits = parts.next().unwrap_or_default();
        parts.for_each(|part| bits.extend(part));
        Ok(Self(bits))
    }

    /// Bits of the lifetime of an allocation that was freed.
    #[inline(always)]
    pub(super) fn bits(&self, allocation: usize) -> u32 {
        u32::from(self.0[allocation])
    }
}

/// Whether lifetimes of a number of bits lie in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    All,
    None,
    /// Some do: only the exact lifetime tells.
    Some,
}

/// Compares lifetimes with a span.
#[derive(Debug)]
pub(super) struct LifetimeTest {
    span: Span,
    verdicts: [Verdict; 65],
}

impl LifetimeTest {
    pub(super) fn new(span: Span) -> Self {
        let verdict = |bits: usize| {
            let last = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let first = if bits == 0 { 0 } else { last / 2 + 1 };
            match (span.contains(first), span.contains(last)) {
                (true, true) => Verdict::All,
                (false, false) if span.to <= first || span.from > last || span.from >= span.to => {
                    Verdict::None
                }
                _ => Verdict::Some,
            }
        };
        Self { span, verdicts: std::array::from_fn(verdict) }
    }

    /// Whether a lifetime passes; `lifetime_ns` is asked for only where its bits do not tell.
    #[inline(always)]
    pub(super) fn passes(&self, bits: u32, lifetime_ns: impl FnOnce() -> u64) -> bool {
        match self.verdicts[bits as usize] {
            Verdict::All => true,
            Verdict::None => false,
            Verdict::Some => self.span.contains(lifetime_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..20_u64,
            any::<u64>(),
            (0..64_u32, 0..3_u64).prop_map(|(bits, more)| (1 << bits) - 1 + more)
        ]
    }

    proptest! {
        #[test]
        fn the_bits_and_at_times_the_lifetime_say_what_the_span_says(from in times(), to in times(), values in prop::collection::vec(times(), 1..50)) {
            let span = Span { from, to };
            let test = LifetimeTest::new(span);
            for value in values {
                prop_assert_eq!(test.passes(bits_of(value), || value), span.contains(value));
            }
        }
    }
}
