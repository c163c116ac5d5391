//! Trampoline area near a module (`Island`): for each hooked function the target of its first
//! instruction's branch, and that instruction.
//!
//! ```text
//! 0   magic                          8   address of the injection record
//! 16  wait:                          all calls that may not enter yet; see `opening`
//!     ------------------------------ for each function:
//!     (if it signs its return address: take the signature away)
//!     (by the convention: if the caller lies in the allocator itself, or (one function of the
//!     allocator has branched to another) in the agent, the call is not the program's: to `moved`)
//!     x16 = [target]; br x16
//!     target: address of `gate`; after the opening that of the agent's trampoline, or of `kept`
//! gate:
//!     save x30; bl wait; restore x30
//!     gate == OPEN ? x16 = [target]; br x16 : to `moved`
//! moved:
//!     the replaced instruction, branch to the rest
//! kept:                              (if callers may deviate from the convention)
//!     push the agent's handle of the function and x30; to the agent
//! ```
//!
//! x16 and x17 are free at each function's entry, as veneers of the linker use them. The flags are
//! kept for callers that deviate from the convention.

use heapr_proc::page_bytes;

use super::assembly::{
    Assembler, B_LO, BL, LINK, NOP, SP, br, cbnz_w, cmp, ldp_after, read_flags, stp_before, write_flags,
};
use super::opening::{GATE_VALUE, waiting_code};
use super::prologue::Prologue;
use super::{ISLAND_MAGIC, Island, JumpBytes, Landing, OPENING_BYTES, Way};

/// Distance in bytes from a function's `target` to the address at which waiting threads continue:
/// behind `gate`'s two instructions.
pub(crate) const WAITED_OFFSET: u64 = super::GATE_OFFSET + 8;

/// Largest size in bytes of the waiting code.
const WAIT_BYTES_MAX: usize = 128;
/// Largest size in bytes of one function's code. Each of two tests has 24 and its numbers 16; flags
/// and signature have 16; jump and gate 44; the moved instruction 36; `kept` 32.
const FUNCTION_BYTES_MAX: usize = 256;

/// Registers that are free at a function's entry.
const FIRST: u32 = 16;
const SECOND: u32 = 17;

impl Island {
    /// Size in bytes of an area for a number of functions, in whole pages.
    pub(crate) fn bytes_for(function_count: usize) -> u64 {
        ((OPENING_BYTES + WAIT_BYTES_MAX + function_count * FUNCTION_BYTES_MAX) as u64)
            .next_multiple_of(page_bytes())
    }

    /// Creates an area without functions. `gate_avma` is the address of a writable word.
    ///
    /// # Errors
    /// Returns a reason if the code cannot be assembled.
    pub(crate) fn new(start_avma: u64, record_avma: u64, gate_avma: u64) -> Result<Self, &'static str> {
        let mut bytes = ISLAND_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&record_avma.to_le_bytes());
        bytes.extend(waiting_code(gate_avma)?);
        debug_assert!(bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX);
        Ok(Self { start_avma, bytes })
    }

    /// Adds a function.
    pub(crate) fn add(&mut self, prologue: &Prologue, way: &Way) -> Result<Landing, &'static str> {
        while !self.bytes.len().is_multiple_of(16) {
            self.bytes.extend(NOP.to_le_bytes());
        }
        let entry_avma = self.start_avma + self.bytes.len() as u64;
        let wait_avma = self.start_avma + OPENING_BYTES as u64;
        let (code, target_offset) = function_code(prologue, way, wait_avma.wrapping_sub(entry_avma))?;
        let target_avma = entry_avma + target_offset;
        self.bytes.extend(code);
        let target = self.bytes.len();
        let at = (target_avma - self.start_avma) as usize;
        self.bytes[at..at + 8].copy_from_slice(&(target_avma + super::GATE_OFFSET).to_le_bytes());
        let moved_avma = self.start_avma + target as u64;
        self.bytes.extend(prologue.moved(moved_avma)?);
        let trampoline_avma = match *way {
            Way::Convention { trampoline_avma, .. } => trampoline_avma,
            Way::Kept { entry_avma, function_avma, .. } => {
                while !self.bytes.len().is_multiple_of(8) {
                    self.bytes.extend(NOP.to_le_bytes());
                }
                let kept_avma = self.start_avma + self.bytes.len() as u64;
                self.bytes.extend(kept_code(entry_avma, function_avma)?);
                kept_avma
            }
        };
        Ok(Landing { entry_avma, moved_avma, target_avma, trampoline_avma, counts: false, marks_avma: None })
    }

    /// Turns counting on from the beginning for a function: no calls are counted here.
    pub(crate) fn count(&mut self, _landing: Landing) {}

    /// Jump for the function's first bytes.
    pub(crate) fn jump_from(prologue: &Prologue, landing: Landing) -> Result<JumpBytes, &'static str> {
        super::assembly::branch_between(prologue.entry_avma, landing.entry_avma).map(u32::to_le_bytes)
    }
}

