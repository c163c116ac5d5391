//! Processes that are being attached to: their agents have registered, and what they had allocated
//! before is not entered yet.
//!
//! They are not looked at until it is, and nothing later than their registration is taken from
//! anybody: so that the file stays in order of time. That lasts as long as the target's stop, or
//! until the attach is given up.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use heapr_wire::{NO_SLOT, ORIGIN_ATTACH, ORIGIN_FORK, ProcessSlot};

use super::Recorder;

/// Longer than any attach takes from the registration on.
const LIMIT: Duration = Duration::from_secs(8);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct HeldProcesses {
    /// Slot and generation: since when, and the time of the registration.
    held: HashMap<(u32, u32), (Instant, u64)>,
    /// Those whose attach was given up, or never heard of again.
    given_up: Vec<(u32, u32)>,
}

impl HeldProcesses {
    /// Whether a process that has registered is to be looked at later. `is_entered`: its attach has
    /// been taken.
    pub(super) fn holds(&mut self, key: (u32, u32), slot: &ProcessSlot, is_entered: bool) -> bool {
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

    /// Nothing after this time is to be taken.
    pub(super) fn until_ticks(&self) -> u64 {
        self.held.values().map(|&(_, ticks)| ticks).min().unwrap_or(u64::MAX)
    }
}

impl Recorder {
    /// An attach was given up: what its agent has registered is a process like any other, which
    /// writes nothing.
    pub(crate) fn hold_no_more(&mut self) {
        // What registered since the last look is among them.
        self.find_processes();
        let given_up: Vec<(u32, u32)> = self.held.held.drain().map(|(key, _)| key).collect();
        self.held.given_up.extend(given_up);
    }
}
