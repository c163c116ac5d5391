//! Lifetimes of allocations to a quarter of a power of two: a byte each, in order of birth.
//!
//! The exact lifetime needs the time of the end, at a random position in a column of many
//! megabytes. The lifetime's class is the number of its bits and the two bits behind the first. It
//! suffices for a histogram, and decides all but a few comparisons with a span:
//!
//! ```text
//! bits           …      18      │      19       │      20       │ 21 …
//! classes          64│65│66│67  │  68│69│70│71  │  72│73│74│75  │ …
//! span                  [──────────────────)       65 and 71 are compared exactly, all others pass or fail
//! ```

use std::ops::Range;

use heapr_query::{Result, Span};

use crate::event_table::EventTable;
use crate::parallelism::Parallelism;

/// Number of bits of a value: 0 for 0.
#[inline(always)]
pub(crate) fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// The class of a lifetime: values below 4 have one each, each power of two above has four.
pub(crate) fn class_of(value: u64) -> u8 {
    if value < 4 {
        return value as u8;
    }
    let bits = bits_of(value);
    // At most 4 · 61 + 7.
    ((bits - 3) * 4 + (value >> (bits - 3)) as u32) as u8
}

/// The least value of a class.
fn least_of(class: u8) -> u64 {
    if class < 8 { u64::from(class) } else { u64::from(class % 4 + 4) << (class / 4 - 1) }
}

/// Number of bits of a class's values.
#[inline(always)]
pub(crate) fn bits_of_class(class: u8) -> u32 {
    BITS[class as usize]
}

/// Number of bits of each class's values.
static BITS: [u32; 256] = {
    let mut bits = [0; 256];
    let mut class = 1;
    while class <= LAST as usize {
        bits[class] = if class < 4 { 1 + class as u32 / 2 } else { class as u32 / 4 + 2 };
        class += 1;
    }
    bits
};

/// The last class: that of the largest value.
const LAST: u8 = 251;
/// Stands for the class of an allocation that did not end.
pub(crate) const ALIVE: u8 = u8::MAX;

/// Lifetime classes of allocations; [`ALIVE`] for those that are not freed in the trace.
#[derive(Debug)]
pub(crate) struct LifetimeColumn(Vec<u8>);

impl LifetimeColumn {
    /// The lifetimes of a table's allocations.
    pub(crate) fn new(table: &EventTable, parallelism: Parallelism) -> Result<Self> {
        let moves = table.move_count();
        let parts = parallelism.map(0..table.allocation_count(), |part| {
            let classes = part.map(|allocation| {
                let end = table.ends[allocation].sequence();
                if end < moves { class_of(table.lifetime_ns(allocation, end)) } else { ALIVE }
            });
            Ok(classes.collect::<Vec<u8>>())
        })?;
        let mut parts = parts.into_iter();
        let mut classes = parts.next().unwrap_or_default();
        parts.for_each(|part| classes.extend(part));
        Ok(Self(classes))
    }

    /// The classes of allocations; [`ALIVE`] for those that were not freed.
    pub(crate) fn classes(&self, allocations: Range<usize>) -> &[u8] {
        &self.0[allocations]
    }

    /// The class of the lifetime of an allocation that was freed.
    #[inline(always)]
    pub(crate) fn class(&self, allocation: usize) -> u8 {
        self.0[allocation]
    }

    /// Bits of the lifetime of an allocation that was freed.
    #[inline(always)]
    pub(crate) fn bits(&self, allocation: usize) -> u32 {
        bits_of_class(self.class(allocation))
    }
}

/// Verdict: all lifetimes of a class lie in the span. Without either bit, no lifetime does.
const PASSES: u8 = 1;
/// Verdict: some lifetimes may lie in the span, which only the exact lifetime decides.
const UNSURE: u8 = 2;

/// Compares lifetimes with a span.
#[derive(Debug)]
pub(crate) struct LifetimeTest {
    span: Span,
    /// Verdict for each class.
    verdicts: [u8; 256],
}

impl LifetimeTest {
    pub(crate) fn new(span: Span) -> Self {
        let verdict = |class: usize| {
            let class = class as u8;
            if class > LAST {
                return UNSURE;
            }
            let first = least_of(class);
            let last = if class == LAST { u64::MAX } else { least_of(class + 1) - 1 };
            match (span.contains(first), span.contains(last)) {
                (true, true) => PASSES,
                (false, false) if span.to <= first || span.from > last || span.from >= span.to => 0,
                _ => UNSURE,
            }
        };
        Self { span, verdicts: std::array::from_fn(verdict) }
    }

    /// Whether a lifetime passes; `lifetime_ns` is called only if its class does not decide.
    #[inline(always)]
    pub(crate) fn passes(&self, class: u8, lifetime_ns: impl FnOnce() -> u64) -> bool {
        match self.verdicts[class as usize] {
            PASSES => true,
            UNSURE => self.span.contains(lifetime_ns()),
            _ => false,
        }
    }

    /// Bits for those of up to 64 lifetimes that pass; the first has the lowest bit. `lifetime_ns`
    /// is called where the class does not decide. The loop over the classes has no branch, because
    /// lifetimes are in unpredictable order.
    #[inline(always)]
    pub(crate) fn passing(&self, classes: &[u8], mut lifetime_ns: impl FnMut(usize) -> u64) -> u64 {
        let (mut passing, mut unsure) = (0_u64, 0_u64);
        for (at, &class) in classes.iter().enumerate() {
            let verdict = u64::from(self.verdicts[class as usize]);
            passing |= (verdict & 1) << at;
            unsure |= (verdict >> 1) << at;
        }
        while unsure != 0 {
            let at = unsure.trailing_zeros() as usize;
            passing |= u64::from(self.span.contains(lifetime_ns(at))) << at;
            unsure &= unsure - 1;
        }
        passing
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

    #[test]
    fn classes_lie_one_behind_the_other() {
        assert_eq!((class_of(0), class_of(u64::MAX)), (0, LAST));
        for class in 0..=LAST {
            let least = least_of(class);
            assert_eq!((class_of(least), bits_of_class(class)), (class, bits_of(least)), "{class}");
            if class > 0 {
                assert_eq!(class_of(least - 1), class - 1, "{class}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_class_and_at_times_the_lifetime_say_what_the_span_says(from in times(), to in times(), values in prop::collection::vec(times(), 1..50)) {
            let span = Span { from, to };
            let test = LifetimeTest::new(span);
            for &value in &values {
                prop_assert_eq!(test.passes(class_of(value), || value), span.contains(value));
            }
            let classes: Vec<u8> = values.iter().enumerate().map(|(at, &value)| if at % 7 == 3 { ALIVE } else { class_of(value) }).collect();
            let passing = test.passing(&classes, |at| values[at]);
            for (at, &value) in values.iter().enumerate() {
                prop_assert_eq!(passing >> at & 1 != 0, span.contains(value));
            }
        }
    }
}
