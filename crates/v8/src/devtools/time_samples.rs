//! What of each moment of a timeline is still there.

use crate::devtools::Heap;

/// The objects made since the sample before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSample {
    /// Microseconds.
    pub timestamp_us: u64,
    /// The largest id that had been given out.
    pub last_assigned_id: u64,
    /// Bytes of the objects made in between that are still there.
    pub live_bytes: u64,
}

impl Heap {
    /// One for each sample of a timeline; none of other snapshots.
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
