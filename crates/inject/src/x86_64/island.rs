//! The island near a module: for each hooked function of it where its first bytes now lead, and its moved instructions.
//!
//! ```text
//! 0   magic                          8   address of the injection record
//! 16  wait:                          all that are not let in yet
//!     save registers
//!     while gate == CLOSED           not longer than half a second: then nobody is left who could open it
//!         futex(gate, WAIT, CLOSED, 10 ms)
//!     restore registers
//!     gate == OPEN ? jmp [r11] : jmp [r11 + 8]
//!     ------------------------------ for each function:
//!     mov rax, [rsp]                 the caller lies in the allocator itself, or (one function of the allocator has jumped
//!     mov r11, start                 to another) in the agent: not the program's call
//!     sub rax, r11
//!     cmp rax, bytes
//!     jb  moved                      (these five once for each of the two ranges)
//!     jmp [target]
//!     target: address of `gate`; from the opening on that of the agent's trampoline
//!             address of `moved`
//! gate:
//!     lea r11, [target]; jmp wait
//! moved:
//!     moved instructions, jump to the rest
//! ```
//!
//! rax and r11 carry nothing at the entry of a function that has a fixed number of arguments.
//!
//! The gate is there because a thread that allocates all the time is in the allocator at most moments: with the gate closed none
//! comes in, so that those inside have only to come out for the heap to be at rest.

use super::{Prologue, jump};

/// First word of an island.
const ISLAND_MAGIC: u64 = u64::from_le_bytes(*b"heaprisl");
/// Bytes before the first function.
pub(crate) const OPENING_BYTES: usize = 16;
/// More than one function takes: 29 for each test, 34 for jump and gate, at most 5 moved instructions of 15, lengthened.
const FUNCTION_BYTES_MAX: usize = 224;
/// More than the waiting takes.
const WAIT_BYTES_MAX: usize = 144;
const PAGE: u64 = 4096;

/// Value of the gate: calls go to the agent.
pub(crate) const GATE_OPEN: u32 = 0;
/// Value of the gate: calls wait.
pub(crate) const GATE_CLOSED: u32 = 1;
/// Value of the gate: calls go to the functions themselves.
pub(crate) const GATE_AROUND: u32 = 2;

/// From a function's `target` to its `gate`.
pub(crate) const GATE_OFFSET: u64 = 16;

/// An island under construction.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start_avma: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Where a function's entry and its moved instructions lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) entry_avma: u64,
    pub(crate) moved_avma: u64,
    /// The word that gets the trampoline's address when the gate opens.
    pub(crate) target_avma: u64,
    pub(crate) trampoline_avma: u64,
}

impl Island {
    /// Size of an island for so many functions, in whole pages.
    pub(crate) fn bytes_for(function_count: usize) -> u64 {
        ((OPENING_BYTES + WAIT_BYTES_MAX + function_count * FUNCTION_BYTES_MAX) as u64).next_multiple_of(PAGE)
    }

    /// An island without functions. `gate_avma`: a writable word.
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

    /// Adds a function whose calls go to `trampoline_avma`, unless they come from one of `ranges` (start and bytes; at most
    /// two).
    pub(crate) fn add(
        &mut self,
        prologue: &Prologue,
        trampoline_avma: u64,
        ranges: &[(u64, u64)],
    ) -> Result<Landing, &'static str> {
        while !self.bytes.len().is_multiple_of(16) {
            self.bytes.push(0xcc);
        }
        let entry_avma = self.here();
        let mut to_moved = Vec::new();
        for &(start_avma, bytes) in ranges {
            let bytes = u32::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 31);
            let length = bytes.ok_or("the allocator's code is too large")?;
            self.bytes.extend_from_slice(&[0x48, 0x8b, 0x04, 0x24, 0x49, 0xbb]);
            self.bytes.extend_from_slice(&start_avma.to_le_bytes());
            self.bytes.extend_from_slice(&[0x4c, 0x29, 0xd8, 0x48, 0x3d]);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(&[0x0f, 0x82, 0, 0, 0, 0]);
            to_moved.push(self.bytes.len());
        }
        self.bytes.extend_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        let target_avma = self.here();
        let gate_avma = target_avma + GATE_OFFSET;
        let moved_avma = gate_avma + 12;
        self.bytes.extend_from_slice(&gate_avma.to_le_bytes());
        self.bytes.extend_from_slice(&moved_avma.to_le_bytes());
        // lea r11, [rip - 23]: the target
        self.bytes.extend_from_slice(&[0x4c, 0x8d, 0x1d, 0xe9, 0xff, 0xff, 0xff]);
        let wait_avma = self.start_avma + OPENING_BYTES as u64;
        self.bytes.extend(jump(self.here(), wait_avma).ok_or("the island is too large")?);
        for behind in to_moved {
            let distance = (self.bytes.len() - behind) as u32;
            self.bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
        }
        let moved = prologue.moved(moved_avma)?;
        self.bytes.extend(moved);
        Ok(Landing { entry_avma, moved_avma, target_avma, trampoline_avma })
    }

    /// The jump that goes into the function's first bytes.
    pub(crate) fn jump_from(prologue: &Prologue, landing: Landing) -> Result<[u8; 5], &'static str> {
        jump(prologue.entry_avma, landing.entry_avma).ok_or("the island is too far away")
    }
}

