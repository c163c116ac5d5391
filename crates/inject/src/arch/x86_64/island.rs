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

use std::sync::OnceLock;

use heapr_proc::page_bytes;

use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, CodeLabel, dword_ptr, eax, ebx, edx, esi, ptr, qword_ptr, r8, r9, r10, r11, rax, rbp, rbx,
    rcx, rdi, rdx, rsi, rsp,
};

use super::all_registers_countdown::AllRegistersCountdown;
use super::assembly::assembled;
use super::countdown::{Countdown, Counted, MARKS_OFFSET};
use super::{JUMP_BYTES, JumpBytes, Prologue, jump};

/// First word of a trampoline area.
const ISLAND_MAGIC: u64 = u64::from_le_bytes(*b"heaprisl");
/// Size in bytes of the opening before the first code.
pub(crate) const OPENING_BYTES: usize = 16;
/// Largest size in bytes of one function's code. Each of two tests has 31; jump, gate and the
/// registers saved by the tests have 50. At most 5 moved instructions have 15 each, lengthened. The
/// entry that saves all registers has 32, counting 100.
const FUNCTION_BYTES_MAX: usize = 384;
/// Largest size in bytes of the waiting code.
const WAIT_BYTES_MAX: usize = 144;

/// Value of the gate: calls go to the agent.
pub(crate) const GATE_OPEN: u32 = 0;
/// Value of the gate: calls wait.
pub(crate) const GATE_CLOSED: u32 = 1;
/// Value of the gate: calls go to the functions themselves.
pub(crate) const GATE_AROUND: u32 = 2;

/// Distance in bytes from a function's `target` to its `gate`.
pub(crate) const GATE_OFFSET: u64 = 8;
/// Distance in bytes from a function's `target` to the address at which waiting threads continue.
pub(crate) const WAITED_OFFSET: u64 = GATE_OFFSET + 7;

/// Size in bytes of the data before counting code: its first bytes, and those of the jump that
/// replaces them.
pub(crate) const COUNTING_BYTES: usize = 16;

impl Landing {
    /// Number of bytes of the marks' address that a jump covers: their copy lies before the code.
    pub(crate) fn covered_marks_bytes(&self) -> usize {
        let offset = self.marks_avma.map_or(0, |marks_avma| (marks_avma - self.entry_avma) as usize);
        JUMP_BYTES.saturating_sub(offset)
    }
}

/// Path of a function's calls to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Path by the calling convention, to a trampoline. Calls from `ranges` (start and size in
    /// bytes; at most two) continue in the function itself.
    Convention {
        trampoline_avma: u64,
        ranges: Vec<(u64, u64)>,
        /// Whether calls from `ranges` may have values in any register.
        keeps_inner: bool,
        /// Quantity that is counted first, if calls are sampled.
        counted: Option<(Counted, Countdown)>,
    },
    /// Path that preserves all registers and flags, and passes the address of the agent's handle of
    /// the function. A compiler that sees caller and function together lets the caller hold a value
    /// in any register that the function does not use.
    Kept {
        entry_avma: u64,
        function_avma: u64,
        /// Plan for counting first, if calls are sampled.
        counted: Option<AllRegistersCountdown>,
    },
}

/// Kind of the code that counts calls.
enum Counting<'a> {
    Convention(Counted, Countdown),
    Kept(&'a AllRegistersCountdown),
}

impl Way {
    fn counting(&self) -> Option<Counting<'_>> {
        match self {
            Self::Convention { counted, keeps_inner: false, .. } => {
                counted.map(|(counted, countdown)| Counting::Convention(counted, countdown))
            }
            Self::Convention { .. } => None,
            Self::Kept { counted, .. } => counted.as_ref().map(Counting::Kept),
        }
    }
}

