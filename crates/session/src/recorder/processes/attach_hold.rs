//! Processes that are being attached to: their agents have registered, but their earlier blocks are
//! not in the file yet.
//!
//! Until these are added, the processes are not recorded, and no event later than their
//! registration is merged. So the file stays in order of time. This lasts as long as the target's
//! stop, or until the attach is given up.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use heapr_wire::{NO_SLOT, ORIGIN_ATTACH, ORIGIN_FORK, ProcessSlot};

use crate::recorder::Recorder;

/// Longest time from registration to the end of an attach.
const LIMIT: Duration = Duration::from_secs(8);

/// Processes held back during their attach.
#[derive(Debug, Default)]
pub(crate) struct HeldProcesses {
    /// (slot, generation) -> instant of the first sight, and ticks of the registration.
    held: HashMap<(u32, u32), (Instant, u64)>,
    /// Processes whose attach was given up or has timed out.
    given_up: Vec<(u32, u32)>,
}

impl HeldProcesses {
    /// Whether a registered process must be held back. `is_entered`: the attach is complete.
    pub(crate) fn holds(&mut self, key: (u32, u32), slot: &ProcessSlot, is_entered: bool) -> bool {
        let origin = slot.origin.load(Relaxed);
        let parent = slot.parent_slot.load(Relaxed);
        let is_child = origin == ORIGIN_FORK && parent != NO_SLOT;
        if is_child && self.held.keys().any(|&(held, _)| held == parent) {
            return true;
        }
        if origin != ORIGIN_ATTACH || is_entered || self.given_up.contains(&key) {
            self.held.remove(&key);
            return false;
        }
        let (since, _) =
            *self.held.entry(key).or_insert_with(|| (Instant::now(), slot.start_ticks.load(Relaxed)));
        if since.elapsed() < LIMIT {
            return true;
        }
        self.held.remove(&key);
        self.given_up.push(key);
        false
    }

    /// Time after which no event may be merged.
    pub(crate) fn until_ticks(&self) -> u64 {
        self.held.values().map(|&(_, ticks)| ticks).min().unwrap_or(u64::MAX)
    }
}

impl Recorder {
    /// Releases processes whose attach was given up: they are recorded as usual, but write no
    /// events.
    pub(crate) fn hold_no_more(&mut self) {
        // Processes that have registered since the last search are included.
        self.find_processes();
        let given_up: Vec<(u32, u32)> = self.held.held.drain().map(|(key, _)| key).collect();
        self.held.given_up.extend(given_up);
    }
}