/// The code at `wait`; see the module.
fn waiting_code(gate_avma: u64) -> Vec<u8> {
    /// Of 10 ms each.
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
    // jne around; jmp [r11]; around: jmp [r11 + 8]
    code.extend([0x75, 3, 0x41, 0xff, 0x23, 0x41, 0xff, 0x63, 8]);
    code[to_time - 4] = (code.len() - to_time) as u8;
    code.extend(0_u64.to_le_bytes());
    code.extend(WAIT_NS.to_le_bytes());
    code
}

/// The code of an island in which threads wait.
pub(crate) fn waiting_range(island_avma: u64) -> std::ops::Range<u64> {
    let wait_avma = island_avma + OPENING_BYTES as u64;
    wait_avma..wait_avma + waiting_code(0).len() as u64
}

/// If `code`, at `entry_avma`, jumps to an island: the address of that island's page, where the opening must be.
pub(crate) fn island_of(entry_avma: u64, code: &[u8]) -> Option<u64> {
    let (&[0xe9, a, b, c, d], _) = code.split_first_chunk::<5>()? else { return None };
    let target = entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    Some(target & !(PAGE - 1))
}

/// The address of the injection record from the first bytes of an island.
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
        // Out to the last comparison; around the first of the two jumps.
        let [out, around] = targets(Mnemonic::Jne)[..] else { panic!() };
        assert_eq!((out.mnemonic(), out.immediate8()), (Mnemonic::Cmp, GATE_OPEN as u8));
        assert_eq!((around.mnemonic(), around.memory_displacement64()), (Mnemonic::Jmp, 8));
        assert_eq!(targets(Mnemonic::Je)[0].immediate32(), GATE_AROUND);
        // Back to the load of the gate.
        let again = at(of(Mnemonic::Jmp).next().unwrap().near_branch_target());
        assert_eq!((again.mnemonic(), again.ip() - START), (Mnemonic::Mov, 28));
        let time = of(Mnemonic::Lea).next().unwrap();
        assert_eq!(time.memory_displacement64(), START + text.len() as u64);
        assert_eq!(of(Mnemonic::Push).count(), of(Mnemonic::Pop).count());
    }

    #[test]
    fn a_closed_gate_leads_to_the_waiting_with_the_targets_address() {
        let body = [0x41, 0x54, 0x41, 0x55, 0x55, 0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0xc3];
        let prologue = Prologue::plan(0x20_0000, &body).unwrap();
        let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000);
        let landing = island.add(&prologue, 0xabcd_0000, &[(0x20_0000, 0x100), (0x30_0000, 0x100)]).unwrap();
        let word = |avma: u64| {
            let at = (avma - island.start_avma) as usize;
            u64::from_le_bytes(island.bytes[at..at + 8].try_into().unwrap())
        };
        let gate_avma = word(landing.target_avma);
        assert_eq!(word(landing.target_avma + 8), landing.moved_avma);
        let gate = &island.bytes[(gate_avma - island.start_avma) as usize..];
        let mut decoder = Decoder::with_ip(64, gate, gate_avma, DecoderOptions::NONE);
        assert_eq!(decoder.decode().memory_displacement64(), landing.target_avma);
        let to_wait = decoder.decode();
        assert_eq!(to_wait.near_branch_target(), island.start_avma + OPENING_BYTES as u64);
        assert_eq!(to_wait.next_ip(), landing.moved_avma);
    }
}
