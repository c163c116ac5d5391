//! Nodes of pairs of a native stack and a language's stack, by their hashes. A thread's level
//! caches the last ones; all threads share the tree below that level.

use crate::tree;

const REMEMBERED_POWER: u32 = 10;
const REMEMBERED: usize = 1 << REMEMBERED_POWER;

/// The node of a native stack, and the hash of a language's stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    native: u32,
    language: u64,
}

/// A pair with its node. All zero: unused.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Known {
    language: u64,
    native: u32,
    node: u32,
}

/// Cache of the last pairs. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pairs {
    all: [Known; REMEMBERED],
}

impl Pairs {
    /// Returns the node of a native stack's node and a language's stack with this hash (0: no
    /// language frames). `Err` has the pair of which a new node must be made.
    #[inline(always)]
    pub(crate) fn find(&mut self, native: u32, language: u64) -> Result<u32, Pair> {
        if language == 0 {
            return Ok(native);
        }
        let pair = Pair { native, language };
        let known = self.place(pair);
        let is_it = known.language == language && known.native == native;
        if is_it { Ok(known.node) } else { self.find_shared(pair) }
    }

    #[cold]
    #[inline(never)]
    fn find_shared(&mut self, pair: Pair) -> Result<u32, Pair> {
        let node = tree::find(pair.hash()).ok_or(pair)?;
        self.keep(pair, node);
        Ok(node)
    }

    /// Stores a pair's node.
    pub(crate) fn keep(&mut self, pair: Pair, node: u32) {
        let Pair { native, language } = pair;
        *self.place(pair) = Known { language, native, node };
    }

    #[inline(always)]
    fn place(&mut self, pair: Pair) -> &mut Known {
        // All bits of a language's hash are spread; the multiplication spreads those of the node.
        let mixed = (pair.language as u32 ^ pair.native).wrapping_mul(0x9e37_79b1);
        // SAFETY: inside the array.
        unsafe { self.all.get_unchecked_mut((mixed >> (u32::BITS - REMEMBERED_POWER)) as usize) }
    }
}

impl Pair {
    /// Returns the hash by which the node of a pair is found in the tree.
    pub(crate) fn hash(self) -> u64 {
        let Self { language, native } = self;
        let spread = u64::from(native).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(spread ^ language.rotate_left(23)) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        (product >> 64) as u64 ^ product as u64 ^ language | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_found_until_another_takes_its_place() {
        // SAFETY: all zero is empty.
        let mut pairs: Pairs = unsafe { core::mem::zeroed() };
        let stacks: Vec<Pair> = (1..4000_u32)
            .map(|number| Pair { native: number % 63, language: tree::part_hash(number as usize, 7, 0) })
            .collect();
        for (node, &pair) in stacks.iter().enumerate() {
            pairs.keep(pair, node as u32);
            assert!(pairs.find(pair.native, pair.language).is_ok_and(|found| found == node as u32));
            assert!(pairs.find(pair.native, 0).is_ok_and(|found| found == pair.native));
        }
        let is_known = |(node, pair): (usize, &Pair)| {
            pairs.all.iter().any(|known| (known.language, known.node) == (pair.language, node as u32))
        };
        let count = stacks.iter().enumerate().filter(|&stack| is_known(stack)).count();
        assert!(count > REMEMBERED * 9 / 10, "{count}: the pairs are not spread");
    }
}
