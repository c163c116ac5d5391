//! Reader of snapshots: the table is in memory, the blocks are read chunk by chunk.

use std::collections::HashMap;

use crate::chunk::{CHUNK_HEADER_BYTES, ChunkInfo, ChunkKind};
use crate::error::{Damage, Error, Malformed, Result};
use crate::snapshot::{SNAPSHOT_STREAMS, part_of, take_snapshot_blocks};
use crate::{Block, BlockEstimate, Estimate, ProcessIndex, Snapshot, SnapshotProcess, Trace};

impl Trace {
    /// The snapshot of this number.
    #[must_use]
    pub fn snapshot(&self, number: u32) -> Option<&Snapshot> {
        self.snapshots().iter().find(|snapshot| snapshot.number == number)
    }

    /// All blocks of a snapshot, with the variances of [`Self::snapshot_estimates`].
    #[must_use]
    pub fn snapshot_estimate(&self, snapshot: &Snapshot) -> BlockEstimate {
        let mut sum = BlockEstimate::default();
        self.snapshot_estimates(snapshot).into_iter().for_each(|of_one| sum += of_one);
        BlockEstimate {
            bytes: Estimate::new(snapshot.block_bytes, sum.bytes.variance),
            count: Estimate::new(snapshot.block_count, sum.count.variance),
        }
    }

    /// Blocks of a snapshot's processes, in their order. In a recording of samples the snapshot's
    /// blocks are read for the variances; these are 0 if the blocks cannot be read.
    #[must_use]
    pub fn snapshot_estimates(&self, snapshot: &Snapshot) -> Vec<BlockEstimate> {
        let counted = |process: &SnapshotProcess| BlockEstimate {
            bytes: Estimate::new(process.block_bytes, 0),
            count: Estimate::new(process.block_count, 0),
        };
        let mut estimates: Vec<BlockEstimate> = snapshot.processes.iter().map(counted).collect();
        if self.sampling().is_exact() {
            return estimates;
        }
        let mut read = vec![BlockEstimate::default(); estimates.len()];
        let mut places: HashMap<ProcessIndex, usize> = HashMap::new();
        for (place, process) in snapshot.processes.iter().enumerate() {
            places.entry(process.process).or_insert(place);
        }
        let outcome = self.for_each_snapshot_block(snapshot, |block| {
            if let Some(&place) = places.get(&block.process) {
                read[place] += BlockEstimate::of_weight(self.sampling().weight(block));
            }
        });
        // The file's own totals are used, even if blocks could not be read.
        if outcome.is_ok() {
            for (estimate, read) in estimates.iter_mut().zip(read) {
                estimate.bytes.variance = read.bytes.variance;
                estimate.count.variance = read.count.variance;
            }
        }
        estimates
    }

    /// Passes all blocks of a snapshot to `visit`, in the order of the file, with memory for one
    /// chunk. Returns the damage: parts that are damaged or missing.
    ///
    /// # Errors
    /// Reading the file fails.
    pub fn for_each_snapshot_block(
        &self,
        snapshot: &Snapshot,
        mut visit: impl FnMut(&Block),
    ) -> Result<Vec<Damage>> {
        let counts = (self.stacks().len(), self.processes().len());
        let mut damage = Vec::new();
        let (mut part_count, mut end) = (0_u32, 0);
        let chunks = self.of_kind(ChunkKind::SnapshotBlocks);
        for info in chunks.filter(|chunk| chunk.first_ns == snapshot.time_ns) {
            match self.snapshot_part(info, snapshot.number, counts, &mut visit) {
                Ok(is_of_it) => part_count += u32::from(is_of_it),
                Err(Error::Damaged { what, .. }) => {
                    let bytes = CHUNK_HEADER_BYTES as u64 + u64::from(info.stored_bytes);
                    damage.push(Damage { offset: info.offset, bytes, what });
                }
                Err(error) => return Err(error),
            }
            end = info.offset;
        }
        if part_count < snapshot.part_count && damage.is_empty() {
            damage.push(Damage { offset: end, bytes: 0, what: "parts of the snapshot are missing" });
        }
        Ok(damage)
    }

    /// Passes the blocks of a chunk to `visit` if they belong to this snapshot. Another one may
    /// have the same moment.
    fn snapshot_part(
        &self,
        info: &ChunkInfo,
        number: u32,
        counts: (usize, usize),
        visit: impl FnMut(&Block),
    ) -> Result<bool> {
        let damaged = |Malformed(what)| Error::Damaged { offset: info.offset, what };
        let streams = self.streams::<SNAPSHOT_STREAMS>(info)?;
        let (of, _) = part_of(&streams).map_err(damaged)?;
        if of != number {
            return Ok(false);
        }
        take_snapshot_blocks(&streams, info.item_count as usize, counts, visit).map_err(damaged)?;
        Ok(true)
    }
}
