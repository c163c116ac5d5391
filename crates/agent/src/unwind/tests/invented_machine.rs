//! Registers and memory with invented contents, the same for both sides of a comparison.

use crate::arch::columns::COLUMNS;

/// Registers by DWARF number, the return address last; every address has a word.
pub(super) struct Machine {
    pub(super) registers: [u64; COLUMNS],
}

impl Machine {
    /// Makes registers with plausible stack addresses: far from each other, aligned, with 47 bits.
    pub(super) fn new(seed: u64) -> Self {
        let mut registers = [0; COLUMNS];
        for (number, register) in registers.iter_mut().enumerate() {
            *register = mix(seed ^ (number as u64) << 32) & 0x7fff_ffff_fff8;
        }
        Self { registers }
    }

    /// Returns the word at an address.
    pub(super) fn read(address: u64) -> u64 {
        mix(address) | 1
    }
}

/// Finalizer of splitmix64.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
