//! Bytes that are still live, by the time of a timeline at which they were allocated.

use crate::devtools::Heap;

/// Objects allocated since the previous sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSample {
    /// Time of the sample, in microseconds.
    pub timestamp_us: u64,
    /// Largest object id in use at that time.
    pub last_assigned_id: u64,
    /// Bytes of the objects allocated since the previous sample that are still live.
    pub live_bytes: u64,
}

impl Heap {
    /// Returns one entry per sample of a timeline; empty for other snapshots.
    pub fn live_bytes_of_samples(&self) -> Vec<LiveSample> {
        let snapshot = self.snapshot();
        let samples = snapshot.trace().map_or(&[][..], |trace| &trace.samples);
        let mut live: Vec<LiveSample> = samples
            .iter()
            .map(|sample| LiveSample {
                timestamp_us: sample.timestamp_us,
                last_assigned_id: sample.last_assigned_id,
                live_bytes: 0,
            })
            .collect();
        for node in 0..snapshot.node_count() {
            let id = snapshot.id(node);
            // Native objects have even ids, which say nothing about their age.
            if id % 2 == 1 {
                let at = samples.partition_point(|sample| sample.last_assigned_id < id);
                if let Some(sample) = live.get_mut(at) {
                    sample.live_bytes = sample.live_bytes.saturating_add(snapshot.self_bytes(node));
                }
            }
        }
        live
    }
}
