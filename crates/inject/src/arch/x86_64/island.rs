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

use super::all_registers_countdown::AllRegistersCountdown;
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
const PAGE: u64 = 4096;

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

    /// Code before the way out, which restores registers.
    fn restoring(&self) -> Vec<u8> {
        match self {
            Self::Convention(..) => Vec::new(),
            Self::Kept(counted) => counted.restoring(),
        }
    }

    fn code(&self, out: i32) -> Vec<u8> {
        match self {
            Self::Convention(counted, countdown) => counted.code(*countdown, out),
            Self::Kept(counted) => counted.code(out),
        }
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
        ((OPENING_BYTES + WAIT_BYTES_MAX + function_count * FUNCTION_BYTES_MAX) as u64).next_multiple_of(PAGE)
    }

    /// Creates an area without functions. `gate_avma` is the address of a writable word.
    pub(crate) fn new(start_avma: u64, record_avma: u64, gate_avma: u64) -> Self {
        let mut bytes = ISLAND_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&record_avma.to_le_bytes());
        bytes.extend(waiting_code(gate_avma));
        debug_assert!(bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX);
        Self { start_avma, bytes }
    }

    fn here(&self) -> u64 {
        self.start_avma + self.bytes.len() as u64
    }

    /// Adds a function.
    pub(crate) fn add(&mut self, prologue: &Prologue, way: &Way) -> Result<Landing, &'static str> {
        while !self.bytes.len().is_multiple_of(16) {
            self.bytes.push(0xcc);
        }
        let mut entry_avma = self.here();
        let mut marks_avma = None;
        let mut to_inner = Vec::new();
        let inner = self.add_range_checks(way, &mut to_inner)?;
        let target_avma = self.add_gate()?;
        if !inner.is_empty() {
            // jmp moved
            self.bytes.extend_from_slice(&[0xeb, inner.len() as u8]);
        }
        let counted = way.counting();
        let counting = counted.as_ref().map(|counted| {
            // jmp moved
            self.bytes.extend_from_slice(&[0xe9, 0, 0, 0, 0]);
            to_inner.push(self.bytes.len());
            let beginning_avma = entry_avma;
            let code;
            (entry_avma, code) = self.add_counting(counted, beginning_avma, target_avma);
            marks_avma = counted.marks_offset().map(|offset| entry_avma + offset);
            code
        });
        let moved_from = self.bytes.len() + counting.as_ref().map_or(0, Vec::len);
        for behind in to_inner {
            let distance = (moved_from - behind) as u32;
            self.bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
        }
        self.bytes.extend(counting.unwrap_or_default());
        self.bytes.extend(inner);
        let moved_avma = self.here();
        let moved = prologue.moved(moved_avma)?;
        self.bytes.extend(moved);
        let trampoline_avma = match *way {
            Way::Convention { trampoline_avma, .. } => trampoline_avma,
            Way::Kept { entry_avma, function_avma, .. } => {
                let kept_avma = self.here();
                // push rbp; mov rbp, rsp; push [function]; jmp [entry]
                self.bytes.extend_from_slice(&[0x55, 0x48, 0x89, 0xe5, 0xff, 0x35, 6, 0, 0, 0]);
                self.bytes.extend_from_slice(&[0xff, 0x25, 8, 0, 0, 0]);
                self.bytes.extend_from_slice(&function_avma.to_le_bytes());
                self.bytes.extend_from_slice(&entry_avma.to_le_bytes());
                kept_avma
            }
        };
        let counts = counted.is_some();
        Ok(Landing { entry_avma, moved_avma, target_avma, trampoline_avma, counts, marks_avma })
    }

    /// Adds comparisons of the caller with the allocator's code. Returns what such calls execute
    /// first; the ends of the jumps to there, whose distances are 0 yet, go to `to_inner`.
    fn add_range_checks(&mut self, way: &Way, to_inner: &mut Vec<usize>) -> Result<Vec<u8>, &'static str> {
        let mut inner = Vec::new();
        let Way::Convention { ranges, keeps_inner, .. } = way else { return Ok(inner) };
        if *keeps_inner {
            // push rax; push r11; pushfq
            self.bytes.extend_from_slice(&[0x50, 0x41, 0x53, 0x9c]);
            // popfq; pop r11; pop rax
            inner.extend_from_slice(&[0x9d, 0x41, 0x5b, 0x58]);
        }
        for &(start_avma, bytes) in ranges {
            let bytes = u32::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 31);
            let length = bytes.ok_or("the allocator's code is too large")?;
            // mov rax, [rsp]; mov r11, start; sub rax, r11; cmp rax, bytes; jb inner
            let load: &[u8] =
                if *keeps_inner { &[0x48, 0x8b, 0x44, 0x24, 24] } else { &[0x48, 0x8b, 0x04, 0x24] };
            self.bytes.extend_from_slice(load);
            self.bytes.extend_from_slice(&[0x49, 0xbb]);
            self.bytes.extend_from_slice(&start_avma.to_le_bytes());
            self.bytes.extend_from_slice(&[0x4c, 0x29, 0xd8, 0x48, 0x3d]);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(&[0x0f, 0x82, 0, 0, 0, 0]);
            to_inner.push(self.bytes.len());
        }
        if *keeps_inner {
            // lea rsp, [rsp + 24]
            self.bytes.extend_from_slice(&[0x48, 0x8d, 0x64, 0x24, 24]);
        }
        Ok(inner)
    }

    /// Adds the jump through the target's word, and the wait at the closed gate. Returns the
    /// address of the word.
    fn add_gate(&mut self) -> Result<u64, &'static str> {
        self.bytes.extend_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        let target_avma = self.here();
        let gate_avma = target_avma + GATE_OFFSET;
        self.bytes.extend_from_slice(&gate_avma.to_le_bytes());
        // pushfq; push rax; call wait
        self.bytes.extend_from_slice(&[0x9c, 0x50]);
        let wait_avma = self.start_avma + OPENING_BYTES as u64;
        let [_, to_wait @ ..] = jump(self.here(), wait_avma).ok_or("the island is too large")?;
        self.bytes.push(0xe8);
        self.bytes.extend(to_wait);
        debug_assert_eq!(self.here(), target_avma + WAITED_OFFSET);
        // jne around; pop rax; popfq; jmp [target]; around: pop rax; popfq
        self.bytes.extend_from_slice(&[0x75, 8, 0x58, 0x9d, 0xff, 0x25]);
        let back = (target_avma.wrapping_sub(self.here() + 4)) as u32;
        self.bytes.extend(back.to_le_bytes());
        self.bytes.extend_from_slice(&[0x58, 0x9d]);
        Ok(target_avma)
    }

    /// Adds the path out of the counting, and the open and closed beginnings of its code. Returns
    /// the address of the code and the code.
    fn add_counting(
        &mut self,
        counted: &Counting<'_>,
        beginning_avma: u64,
        target_avma: u64,
    ) -> (u64, Vec<u8>) {
        self.bytes.extend(counted.restoring());
        let out_avma = self.here();
        self.bytes.extend_from_slice(&[0xff, 0x25]);
        let back = (target_avma.wrapping_sub(self.here() + 4)) as u32;
        self.bytes.extend(back.to_le_bytes());
        let entry_avma = self.here() + COUNTING_BYTES as u64;
        let mut code = counted.code(out_avma.wrapping_sub(entry_avma) as i32);
        let closed = jump(entry_avma, beginning_avma).unwrap_or_default();
        let (first, _) = code.split_at_mut(closed.len());
        for bytes in [&*first, &closed] {
            self.bytes.extend_from_slice(bytes);
            self.bytes.extend_from_slice(&[0xcc; COUNTING_BYTES / 2 - 5]);
        }
        first.copy_from_slice(&closed);
        (entry_avma, code)
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

/// Machine code at `wait`; see the module's documentation.
fn waiting_code(gate_avma: u64) -> Vec<u8> {
    /// Largest number of waits, of 10 ms each.
    const WAITS_MAX: u32 = 50;
    const WAIT_NS: u64 = 10_000_000;
    const FUTEX: u32 = 202;
    const FUTEX_WAIT_PRIVATE: u32 = 128;
    // push rdi, rsi, rdx, rcx, r8, r9, r10, r11, rbx
    let mut code = vec![0x57, 0x56, 0x52, 0x51, 0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, 0x53];
    // mov ebx, waits; mov rdi, gate
    code.push(0xbb);
    code.extend(WAITS_MAX.to_le_bytes());
    code.extend([0x48, 0xbf]);
    code.extend(gate_avma.to_le_bytes());
    let again = code.len();
    // mov eax, [rdi]; cmp eax, CLOSED; jne out
    code.extend([0x8b, 0x07, 0x83, 0xf8, GATE_CLOSED as u8, 0x75, 0]);
    let to_out = code.len();
    // dec ebx; jz give_up
    code.extend([0xff, 0xcb, 0x74, 0]);
    let to_give_up = code.len();
    // mov eax, futex; mov esi, wait; mov edx, CLOSED; lea r10, [time]; syscall; jmp again
    code.push(0xb8);
    code.extend(FUTEX.to_le_bytes());
    code.push(0xbe);
    code.extend(FUTEX_WAIT_PRIVATE.to_le_bytes());
    code.push(0xba);
    code.extend(GATE_CLOSED.to_le_bytes());
    code.extend([0x4c, 0x8d, 0x15, 0, 0, 0, 0]);
    let to_time = code.len();
    code.extend([0x0f, 0x05, 0xeb, 0]);
    code[to_time + 3] = (again as u8).wrapping_sub(code.len() as u8);
    // give_up: mov eax, AROUND; mov [rdi], eax
    code[to_give_up - 1] = (code.len() - to_give_up) as u8;
    code.push(0xb8);
    code.extend(GATE_AROUND.to_le_bytes());
    code.extend([0x89, 0x07]);
    // out: cmp eax, OPEN; pop all (which leaves the flags as they are)
    code[to_out - 1] = (code.len() - to_out) as u8;
    code.extend([0x83, 0xf8, GATE_OPEN as u8, 0x5b, 0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58]);
    code.extend([0x59, 0x5a, 0x5e, 0x5f]);
    code.push(0xc3);
    code[to_time - 4] = (code.len() - to_time) as u8;
    code.extend(0_u64.to_le_bytes());
    code.extend(WAIT_NS.to_le_bytes());
    code
}

/// Address range of the code in which threads wait, in the area at `island_avma`.
pub(crate) fn waiting_range(island_avma: u64) -> std::ops::Range<u64> {
    let wait_avma = island_avma + OPENING_BYTES as u64;
    wait_avma..wait_avma + waiting_code(0).len() as u64
}

/// Page address of the trampoline area that `code`, at `entry_avma`, jumps to; `None` if it is no
/// jump. The area's opening must be at that page.
pub(crate) fn island_of(entry_avma: u64, code: &[u8]) -> Option<u64> {
    let (&[0xe9, a, b, c, d], _) = code.split_first_chunk::<5>()? else { return None };
    let target = entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    Some(target & !(PAGE - 1))
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
        let code = waiting_code(0x7000_1234_5678);
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
        assert_eq!((out.mnemonic(), out.immediate8()), (Mnemonic::Cmp, GATE_OPEN as u8));
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
        let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000);
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
        let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000);
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