impl Counting<'_> {
    /// Offset at which the address of the marks is written later.
    fn marks_offset(&self) -> Option<u64> {
        match self {
            Self::Convention(counted, _) => counted.looks_at_marks().then_some(MARKS_OFFSET),
            Self::Kept(counted) => counted.marks_offset(),
        }
    }

    /// Writes the way out of the counting, and the counting code. Returns the code's label.
    fn write(&self, a: &mut CodeAssembler, target: CodeLabel) -> Result<CodeLabel, IcedError> {
        let (mut early, mut out, mut counting) = (a.create_label(), a.create_label(), a.create_label());
        a.set_label(&mut early)?;
        match self {
            Self::Kept(counted) if counted.saves() => {
                counted.write_restoring(a)?;
                a.set_label(&mut out)?;
            }
            _ => out = early,
        }
        a.jmp(qword_ptr(target))?;
        a.db(&[0xcc; COUNTING_BYTES])?;
        a.set_label(&mut counting)?;
        match self {
            Self::Convention(counted, countdown) => counted.write(a, *countdown, out)?,
            Self::Kept(counted) => counted.write(a, early, out)?,
        }
        Ok(counting)
    }
}

/// A trampoline area under construction.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start_avma: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Locations of a function's code in a trampoline area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) entry_avma: u64,
    pub(crate) moved_avma: u64,
    /// Address of the word that gets the trampoline's address when the gate opens.
    pub(crate) target_avma: u64,
    pub(crate) trampoline_avma: u64,
    /// Whether calls are counted at its entry.
    pub(crate) counts: bool,
    /// Address at which the page marks' address is written later.
    pub(crate) marks_avma: Option<u64>,
}

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

/// Machine code at `wait`; see the module's documentation. It does not depend on its address, and
/// has one size.
fn waiting_code(gate_avma: u64) -> Result<Vec<u8>, &'static str> {
    let (code, []) = assembled(0, |a| write_waiting(a, gate_avma))?;
    Ok(code)
}

fn write_waiting(a: &mut CodeAssembler, gate_avma: u64) -> Result<[CodeLabel; 0], IcedError> {
    /// Largest number of waits, of 10 ms each.
    const WAITS_MAX: i32 = 50;
    const WAIT_NS: u64 = 10_000_000;
    const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let saved = [rdi, rsi, rdx, rcx, r8, r9, r10, r11, rbx];
    let [mut again, mut give_up, mut out, mut time] = [(); 4].map(|()| a.create_label());
    saved.iter().try_for_each(|&register| a.push(register))?;
    a.mov(ebx, WAITS_MAX)?;
    a.mov(rdi, gate_avma)?;
    a.set_label(&mut again)?;
    a.mov(eax, dword_ptr(rdi))?;
    a.cmp(eax, GATE_CLOSED)?;
    a.jne(out)?;
    a.dec(ebx)?;
    a.je(give_up)?;
    a.mov(eax, libc::SYS_futex as i32)?;
    a.mov(esi, WAIT)?;
    a.mov(edx, GATE_CLOSED)?;
    a.lea(r10, ptr(time))?;
    a.syscall()?;
    a.jmp(again)?;
    a.set_label(&mut give_up)?;
    a.mov(eax, GATE_AROUND)?;
    a.mov(dword_ptr(rdi), eax)?;
    a.set_label(&mut out)?;
    // Popping leaves the flags as they are.
    a.cmp(eax, GATE_OPEN)?;
    saved.iter().rev().try_for_each(|&register| a.pop(register))?;
    a.ret()?;
    a.set_label(&mut time)?;
    a.dq(&[0, WAIT_NS])?;
    Ok([])
}

/// Address range of the code in which threads wait, in the area at `island_avma`.
pub(crate) fn waiting_range(island_avma: u64) -> std::ops::Range<u64> {
    /// Size in bytes of the code.
    static BYTES: OnceLock<u64> = OnceLock::new();
    let bytes = *BYTES.get_or_init(|| waiting_code(0).map_or(0, |code| code.len() as u64));
    let wait_avma = island_avma + OPENING_BYTES as u64;
    wait_avma..wait_avma + bytes
}

/// Page address of the trampoline area that `code`, at `entry_avma`, jumps to; `None` if it is no
/// jump. The area's opening must be at that page.
pub(crate) fn island_of(entry_avma: u64, code: &[u8]) -> Option<u64> {
    let (&[0xe9, a, b, c, d], _) = code.split_first_chunk::<5>()? else { return None };
    let target = entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    Some(target & !(page_bytes() - 1))
}

/// Target of `jump`, which is at `entry_avma`: the entry of the counting code.
pub(crate) fn counting_at(entry_avma: u64, jump: JumpBytes) -> u64 {
    let [_, a, b, c, d] = jump;
    entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])))
}

