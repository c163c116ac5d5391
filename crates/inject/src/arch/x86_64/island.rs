//! Trampoline area near a module (`Island`): for each hooked function the target of its first
//! bytes' jump, and its moved instructions.
//!
//! ```text
//! 0   magic                          8   address of the injection record
//! 16  wait:                          all calls that may not enter yet
//!     save registers
//!     while gate == CLOSED           at most half a second: the process to open it is then gone
//!         futex(gate, WAIT, CLOSED, 10 ms)
//!     restore registers
//!     compare gate with OPEN; ret
//!     ------------------------------ for each function:
//!     (by the convention: if the caller lies in the allocator itself, or (one function of the
//!     allocator has jumped to another) in the agent, the call is not the program's: to `moved`)
//!     jmp [target]
//!     target: address of `gate`; after the opening that of the agent's trampoline, or of `kept`
//! gate:
//!     save rax, flags; call wait; restore rax, flags
//!     gate == OPEN ? jmp [target] : to `moved`
//! (if calls are sampled: see `countdown`)
//!     jmp moved
//! out:
//!     jmp [target]
//!     first bytes of the following code; a jump to the beginning
//! counting:                          the entry; its first bytes hold the jump while the gate is
//!                                    not open, or all calls are recorded
//! moved:
//!     moved instructions, jump to the rest
//! kept:                              (if callers may deviate from the convention)
//!     push rbp; mov rbp, rsp; push the agent's handle of the function; jmp to the agent
//! ```
//!
//! **The convention**: a caller through the loader has no values in rax, r11 and the flags. A
//! caller in the same module may have: see [`Way`].
//!
//! The gate is needed because a thread that allocates all the time is in the allocator at most
//! moments. With the gate closed, no thread enters, so that the heap is at rest as soon as those
//! inside have left.

use heapr_proc::page_bytes;
use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, CodeLabel, ptr, qword_ptr, r11, rax, rbp, rsp};

use super::assembly::assembled;
use super::opening::{WAIT_BYTES_MAX, waiting_code};
use super::way::{COUNTING_BYTES, Counting, Way};
use super::{
    GATE_OFFSET, ISLAND_MAGIC, Island, JUMP_BYTES, JumpBytes, Landing, OPENING_BYTES, Prologue, jump,
};

/// Largest size in bytes of one function's code. Each of two tests has 31; jump, gate and the
/// registers saved by the tests have 50. At most 5 moved instructions have 15 each, lengthened. The
/// entry that saves all registers has 32, counting 100.
const FUNCTION_BYTES_MAX: usize = 384;

/// Distance in bytes from a function's `target` to the address at which waiting threads continue.
pub(crate) const WAITED_OFFSET: u64 = GATE_OFFSET + 7;

impl Island {
    /// Size in bytes of an area for a number of functions, in whole pages.
    pub(crate) fn bytes_for(function_count: usize) -> u64 {
        ((OPENING_BYTES + WAIT_BYTES_MAX + function_count * FUNCTION_BYTES_MAX) as u64)
            .next_multiple_of(page_bytes())
    }

    /// Creates an area without functions. `gate_avma` is the address of a writable word.
    ///
    /// # Errors
    /// Returns a reason if the assembler refuses the code.
    pub(crate) fn new(start_avma: u64, record_avma: u64, gate_avma: u64) -> Result<Self, &'static str> {
        let mut bytes = ISLAND_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&record_avma.to_le_bytes());
        bytes.extend(waiting_code(gate_avma)?);
        debug_assert!(bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX);
        Ok(Self { start_avma, bytes })
    }

    fn here(&self) -> u64 {
        self.start_avma + self.bytes.len() as u64
    }

    /// Adds a function.
    pub(crate) fn add(&mut self, prologue: &Prologue, way: &Way) -> Result<Landing, &'static str> {
        while !self.bytes.len().is_multiple_of(16) {
            self.bytes.push(0xcc);
        }
        let beginning_avma = self.here();
        let counting = way.counting();
        let wait_avma = self.start_avma + OPENING_BYTES as u64;
        let ranges = RangeChecks::of(way)?;
        let (code, [target_avma, counting_avma]) =
            assembled(beginning_avma, |a| write(a, &ranges, counting.as_ref(), wait_avma))?;
        self.bytes.extend(code);
        self.put(target_avma, &(target_avma + GATE_OFFSET).to_le_bytes());
        let entry_avma = if counting.is_some() { counting_avma } else { beginning_avma };
        if counting.is_some() {
            let closed = jump(entry_avma, beginning_avma).ok_or("the island is too large")?;
            let open: JumpBytes = self.at(entry_avma)?;
            self.put(entry_avma - COUNTING_BYTES as u64, &open);
            self.put(entry_avma - COUNTING_BYTES as u64 / 2, &closed);
            self.put(entry_avma, &closed);
        }
        let moved_avma = self.here();
        let moved = prologue.moved(moved_avma)?;
        self.bytes.extend(moved);
        let trampoline_avma = match *way {
            Way::Convention { trampoline_avma, .. } => trampoline_avma,
            Way::Kept { entry_avma, function_avma, .. } => {
                let kept_avma = self.here();
                let (code, []) = assembled(kept_avma, |a| write_kept(a, entry_avma, function_avma))?;
                self.bytes.extend(code);
                kept_avma
            }
        };
        let counts = counting.is_some();
        let marks_avma = counting.and_then(|counting| Some(entry_avma + counting.marks_offset()?));
        Ok(Landing { entry_avma, moved_avma, target_avma, trampoline_avma, counts, marks_avma })
    }

    /// Changes bytes at an address in the area.
    fn put(&mut self, avma: u64, bytes: &[u8]) {
        let at = (avma - self.start_avma) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Bytes of a jump's size at an address in the area.
    fn at(&self, avma: u64) -> Result<JumpBytes, &'static str> {
        let at = (avma - self.start_avma) as usize;
        let bytes = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or("its counting is shorter than a jump")
    }

    /// Turns counting on from the beginning for a function.
    pub(crate) fn count(&mut self, landing: Landing) {
        if landing.counts {
            let at = (landing.entry_avma - self.start_avma) as usize;
            let open = at - COUNTING_BYTES;
            self.bytes.copy_within(open..open + JUMP_BYTES, at);
        }
    }

    /// Jump for the function's first bytes.
    pub(crate) fn jump_from(prologue: &Prologue, landing: Landing) -> Result<JumpBytes, &'static str> {
        jump(prologue.entry_avma, landing.entry_avma).ok_or("the island is too far away")
    }
}

