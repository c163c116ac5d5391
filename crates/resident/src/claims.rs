//! Claims: address ranges with exactly one owner each.

use std::ops::Range;

use heapr_proc::Mapping;

use crate::class::{Class, ToldBy};

/// Addresses and their owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Address range.
    pub(crate) range_avma: Range<u64>,
    /// Class of the memory.
    pub(crate) class: Class,
    /// Part within the class: an arena, an allocator.
    pub(crate) part: String,
    /// Evidence of the class.
    pub(crate) told_by: ToldBy,
}

/// Claims; the first one counts where two overlap.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Claims by address, without overlap.
    claims: Vec<Claim>,
}

impl Claims {
    /// Adds the parts of `claim` that are still free.
    pub(crate) fn add(&mut self, claim: Claim) {
        for range_avma in self.free(claim.range_avma.clone()) {
            let place = self.claims.partition_point(|other| other.range_avma.start < range_avma.start);
            self.claims.insert(place, Claim { range_avma, ..claim.clone() });
        }
    }

    /// Adds many claims at once, instead of moving the later ones for each. Only their free parts
    /// are added; where new claims overlap, the one that starts first counts.
    pub(crate) fn add_many(&mut self, claims: impl IntoIterator<Item = Claim>) {
        let mut new: Vec<Claim> = Vec::new();
        for claim in claims {
            let free = self.free(claim.range_avma.clone());
            new.extend(free.into_iter().map(|range_avma| Claim { range_avma, ..claim.clone() }));
        }
        self.claims.append(&mut new);
        self.claims.sort_by_key(|claim| claim.range_avma.start);
        let mut end_avma = 0;
        self.claims.retain_mut(|claim| {
            claim.range_avma.start = claim.range_avma.start.max(end_avma);
            end_avma = end_avma.max(claim.range_avma.end);
            !claim.range_avma.is_empty()
        });
    }

    /// Claims that overlap `range_avma`.
    pub(crate) fn inside(&self, range_avma: Range<u64>) -> impl Iterator<Item = &Claim> {
        let first = self.claims.partition_point(|claim| claim.range_avma.end <= range_avma.start);
        self.claims[first..].iter().take_while(move |claim| claim.range_avma.start < range_avma.end)
    }

    /// Parts of `range_avma` without a claim.
    pub(crate) fn free(&self, range_avma: Range<u64>) -> Vec<Range<u64>> {
        let mut free = Vec::new();
        let mut start_avma = range_avma.start;
        for claim in self.inside(range_avma.clone()) {
            if start_avma < claim.range_avma.start {
                free.push(start_avma..claim.range_avma.start);
            }
            start_avma = start_avma.max(claim.range_avma.end);
        }
        if start_avma < range_avma.end {
            free.push(start_avma..range_avma.end);
        }
        free
    }

    /// Whether a mapping has no claim in it.
    pub(crate) fn is_free(&self, mapping: &Mapping) -> bool {
        self.inside(range_of(mapping)).next().is_none()
    }
}

/// Addresses of a mapping.
pub(crate) fn range_of(mapping: &Mapping) -> Range<u64> {
    mapping.start_avma..mapping.end_avma
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(range_avma: Range<u64>, class: Class) -> Claim {
        Claim { range_avma, class, part: String::new(), told_by: ToldBy::Place }
    }

    #[test]
    fn the_first_claim_of_an_address_counts() {
        let mut claims = Claims::default();
        claims.add(claim(10..20, Class::GoHeap));
        claims.add(claim(5..30, Class::JvmHeap));
        claims.add_many([claim(0..6, Class::Code), claim(25..40, Class::Code)]);
        let found: Vec<_> = claims.inside(0..100).map(|one| (one.range_avma.clone(), one.class)).collect();
        let expected = [
            (0..5, Class::Code),
            (5..10, Class::JvmHeap),
            (10..20, Class::GoHeap),
            (20..30, Class::JvmHeap),
            (30..40, Class::Code),
        ];
        assert_eq!(found, expected);
        assert_eq!(claims.free(38..45), vec![40..45]);
    }
}
