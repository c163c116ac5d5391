//! The gate that all hooks of an attach lead through until it is open, and again when they are to
//! go; see the island.

use crate::allocator_code::is_in;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::record::Record;
use crate::x86_64::{
    COUNTING_BYTES, GATE_AROUND, GATE_CLOSED, GATE_OFFSET, GATE_OPEN, WAITED_OFFSET, counting_at,
    waiting_range,
};

const JUMP_BYTES: usize = 5;

/// The hooks' gate in a target.
#[derive(Debug)]
pub(crate) struct Gate {
    gate_avma: u64,
    /// The words in the islands that lead to the agent or the gate.
    targets: Vec<u64>,
    /// Where calls are counted before they come to any of it.
    counting: Vec<u64>,
    /// Start and end of each island.
    islands: Vec<(u64, u64)>,
}

impl Gate {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            gate_avma: record.gate_avma(),
            targets: record.patches.iter().map(|patch| patch.target_avma).collect(),
            counting: record
                .patches
                .iter()
                .filter(|patch| patch.counts)
                .map(|patch| counting_at(patch.address_avma, patch.new))
                .collect(),
            islands: record
                .islands
                .iter()
                .map(|&(start, bytes)| (start, start.wrapping_add(bytes)))
                .collect(),
        }
    }

    /// Where those who wait at the gate go on: they have it on their stacks, and leave it there.
    pub(crate) fn waited_avmas(&self) -> Vec<u64> {
        self.targets.iter().map(|target_avma| target_avma.wrapping_add(WAITED_OFFSET)).collect()
    }

    fn set(&self, memory: &ProcessMemory, value: u32) -> Result<(), Unreachable> {
        memory.write(self.gate_avma, &value.to_le_bytes())
    }

    /// From now on calls that come to the gate wait.
    pub(crate) fn close(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_CLOSED)
    }

    /// From now on calls that come to the gate go to the functions themselves, unseen.
    pub(crate) fn lead_around(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_AROUND)
    }

    /// From now on all calls are recorded, or counted where they are sampled, also those that wait;
    /// `trampolines` in the order of the patches. All threads stand still.
    pub(crate) fn open(&self, memory: &ProcessMemory, trampolines: &[u64]) -> Result<(), Unreachable> {
        for (&target_avma, trampoline_avma) in self.targets.iter().zip(trampolines) {
            memory.write(target_avma, &trampoline_avma.to_le_bytes())?;
        }
        self.set(memory, GATE_OPEN)?;
        self.count_down(memory, true)
    }

    /// From now on calls are counted, and most go no further; or each comes to the agent. All
    /// threads stand still.
    pub(crate) fn count_down(&self, memory: &ProcessMemory, is_on: bool) -> Result<(), Unreachable> {
        for &avma in &self.counting {
            let at = avma.wrapping_sub(COUNTING_BYTES as u64);
            let mut choice = [0; COUNTING_BYTES];
            memory.read(at, &mut choice)?;
            let (open, closed) = choice.split_at(COUNTING_BYTES / 2);
            memory.write(avma, &if is_on { open } else { closed }[..JUMP_BYTES])?;
        }
        Ok(())
    }

    /// Whether any calls are counted.
    pub(crate) fn counts(&self) -> bool {
        !self.counting.is_empty()
    }

    /// From now on all calls come to the gate, which is closed. All threads stand still.
    pub(crate) fn shut(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.count_down(memory, false)?;
        self.close(memory)?;
        for &target_avma in &self.targets {
            memory.write(target_avma, &target_avma.wrapping_add(GATE_OFFSET).to_le_bytes())?;
        }
        Ok(())
    }

    /// Whether code at an address is about to run one of the functions, or may be. Who waits is
    /// not.
    pub(crate) fn may_be_inside(&self, address_avma: u64) -> bool {
        is_in(&self.islands, address_avma)
            && !self.islands.iter().any(|&(start, _)| waiting_range(start).contains(&address_avma))
    }
}
