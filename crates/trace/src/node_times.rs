//! Times at which stack nodes were first seen: exact, in a little over four bytes a node.
//!
//! ```text
//! bases   one time for each 256 nodes
//! deltas  ns since the base; u32::MAX: the time is in `far`
//! ```
//!
//! Nodes are made nearly in order of time, so that few lie more than four seconds from their base.

use std::collections::HashMap;

/// Number of nodes that share a base.
const NODES_PER_BASE: usize = 256;

/// Stands in `deltas` for a time that does not fit 32 bits.
const FAR: u32 = u32::MAX;

/// Times by index of the node.
#[derive(Debug, Default, Clone)]
pub(crate) struct NodeTimes {
    bases: Vec<u64>,
    deltas: Vec<u32>,
    far: HashMap<u32, u64>,
}

impl NodeTimes {
    pub(crate) fn get(&self, place: usize) -> Option<u64> {
        match *self.deltas.get(place)? {
            FAR => self.far.get(&(place as u32)).copied(),
            delta => Some(self.bases.get(place / NODES_PER_BASE)?.wrapping_add(u64::from(delta))),
        }
    }

    pub(crate) fn push(&mut self, time_ns: u64) {
        let place = self.deltas.len();
        if place.is_multiple_of(NODES_PER_BASE) {
            self.bases.push(time_ns);
        }
        let since = self.bases.last().and_then(|&base| time_ns.checked_sub(base));
        let delta = since.and_then(|since| u32::try_from(since).ok()).unwrap_or(FAR);
        if delta == FAR {
            self.far.insert(place as u32, time_ns);
        }
        self.deltas.push(delta);
    }

    pub(crate) fn reserve(&mut self, count: usize) {
        self.deltas.reserve(count);
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        if !self.far.is_empty() {
            self.far.retain(|&place, _| (place as usize) < count);
        }
        self.deltas.truncate(count);
        self.bases.truncate(count.div_ceil(NODES_PER_BASE));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a plain list. Times increase, jump far ahead and fall back, and lists are
        /// cut short in between.
        #[test]
        fn every_time_comes_back_exactly(
            parts in prop::collection::vec(
                (prop::collection::vec(prop_oneof![0..2_000_u64, Just(u64::MAX), 0..u64::MAX], 0..700), 0..1200_usize),
                1..4,
            )
        ) {
            let (mut times, mut model) = (NodeTimes::default(), Vec::new());
            for (added, kept) in parts {
                for time_ns in added {
                    times.push(time_ns);
                    model.push(time_ns);
                }
                times.truncate(kept);
                model.truncate(kept);
                for (place, &time_ns) in model.iter().enumerate() {
                    prop_assert_eq!(times.get(place), Some(time_ns));
                }
                prop_assert_eq!(times.get(model.len()), None);
            }
        }
    }
}
