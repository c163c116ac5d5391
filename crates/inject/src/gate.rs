//! The gate that all hooks of an attach lead through until it is open; see the island.

use crate::memory::{ProcessMemory, Unreachable};
use crate::quiet::is_in;
use crate::x86_64::{GATE_AROUND, GATE_CLOSED, GATE_OPEN, Landing, waiting_range};

/// The hooks' gate in a target.
#[derive(Debug)]
pub(crate) struct Gate {
    gate_avma: u64,
    landings: Vec<Landing>,
    /// Start and end of each island.
    islands: Vec<(u64, u64)>,
}

impl Gate {
    pub(crate) fn new(gate_avma: u64, landings: Vec<Landing>, islands: &[(u64, u64)]) -> Self {
        let islands = islands.iter().map(|&(start, bytes)| (start, start + bytes)).collect();
        Self { gate_avma, landings, islands }
    }

    fn set(&self, memory: &ProcessMemory, value: u32) -> Result<(), Unreachable> {
        memory.write(self.gate_avma, &value.to_le_bytes())
    }

    /// From now on calls wait.
    pub(crate) fn close(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_CLOSED)
    }

    /// From now on calls go to the functions themselves, unseen.
    pub(crate) fn lead_around(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        self.set(memory, GATE_AROUND)
    }

    /// From now on all calls are recorded, also those that wait. All threads stand still.
    pub(crate) fn open(&self, memory: &ProcessMemory) -> Result<(), Unreachable> {
        for landing in &self.landings {
            memory.write(landing.target_avma, &landing.trampoline_avma.to_le_bytes())?;
        }
        self.set(memory, GATE_OPEN)
    }

    /// Whether code at an address is about to run one of the functions, or may be. Who waits is not.
    pub(crate) fn may_be_inside(&self, address_avma: u64) -> bool {
        is_in(&self.islands, address_avma)
            && !self.islands.iter().any(|&(start, _)| waiting_range(start).contains(&address_avma))
    }
}
