//! Times that never decrease, in four bytes each.
//!
//! Each 4096 times are a block with the time of its first. The others are 32-bit differences to it,
//! if the block lasts less than 4.3 s. Otherwise (in a program that hardly allocates) its times are
//! stored in full in a separate list.

/// Number of times per block, as a power of two: any time is two loads away.
const BLOCK_BITS: u32 = 12;
const BLOCK_TIMES: usize = 1 << BLOCK_BITS;
/// Marks a block outside of the list of full times.
const NARROW: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Block {
    base_ns: u64,
    /// Index of the block's first time in `full_ns`, or [`NARROW`].
    full: u32,
}

/// A column of times that never decrease.
#[derive(Debug, Default, Clone)]
pub(crate) struct TimeColumn {
    blocks: Vec<Block>,
    offsets_ns: Vec<u32>,
    full_ns: Vec<u64>,
    last_ns: u64,
}

impl TimeColumn {
    /// Reserves memory for `count` times, if available.
    pub(crate) fn reserve(&mut self, count: usize) {
        let _ = self.offsets_ns.try_reserve(count);
    }

    /// Frees unused memory; called after the last time.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.offsets_ns.shrink_to_fit();
    }

    /// Appends a time; a time less than the last one is replaced by that.
    pub(crate) fn push(&mut self, time_ns: u64) {
        let time_ns = time_ns.max(self.last_ns);
        self.last_ns = time_ns;
        let number = self.offsets_ns.len();
        if number.is_multiple_of(BLOCK_TIMES) {
            self.blocks.push(Block { base_ns: time_ns, full: NARROW });
        }
        let at = self.blocks.len() - 1;
        let Block { base_ns, full } = self.blocks[at];
        match u32::try_from(time_ns - base_ns) {
            Ok(offset) if full == NARROW => self.offsets_ns.push(offset),
            _ => {
                if full == NARROW {
                    self.blocks[at].full = self.full_ns.len() as u32;
                    let first = at << BLOCK_BITS;
                    self.full_ns
                        .extend(self.offsets_ns[first..].iter().map(|&offset| base_ns + u64::from(offset)));
                }
                self.full_ns.push(time_ns);
                self.offsets_ns.push(0);
            }
        }
    }

    /// The time with this number.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> u64 {
        let block = self.blocks[(number >> BLOCK_BITS) as usize];
        if block.full == NARROW {
            block.base_ns + u64::from(self.offsets_ns[number as usize])
        } else {
            self.full_ns[block.full as usize + (number as usize & (BLOCK_TIMES - 1))]
        }
    }

    /// Number of times before `time_ns`.
    pub(crate) fn count_before(&self, time_ns: u64) -> u32 {
        // The last block that begins before it contains the border.
        let at = self.blocks.partition_point(|block| block.base_ns < time_ns);
        let Some(at) = at.checked_sub(1) else { return 0 };
        let block = self.blocks[at];
        let start = at << BLOCK_BITS;
        let end = (start + BLOCK_TIMES).min(self.offsets_ns.len());
        let inside = if block.full == NARROW {
            let difference = time_ns - block.base_ns;
            self.offsets_ns[start..end].partition_point(|&offset| u64::from(offset) < difference)
        } else {
            let full = block.full as usize;
            self.full_ns[full..full + end - start].partition_point(|&known| known < time_ns)
        };
        (start + inside) as u32
    }

    /// Memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.offsets_ns.capacity() * 4
            + self.blocks.capacity() * size_of::<Block>()
            + self.full_ns.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_a_plain_list(
            steps in prop::collection::vec(prop_oneof![
                0..3_u64, 0..9000_u64, Just(u64::from(u32::MAX)), Just(1 << 40)
            ], 0..200),
            asked in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
            repeated in 1..100_usize,
        ) {
            let mut column = TimeColumn::default();
            let mut plain = Vec::new();
            let mut time_ns = 5;
            for step in steps {
                time_ns += step;
                for _ in 0..repeated {
                    column.push(time_ns);
                    plain.push(time_ns);
                }
            }
            for (number, &time_ns) in plain.iter().enumerate() {
                prop_assert_eq!(column.get(number as u32), time_ns);
            }
            for index in asked {
                let time_ns = if plain.is_empty() { 7 } else { plain[index.index(plain.len())] };
                for time_ns in [time_ns.saturating_sub(1), time_ns, time_ns + 1, 0, u64::MAX] {
                    let naive = plain.iter().filter(|&&known| known < time_ns).count();
                    prop_assert_eq!(column.count_before(time_ns) as usize, naive);
                }
            }
        }
    }
}
