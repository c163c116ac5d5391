//! Check whether two snapshots are of the same isolate: only then do ids mean the same objects.

use rustc_hash::FxHashMap;

use crate::devtools::Heap;
use crate::{NodeKind, Snapshot};

/// Result of looking for a sample of the first snapshot's strings and functions in the second.
///
/// Strings and functions do not change their text or name, and no id is used twice. Within one
/// isolate, all that are found again are therefore equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Likeness {
    /// Number of sampled objects.
    pub sampled_count: u64,
    /// Number of sampled ids that the second snapshot also has.
    pub found_count: u64,
    /// Number of those whose kind and name are the same there.
    pub equal_count: u64,
}

/// Least number of compared objects, if the snapshot has as many.
const SAMPLES: u32 = 20_000;

impl Likeness {
    /// Looks for objects of `before` in `after`.
    pub fn of(before: &Heap, after: &Heap) -> Self {
        let (before, after) = (before.snapshot(), after.snapshot());
        let telling: Vec<u32> = (0..before.node_count()).filter(|&node| is_telling(before, node)).collect();
        let step = (telling.len() / SAMPLES as usize).max(1);
        let samples: FxHashMap<u64, u32> =
            telling.iter().step_by(step).map(|&node| (before.id(node), node)).collect();
        let mut likeness = Self { sampled_count: samples.len() as u64, found_count: 0, equal_count: 0 };
        for node in 0..after.node_count() {
            if let Some(&sample) = samples.get(&after.id(node)) {
                likeness.found_count += 1;
                let is_equal =
                    before.kind(sample) == after.kind(node) && before.name(sample) == after.name(node);
                likeness.equal_count += u64::from(is_equal);
            }
        }
        likeness
    }

    /// Whether the snapshots are of one isolate. Returns true if there are too few samples.
    pub fn is_same_isolate(&self) -> bool {
        if self.sampled_count < 20 {
            return true;
        }
        // A program may drop most of its objects. Those that remain must be the same, except for
        // strings that became another kind of string.
        self.found_count * 100 >= self.sampled_count && self.equal_count * 100 >= self.found_count * 90
    }
}

fn is_telling(snapshot: &Snapshot, node: u32) -> bool {
    matches!(snapshot.kind(node), NodeKind::STRING | NodeKind::CLOSURE) && !snapshot.name(node).is_empty()
}
