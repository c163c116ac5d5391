//! The groups that blocks were looked for in last: most blocks are near others that came or went a
//! short while ago.
//!
//! One place for each of so many groups, by address: what finds its group here needs neither the
//! directory nor the region, which are two loads after a multiplication, each waiting for the one
//! before.

/// Places: 4 KiB.
const PLACES: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Recent {
    /// As of a group; of nothing, one that no group has.
    key: u64,
    owner: u32,
    group: u32,
}

/// Groups by where they lie. Good until groups are given back.
#[derive(Debug)]
pub(crate) struct RecentGroups(Box<[Recent; PLACES]>);

/// (Thread's arenas begin at multiples of 64 MiB: without the upper bits they would all meet.)
#[inline(always)]
fn place(key: u64) -> usize {
    (key >> 9 ^ key >> 26) as usize % PLACES
}

impl RecentGroups {
    /// None.
    pub(crate) fn new() -> Self {
        Self(Box::new([Recent { key: u64::MAX, owner: 0, group: 0 }; PLACES]))
    }

    /// The group with a key, if it is here.
    #[inline(always)]
    pub(crate) fn get(&self, owner: u32, key: u64) -> Option<u32> {
        let recent = &self.0[place(key)];
        (recent.key == key && recent.owner == owner).then_some(recent.group)
    }

    /// Puts one here.
    #[inline(always)]
    pub(crate) fn put(&mut self, owner: u32, key: u64, group: u32) {
        self.0[place(key)] = Recent { key, owner, group };
    }
}
