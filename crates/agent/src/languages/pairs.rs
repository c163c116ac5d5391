//! Nodes of pairs of a native stack and a language's stack, by their hashes. A thread's level
//! caches the last ones; all threads share the tree below that level.

use crate::tree;

const REMEMBERED: usize = 1024;

/// Cache of the last pairs. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Pairs {
    nodes: [(u64, u32); REMEMBERED],
}

impl Pairs {
    /// Returns the node of a native stack's node and a language's stack with this hash (0: no
    /// language frames). `Err` has the hash under which a new node must be stored.
    #[inline(always)]
    pub(crate) fn find(&mut self, native: u32, language: u64) -> Result<u32, u64> {
        if language == 0 {
            return Ok(native);
        }
        let pair = hash(native, language);
        let &mut (known, node) = self.place(pair);
        if known == pair { Ok(node) } else { self.find_shared(pair) }
    }

    #[cold]
    #[inline(never)]
    fn find_shared(&mut self, pair: u64) -> Result<u32, u64> {
        let node = tree::find(pair).ok_or(pair)?;
        self.keep(pair, node);
        Ok(node)
    }

    /// Stores a pair's node.
    pub(crate) fn keep(&mut self, pair: u64, node: u32) {
        *self.place(pair) = (pair, node);
    }

    #[inline(always)]
    fn place(&mut self, pair: u64) -> &mut (u64, u32) {
        // SAFETY: inside the array.
        unsafe { &mut *self.nodes.as_mut_ptr().wrapping_add((pair >> 40) as usize % REMEMBERED) }
    }
}

/// Returns the hash by which the node of a pair is found.
#[inline(always)]
fn hash(native: u32, language: u64) -> u64 {
    let spread = u64::from(native).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(spread ^ language.rotate_left(23)) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    (product >> 64) as u64 ^ product as u64 ^ language | 1
}
