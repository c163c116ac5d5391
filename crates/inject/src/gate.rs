//! Gate in the path of all hooks of an attach until it is open, and again when they are removed;
//! see [`crate::arch::Island`].

use crate::allocator_code::is_in;
use crate::arch::{
    COUNTING_BYTES, GATE_AROUND, GATE_CLOSED, GATE_OFFSET, GATE_OPEN, JUMP_BYTES, WAITED_OFFSET, counting_at,
    waiting_range,
};
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::record::Record;

/// The hooks' gate in a target.
#[derive(Debug)]
pub(crate) struct Gate {
    gate_avma: u64,
    /// Addresses of the words in the trampoline areas that lead to the agent or the gate.
    targets: Vec<u64>,
    /// Addresses of the jumps that switch counting of calls on or off.
    counting: Vec<u64>,
    /// Start and end of each trampoline area.
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

    /// Addresses at which threads that wait at the gate continue; such a thread has one on its
    /// stack, and leaves it there.
    pub(crate) fn waited_avmas(&self) -> Vec<u64> {
        self.targets.iter().map(|target_avma| target_avma.wrapping_add(WAITED_OFFSET)).collect()
    }

    fn set(&self, memory: &ProcessMemory, value: u32) -> Result<(), Unreachable> {
        memory.write(self.gate_avma, &value.to_le_bytes())
    }

    /// Makes calls that reach the gate wait.
    pub(crate) fn close(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_CLOSED)
    }

    /// Makes calls that reach the gate continue in the functions themselves, unrecorded.
    pub(crate) fn lead_around(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_AROUND)
    }

    /// Opens the gate: all calls are recorded, or counted if they are sampled, including waiting
    /// ones. `trampolines` is in the order of the patches. All threads must be stopped.
    pub(crate) fn open(&self, memory: &ProcessMemory, trampolines: &[u64]) -> Result<(), Unreachable> {
        for (&target_avma, trampoline_avma) in self.targets.iter().zip(trampolines) {
            memory.write(target_avma, &trampoline_avma.to_le_bytes())?;
        }
        self.set(memory, GATE_OPEN)?;
        self.count_down(memory, true)
    }

    /// Turns counting on, so that most calls go no further, or off, so that each call reaches the
    /// agent. All threads must be stopped.
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

    /// True if any calls can be counted.
    pub(crate) fn counts(&self) -> bool {
        !self.counting.is_empty()
    }

    /// Leads all calls to the gate and closes it. All threads must be stopped.
    pub(crate) fn shut(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.count_down(memory, false)?;
        self.close(memory)?;
        for &target_avma in &self.targets {
            memory.write(target_avma, &target_avma.wrapping_add(GATE_OFFSET).to_le_bytes())?;
        }
        Ok(())
    }

    /// True if code at an address is about to run, or may be running, one of the functions. False
    /// for the code that waits at the gate.
    pub(crate) fn may_be_inside(&self, address_avma: u64) -> bool {
        is_in(&self.islands, address_avma)
            && !self.islands.iter().any(|&(start, _)| waiting_range(start).contains(&address_avma))
    }
}