/// Code of a function up to its moved instruction, which follows, aligned to 8. `wait` is the
/// distance from its begin to the waiting code. Returns the offset of the target's word, too.
fn function_code(prologue: &Prologue, way: &Way, wait: u64) -> Result<(Vec<u8>, u64), &'static str> {
    let (ranges, keeps) = match way {
        Way::Convention { ranges, keeps_inner, .. } => (&ranges[..], *keeps_inner),
        Way::Kept { .. } => (&[][..], false),
    };
    let mut a = Assembler::default();
    let (target, moved, inner) = (a.label(), a.label(), a.label());
    let mut numbers = Vec::new();
    if let Some(strips) = prologue.strips() {
        a.put(strips);
    }
    if keeps {
        a.put(read_flags(SECOND));
    }
    for &(start_avma, bytes) in ranges {
        let (start, end, next) = (a.label(), a.label(), a.label());
        numbers.extend([(start, start_avma), (end, start_avma.saturating_add(bytes))]);
        a.load(FIRST, start);
        a.put(cmp(LINK, FIRST));
        a.branch_if(B_LO, next);
        a.load(FIRST, end);
        a.put(cmp(LINK, FIRST));
        a.branch_if(B_LO, inner);
        a.set(next);
    }
    if keeps {
        a.put(write_flags(SECOND));
    }
    a.load(FIRST, target);
    a.put(br(FIRST));
    a.quad(target, 0);
    // gate: [`WAITED_OFFSET`] is behind the second instruction.
    a.put(stp_before([LINK, SECOND], SP, -16));
    let at = a.here();
    let at = a.offset(at).unwrap_or_default();
    a.put(BL | super::assembly::distance_bits(wait.wrapping_sub(at).cast_signed(), 26)?);
    a.put(ldp_after([LINK, SECOND], SP, 16));
    a.branch_if(cbnz_w(GATE_VALUE), moved);
    a.load(FIRST, target);
    a.put(br(FIRST));
    for (label, number) in numbers {
        a.quad(label, number);
    }
    a.set(inner);
    if keeps {
        a.put(write_flags(SECOND));
    }
    a.set(moved);
    let target = a.offset(target).unwrap_or_default();
    let mut code = a.finish()?;
    while !code.len().is_multiple_of(8) {
        code.extend(NOP.to_le_bytes());
    }
    Ok((code, target))
}

/// Code of the path to the agent on which all registers are kept.
fn kept_code(entry_avma: u64, function_avma: u64) -> Result<Vec<u8>, &'static str> {
    let mut a = Assembler::default();
    let (function, entry) = (a.label(), a.label());
    a.load(FIRST, function);
    a.put(stp_before([FIRST, LINK], SP, -16));
    a.load(FIRST, entry);
    a.put(br(FIRST));
    a.quad(function, function_avma);
    a.quad(entry, entry_avma);
    a.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(island: &Island, avma: u64) -> u64 {
        let at = (avma - island.start_avma) as usize;
        u64::from_le_bytes(island.bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn an_area_has_its_parts_where_the_landing_says() {
        let mut island = Island::new(0x40_0000, 0x1234, 0x5678).unwrap();
        // stp x29, x30, [sp, -48]!; with a signature in front of it
        let plain = Prologue::plan(0x50_0000, &0xa9bd_7bfd_u32.to_le_bytes(), &[]).unwrap();
        let signed = [0xd503_233f_u32, 0xa9bd_7bfd].map(u32::to_le_bytes).concat();
        let signed = Prologue::plan(0x50_0100, &signed, &[]).unwrap();
        let ranges = vec![(0x10_0000, 0x1000), (0x60_0000, 0x2000)];
        for prologue in [&plain, &signed] {
            for way in [
                Way::Convention {
                    trampoline_avma: 0x70_0000,
                    ranges: ranges.clone(),
                    keeps_inner: true,
                    counted: None,
                },
                Way::Convention {
                    trampoline_avma: 0x70_0000,
                    ranges: ranges.clone(),
                    keeps_inner: false,
                    counted: None,
                },
                Way::Kept { entry_avma: 0x70_0000, function_avma: 0x70_1000, counted: None },
            ] {
                let before = island.bytes.len();
                let landing = island.add(prologue, &way).unwrap();
                assert!(island.bytes.len() - before <= FUNCTION_BYTES_MAX);
                assert!(landing.target_avma.is_multiple_of(8) && landing.moved_avma.is_multiple_of(8));
                assert_eq!(
                    word(&island, landing.target_avma),
                    landing.target_avma + super::super::GATE_OFFSET
                );
                // `bl wait` before the address at which waiting threads continue.
                let call_avma = landing.target_avma + WAITED_OFFSET - 4;
                let call = word(&island, call_avma) as u32 & !(1 << 31);
                let wait = super::super::prologue::target_of(call_avma, call);
                assert_eq!(wait, Some(0x40_0000 + OPENING_BYTES as u64));
                let jump = Island::jump_from(prologue, landing).unwrap();
                let target = super::super::counting_at(prologue.entry_avma, jump);
                assert_eq!(target, landing.entry_avma);
            }
        }
        assert!(island.bytes.len() as u64 <= Island::bytes_for(6));
        let opening = island.bytes[..OPENING_BYTES].try_into().unwrap();
        assert_eq!(super::super::record_of(opening), Some(0x1234));
    }
}