/// Address of the injection record in the first bytes of an area.
pub(crate) fn record_of(opening: &[u8; OPENING_BYTES]) -> Option<u64> {
    let (magic, record) = opening.split_at(8);
    (u64::from_le_bytes(magic.try_into().ok()?) == ISLAND_MAGIC)
        .then_some(u64::from_le_bytes(record.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

    use super::*;

    #[test]
    fn the_jumps_of_the_waiting_lead_where_they_should() {
        const START: u64 = 0x10_0000;
        let code = waiting_code(0x7000_1234_5678).unwrap();
        assert!(code.len() <= WAIT_BYTES_MAX);
        let text = &code[..code.len() - 16];
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, text, START, DecoderOptions::NONE).into_iter().collect();
        assert!(instructions.iter().all(|instruction| !instruction.is_invalid()));
        let at = |avma: u64| instructions.iter().find(|instruction| instruction.ip() == avma).unwrap();
        let of = |mnemonic| instructions.iter().filter(move |found| found.mnemonic() == mnemonic);
        let targets = |mnemonic| of(mnemonic).map(|jump| at(jump.near_branch_target())).collect::<Vec<_>>();
        // Out to the last comparison.
        let [out] = targets(Mnemonic::Jne)[..] else { panic!() };
        assert_eq!((out.mnemonic(), out.immediate32()), (Mnemonic::Cmp, GATE_OPEN));
        assert_eq!(instructions.last().unwrap().mnemonic(), Mnemonic::Ret);
        assert_eq!(targets(Mnemonic::Je)[0].immediate32(), GATE_AROUND);
        // Back to the load of the gate.
        let again = at(of(Mnemonic::Jmp).next().unwrap().near_branch_target());
        assert_eq!((again.mnemonic(), again.ip() - START), (Mnemonic::Mov, 28));
        let time = of(Mnemonic::Lea).next().unwrap();
        assert_eq!(time.memory_displacement64(), START + text.len() as u64);
        assert_eq!(of(Mnemonic::Push).count(), of(Mnemonic::Pop).count());
    }

    fn prologue() -> Prologue {
        let body = [0x41, 0x54, 0x41, 0x55, 0x55, 0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0xc3];
        Prologue::plan(0x20_0000, &body, &[]).unwrap()
    }

    /// An area with one function, and its instructions from an address on.
    fn island(way: &Way) -> (Landing, impl Fn(u64) -> Vec<Instruction>) {
        let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000).unwrap();
        let landing = island.add(&prologue(), way).unwrap();
        assert!(island.bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX + FUNCTION_BYTES_MAX);
        let code_at = move |avma: u64| {
            let code = island.bytes[(avma - island.start_avma) as usize..].to_vec();
            let mut decoder = Decoder::with_ip(64, &code, avma, DecoderOptions::NONE);
            decoder.iter().take(16).collect::<Vec<_>>()
        };
        (landing, code_at)
    }

    fn mnemonics(code: &[Instruction]) -> Vec<Mnemonic> {
        code.iter().map(Instruction::mnemonic).collect()
    }

    #[test]
    fn who_comes_to_a_closed_gate_waits_and_goes_to_the_target_or_around_it() {
        let ranges = vec![(0x20_0000, 0x100), (0x30_0000, 0x100)];
        for keeps_inner in [false, true] {
            let way = Way::Convention {
                trampoline_avma: 0xabcd_0000,
                ranges: ranges.clone(),
                keeps_inner,
                counted: None,
            };
            let (landing, code_at) = island(&way);
            let gate = code_at(landing.target_avma + GATE_OFFSET);
            assert_eq!(gate[2].near_branch_target(), 0x10_0000 + OPENING_BYTES as u64);
            assert_eq!(gate[2].next_ip(), landing.target_avma + WAITED_OFFSET);
            let around = gate[3].near_branch_target();
            let to_target = gate.iter().find(|found| found.mnemonic() == Mnemonic::Jmp).unwrap();
            assert_eq!(to_target.memory_displacement64(), landing.target_avma);
            assert_eq!(mnemonics(&code_at(around)[..2]), [Mnemonic::Pop, Mnemonic::Popfq]);
            let behind = &code_at(around)[2];
            let leads_to = if keeps_inner { behind.near_branch_target() } else { behind.ip() };
            assert_eq!(leads_to, landing.moved_avma);
        }
    }

    #[test]
    fn a_call_from_inside_goes_on_with_all_that_it_had() {
        let way = Way::Convention {
            trampoline_avma: 1,
            ranges: vec![(0x20_0000, 0x100)],
            keeps_inner: true,
            counted: None,
        };
        let (landing, code_at) = island(&way);
        let entry = code_at(landing.entry_avma);
        assert_eq!(mnemonics(&entry[..3]), [Mnemonic::Push, Mnemonic::Push, Mnemonic::Pushfq]);
        let inner = entry.iter().find(|found| found.mnemonic() == Mnemonic::Jb).unwrap();
        let inner = code_at(inner.near_branch_target());
        assert_eq!(mnemonics(&inner[..3]), [Mnemonic::Popfq, Mnemonic::Pop, Mnemonic::Pop]);
        assert_eq!(inner[3].ip(), landing.moved_avma);
    }

    #[test]
    fn what_counts_goes_on_in_the_function_and_out_of_it_to_the_target() {
        let countdown = Countdown { slot_offset: 0x318, left_offset: 64 };
        let way = Way::Convention {
            trampoline_avma: 1,
            ranges: vec![(0x20_0000, 0x100), (0x30_0000, 0x100)],
            keeps_inner: false,
            counted: Some((Counted::Resized, countdown)),
        };
        let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000).unwrap();
        let landing = island.add(&prologue(), &way).unwrap();
        assert!(island.bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX + FUNCTION_BYTES_MAX);
        let at = (landing.entry_avma - island.start_avma) as usize;
        // While closed, the entry leads to the tests.
        let questions = counting_at(landing.entry_avma, island.bytes[at..at + 5].try_into().unwrap());
        let code_at = |island: &Island, avma: u64| {
            let code = island.bytes[(avma - island.start_avma) as usize..].to_vec();
            Decoder::with_ip(64, &code, avma, DecoderOptions::NONE).iter().take(24).collect::<Vec<_>>()
        };
        let asked = code_at(&island, questions);
        let inner: Vec<u64> = asked
            .iter()
            .filter(|found| found.mnemonic() == Mnemonic::Jb)
            .map(Instruction::near_branch_target)
            .collect();
        assert_eq!(inner, [landing.moved_avma; 2]);
        let open: JumpBytes = island.bytes[at - COUNTING_BYTES..at - COUNTING_BYTES + 5].try_into().unwrap();
        assert_eq!(island.bytes[at - 8..at - 3], island.bytes[at..at + 5]);
        island.bytes[at..at + 5].copy_from_slice(&open);
        assert_eq!(landing.marks_avma, Some(landing.entry_avma + MARKS_OFFSET));
        let counting = code_at(&island, landing.entry_avma);
        let out = counting.iter().find(|found| found.mnemonic() == Mnemonic::Js).unwrap();
        let out = &code_at(&island, out.near_branch_target())[0];
        assert_eq!((out.mnemonic(), out.memory_displacement64()), (Mnemonic::Jmp, landing.target_avma));
        let behind = counting.iter().position(|found| found.mnemonic() == Mnemonic::Js).unwrap() + 1;
        assert_eq!(counting[behind].ip(), landing.moved_avma);
        // A waiting thread that is led around continues there too.
        let gate = code_at(&island, landing.target_avma + GATE_OFFSET);
        let around = code_at(&island, gate[3].near_branch_target());
        assert_eq!(around[2].near_branch_target(), landing.moved_avma);
    }

    #[test]
    fn where_all_is_kept_nothing_is_changed_on_the_way() {
        let (landing, code_at) =
            island(&Way::Kept { entry_avma: 0x7000, function_avma: 0x8000, counted: None });
        let entry = &code_at(landing.entry_avma)[0];
        assert_eq!((entry.mnemonic(), entry.memory_displacement64()), (Mnemonic::Jmp, landing.target_avma));
        let kept = code_at(landing.trampoline_avma);
        assert_eq!(mnemonics(&kept[..4]), [Mnemonic::Push, Mnemonic::Mov, Mnemonic::Push, Mnemonic::Jmp]);
        // Two words behind the code.
        assert_eq!(kept[2].memory_displacement64(), kept[3].next_ip());
        assert_eq!(kept[3].memory_displacement64(), kept[3].next_ip() + 8);
    }
}
