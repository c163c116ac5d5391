//! Nodes by address: a table for each pool of small objects, and a hash table for all others.

use rustc_hash::FxHashMap;

/// Distance between two addresses of objects, at least.
const UNIT_BYTES: u64 = 16;
const NONE: u32 = u32::MAX;

/// Nodes by address.
#[derive(Debug)]
pub(crate) struct ObjectMap {
    /// Size of a pool, or of any range that is as dense.
    pool_bytes: u64,
    /// First entry of each pool's table, by the pool's number.
    pools: FxHashMap<u64, u32>,
    table: Vec<u32>,
    others: FxHashMap<u64, u32>,
}

impl ObjectMap {
    /// Creates an empty map. `pool_bytes`: size of pools, a power of two.
    pub(crate) fn new(pool_bytes: u64) -> Self {
        Self { pool_bytes, pools: FxHashMap::default(), table: Vec::new(), others: FxHashMap::default() }
    }

    fn units(&self) -> u64 {
        self.pool_bytes / UNIT_BYTES
    }

    /// Adds a pool. Addresses in it that are not added are known to have no object.
    pub(crate) fn add_pool(&mut self, pool_avma: u64) {
        // More pools than a table can number make the map a plain one.
        let Ok(first) = u32::try_from(self.table.len() as u64 / self.units()) else { return };
        if let std::collections::hash_map::Entry::Vacant(vacant) =
            self.pools.entry(pool_avma / self.pool_bytes)
        {
            vacant.insert(first);
            self.table.resize(self.table.len() + self.units() as usize, NONE);
        }
    }

    fn slot(&self, address_avma: u64) -> Option<usize> {
        let first = *self.pools.get(&(address_avma / self.pool_bytes))?;
        let unit = address_avma % self.pool_bytes / UNIT_BYTES;
        Some((u64::from(first) * self.units() + unit) as usize)
    }

    /// Whether an address lies in a pool.
    pub(crate) fn is_in_pool(&self, address_avma: u64) -> bool {
        self.pools.contains_key(&(address_avma / self.pool_bytes))
    }

    /// Returns the node of an address.
    pub(crate) fn get(&self, address_avma: u64) -> Option<u32> {
        match self.slot(address_avma) {
            Some(slot) if address_avma.is_multiple_of(UNIT_BYTES) => {
                self.table.get(slot).copied().filter(|&node| node != NONE)
            }
            Some(_) => None,
            None => self.others.get(&address_avma).copied(),
        }
    }

    /// Adds a node.
    pub(crate) fn insert(&mut self, address_avma: u64, node: u32) {
        match self.slot(address_avma) {
            Some(slot) if address_avma.is_multiple_of(UNIT_BYTES) => {
                if let Some(entry) = self.table.get_mut(slot) {
                    *entry = node;
                }
            }
            Some(_) => {}
            None => {
                self.others.insert(address_avma, node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_pools_and_elsewhere_are_found_by_their_address_alone() {
        let mut map = ObjectMap::new(4096);
        map.add_pool(0x10_0000);
        map.insert(0x10_0040, 7);
        map.insert(0x20_0008, 8);
        assert_eq!(
            [0x10_0040, 0x20_0008, 0x10_0048, 0x10_0050].map(|at| map.get(at)),
            [Some(7), Some(8), None, None]
        );
        assert!(map.is_in_pool(0x10_0fff) && !map.is_in_pool(0x10_1000));
    }
}
