//! Cache of recently used groups: most blocks are near others that recently came or went.
//!
//! The cache has one entry per hash of the address. A hit needs neither the directory nor the
//! region. These cost two loads after a multiplication, each waiting for the one before.

/// Number of entries: 4 KiB in all.
const PLACES: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Recent {
    /// Key of the group; in an empty entry a key that no group has.
    key: u64,
    owner: u32,
    group: u32,
}

/// Recently used groups. Valid until groups are freed.
#[derive(Debug)]
pub(crate) struct RecentGroups(Box<[Recent; PLACES]>);

/// Index of a key's entry. (Threads' arenas begin at multiples of 64 MiB: without the upper bits
/// they would all collide.)
#[inline(always)]
fn place(key: u64) -> usize {
    (key >> 9 ^ key >> 26) as usize % PLACES
}

impl RecentGroups {
    /// An empty cache.
    pub(crate) fn new() -> Self {
        Self(Box::new([Recent { key: u64::MAX, owner: 0, group: 0 }; PLACES]))
    }

    /// The group with a key, if it is cached.
    #[inline(always)]
    pub(crate) fn get(&self, owner: u32, key: u64) -> Option<u32> {
        let recent = &self.0[place(key)];
        (recent.key == key && recent.owner == owner).then_some(recent.group)
    }

    /// Caches a group.
    #[inline(always)]
    pub(crate) fn put(&mut self, owner: u32, key: u64, group: u32) {
        self.0[place(key)] = Recent { key, owner, group };
    }
}