/// Comparisons of a caller with the allocator's code.
struct RangeChecks<'a> {
    /// Start and size in bytes of each range.
    ranges: &'a [(u64, u64)],
    keeps_inner: bool,
}

impl<'a> RangeChecks<'a> {
    fn of(way: &'a Way) -> Result<Self, &'static str> {
        let Way::Convention { ranges, keeps_inner, .. } = way else {
            return Ok(Self { ranges: &[], keeps_inner: false });
        };
        let is_small = |&(_, bytes): &(u64, u64)| bytes < 1 << 31;
        let ranges = Some(&ranges[..]).filter(|ranges| ranges.iter().all(is_small));
        Ok(Self { ranges: ranges.ok_or("the allocator's code is too large")?, keeps_inner: *keeps_inner })
    }

    /// Writes the comparisons; calls from the ranges go to `inner`.
    fn write(&self, a: &mut CodeAssembler, inner: CodeLabel) -> Result<(), IcedError> {
        if self.keeps_inner {
            a.push(rax)?;
            a.push(r11)?;
            a.pushfq()?;
        }
        for &(start_avma, bytes) in self.ranges {
            // The return address lies above the saved words.
            a.mov(rax, qword_ptr(rsp + if self.keeps_inner { 24 } else { 0 }))?;
            a.mov(r11, start_avma)?;
            a.sub(rax, r11)?;
            a.cmp(rax, bytes as i32)?;
            a.jb(inner)?;
        }
        if self.keeps_inner {
            a.lea(rsp, ptr(rsp + 24))?;
        }
        Ok(())
    }
}

/// Writes a function's code up to its moved instructions, which follow. Returns the labels of the
/// target's word and of the counting code, or the first one twice.
fn write(
    a: &mut CodeAssembler,
    ranges: &RangeChecks<'_>,
    counting: Option<&Counting<'_>>,
    wait_avma: u64,
) -> Result<[CodeLabel; 2], IcedError> {
    let (mut inner, mut moved) = (a.create_label(), a.create_label());
    ranges.write(a, if ranges.keeps_inner { inner } else { moved })?;
    let target = write_gate(a, wait_avma)?;
    if ranges.keeps_inner || counting.is_some() {
        a.jmp(moved)?;
    }
    let counting = counting.map(|counting| counting.write(a, target)).transpose()?;
    if ranges.keeps_inner {
        a.set_label(&mut inner)?;
        a.popfq()?;
        a.pop(r11)?;
        a.pop(rax)?;
    }
    a.set_label(&mut moved)?;
    a.zero_bytes()?;
    Ok([target, counting.unwrap_or(target)])
}

/// Writes the jump through the target's word, and the wait at the closed gate; calls that go around
/// continue behind it. Returns the label of the word.
fn write_gate(a: &mut CodeAssembler, wait_avma: u64) -> Result<CodeLabel, IcedError> {
    let (mut target, mut around) = (a.create_label(), a.create_label());
    a.jmp(qword_ptr(target))?;
    a.set_label(&mut target)?;
    a.dq(&[0])?;
    a.pushfq()?;
    a.push(rax)?;
    a.call(wait_avma)?;
    a.jne(around)?;
    a.pop(rax)?;
    a.popfq()?;
    a.jmp(qword_ptr(target))?;
    a.set_label(&mut around)?;
    a.pop(rax)?;
    a.popfq()?;
    Ok(target)
}

/// Writes the path to the agent on which all registers are kept.
fn write_kept(
    a: &mut CodeAssembler,
    entry_avma: u64,
    function_avma: u64,
) -> Result<[CodeLabel; 0], IcedError> {
    let (mut function, mut entry) = (a.create_label(), a.create_label());
    a.push(rbp)?;
    a.mov(rbp, rsp)?;
    a.push(qword_ptr(function))?;
    a.jmp(qword_ptr(entry))?;
    a.set_label(&mut function)?;
    a.dq(&[function_avma])?;
    a.set_label(&mut entry)?;
    a.dq(&[entry_avma])?;
    Ok([])
}

#[cfg(test)]
mod tests;
