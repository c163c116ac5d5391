//! Counting code of a sampled function of an embedded allocator: like [`super::countdown`], for
//! callers that may hold values in any register.
//!
//! ```text
//! agent loaded by the loader:
//!     new block:  stc; sbb fs:[countdown], size; js out
//! agent attached, with the countdown in the thread's state:
//!     new block:  mov a, fs:[slot]; add a, -1; jnc out
//!                 sbb [a + 1 + countdown], size; js out
//! both:
//!     free:       mov b, marks; mov a, block; shr a, 12; cmp byte [b + a * 4], 0; jne out
//! ```
//! No caller holds a value in a register that the function writes: a compiler that permits it
//! examines the whole function, and its callees. `a` and `b` are thus registers that the function
//! writes itself, without saving them. Without such registers, they are pushed. The flags are free
//! in any function that compares something.

use heapr_wire::{InnerAction, Signature};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::countdown::{Countdown, MARKS_OFFSET};

/// Location of a thread's countdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Offset from the thread pointer.
    Thread(i32),
    /// Offset in the thread's state.
    State(Countdown),
}

/// Locations for sampling, common to all functions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Address of the page marks; 0: it is written later.
    pub(crate) marks_avma: u64,
    pub(crate) place: Place,
}

impl Sampling {
    /// Value for a process that is about to be attached to.
    pub(crate) const LATER: Self =
        Self { marks_avma: 0, place: Place::State(Countdown { slot_offset: 0, left_offset: 0 }) };
}

/// Quantity of a function's calls that is counted, with register numbers as in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Size(u8),
    Product(u8, u8),
    Resized { block: u8, size: u8 },
    Freed(u8),
}

/// Plan for counting a function's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllRegistersCountdown {
    words: Words,
    sampling: Sampling,
    /// Registers that the code uses; `saved` are those of them that must be saved.
    scratch: [u8; 2],
    saved: Vec<u8>,
}

const RAX: u8 = 0;
const R10: u8 = 10;
const R11: u8 = 11;
/// Registers in which no allocator function gets an argument.
const FREE: [(u8, Register); 3] = [(RAX, Register::RAX), (R11, Register::R11), (R10, Register::R10)];
/// Registers of the first four arguments.
const ARGUMENTS: [u8; 4] = [7, 6, 2, 1];

impl AllRegistersCountdown {
    /// Plans the counting of a function with this code. `None`: all of its calls go to the agent.
    pub(crate) fn plan(signature: Signature, code: &[u8], sampling: Sampling) -> Option<Self> {
        let register = |argument: Option<u8>| ARGUMENTS.get(usize::from(argument?)).copied();
        let (block, size) = (register(signature.block), register(signature.size));
        if signature.more.is_some() || signature.pool.is_some() {
            return None;
        }
        let words = match (signature.action, signature.count) {
            (InnerAction::Free, _) => Words::Freed(block?),
            (InnerAction::Allocate | InnerAction::New | InnerAction::Store, None) => Words::Size(size?),
            (InnerAction::Allocate, count) => Words::Product(size?, register(count)?),
            (InnerAction::Reallocate, None) => Words::Resized { block: block?, size: size? },
            _ => return None,
        };
        let written = Written::by(code);
        let is_direct = matches!(sampling.place, Place::Thread(_));
        let count = match words {
            Words::Size(_) => usize::from(!is_direct),
            Words::Product(..) => 1 + usize::from(!is_direct),
            Words::Resized { .. } | Words::Freed(_) => 2,
        };
        let mut registers: Vec<(u8, bool)> =
            FREE.iter().map(|&(number, register)| (number, written.is_lost(register))).collect();
        registers.sort_by_key(|&(_, is_lost)| !is_lost);
        let saved = registers.iter().take(count).filter(|(_, is_lost)| !is_lost).map(|&(number, _)| number);
        let [(first, _), (second, _), _] = registers[..] else { return None };
        written.has_flags.then(|| Self { words, sampling, scratch: [first, second], saved: saved.collect() })
    }

    /// Same plan with the countdown in a thread's state, for an attach; the address of the marks is
    /// written later.
    pub(crate) fn in_state(&self, countdown: Countdown) -> Self {
        let sampling = Sampling { place: Place::State(countdown), ..self.sampling };
        Self { sampling, ..self.clone() }
    }

    /// Offset of the marks' address in the code, if it is to be written later.
    pub(crate) fn marks_offset(&self) -> Option<u64> {
        let looks = matches!(self.words, Words::Resized { .. } | Words::Freed(_));
        // Each register is saved by two bytes, and four bytes precede the first.
        let saving = self.saved.len() as u64 * 2 + if self.saved.is_empty() { 0 } else { 4 };
        (looks && self.sampling.marks_avma == 0).then_some(saving + MARKS_OFFSET)
    }

    /// Code before the way out that restores saved registers.
    pub(crate) fn restoring(&self) -> Vec<u8> {
        let mut code = Code::default();
        self.saved.iter().rev().for_each(|&register| code.pop(register));
        code.bytes
    }

    /// Machine code; `out` is the distance from its start to the way out. The first instruction is
    /// longer than a jump.
    pub(crate) fn code(&self, out: i32) -> Vec<u8> {
        let mut code = Code::default();
        let [a, b] = self.scratch;
        for (number, &register) in self.saved.iter().enumerate() {
            if number == 0 {
                // Prefixes without effect.
                code.add(&[0x2e; 4]);
            }
            code.push(register);
        }
        let last = match self.words {
            Words::Size(size) => code.count(self.sampling.place, a, size),
            Words::Product(size, count) => {
                // mov a, size; imul a, count; jo out
                code.registers(0x89, size, a);
                code.add(&[0x48 | (a >> 3) << 2 | (count >> 3), 0x0f, 0xaf, modrm(a, count)]);
                code.out_if(OVERFLOWS);
                code.count(self.sampling.place, b, a)
            }
            Words::Resized { block, size } => {
                code.look_at_mark(self.sampling.marks_avma, block, a, b);
                code.out_if(NOT_EQUAL);
                // test block, block; je out
                code.registers(0x85, block, block);
                code.out_if(EQUAL);
                code.count(self.sampling.place, a, size)
            }
            Words::Freed(block) => {
                code.look_at_mark(self.sampling.marks_avma, block, a, b);
                NOT_EQUAL
            }
        };
        // The restoring code leaves the flags unchanged.
        code.add(&self.restoring());
        let early = std::mem::take(&mut code.jumps);
        code.out_if(last);
        let restoring = self.restoring().len() as i32;
        let Code { mut bytes, jumps } = code;
        let mut lead = |behind: usize, to: i32| {
            let distance = to.wrapping_sub(behind as i32);
            bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
        };
        early.into_iter().for_each(|behind| lead(behind, out.wrapping_sub(restoring)));
        jumps.into_iter().for_each(|behind| lead(behind, out));
        bytes
    }
}

const NOT_CARRY: u8 = 0x83;
const NEGATIVE: u8 = 0x88;
const NOT_EQUAL: u8 = 0x85;
const EQUAL: u8 = 0x84;
const OVERFLOWS: u8 = 0x80;

/// Code with unresolved jumps out of it.
#[derive(Default)]
struct Code {
    bytes: Vec<u8>,
    /// Offsets behind each jump out.
    jumps: Vec<usize>,
}

/// ModRM byte of two registers, of which the second is changed.
fn modrm(one: u8, other: u8) -> u8 {
    0xc0 | (one & 7) << 3 | (other & 7)
}

impl Code {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn out_if(&mut self, condition: u8) {
        self.add(&[0x0f, condition, 0, 0, 0, 0]);
        self.jumps.push(self.bytes.len());
    }

    fn push(&mut self, register: u8) {
        self.add(&[0x40 | register >> 3, 0x50 | (register & 7)]);
    }

    fn pop(&mut self, register: u8) {
        self.add(&[0x40 | register >> 3, 0x58 | (register & 7)]);
    }

    /// Adds an instruction on two 8-byte registers.
    fn registers(&mut self, operation: u8, one: u8, other: u8) {
        self.add(&[0x48 | (one >> 3) << 2 | other >> 3, operation, modrm(one, other)]);
    }

    /// Adds the counting of a register; returns the condition of the way out.
    fn count(&mut self, place: Place, scratch: u8, counted: u8) -> u8 {
        match place {
            Place::Thread(offset) => {
                // stc; sbb fs:[offset], counted
                self.add(&[0xf9, 0x64, 0x48 | (counted >> 3) << 2, 0x19, (counted & 7) << 3 | 4, 0x25]);
                self.add(&offset.to_le_bytes());
            }
            Place::State(Countdown { slot_offset, left_offset }) => {
                // mov scratch, fs:[slot]; add scratch, -1; jnc out; sbb [scratch + ...], counted
                self.add(&[0x64, 0x48 | (scratch >> 3) << 2, 0x8b, (scratch & 7) << 3 | 4, 0x25]);
                self.add(&slot_offset.to_le_bytes());
                self.add(&[0x48 | scratch >> 3, 0x83, modrm(0, scratch), 0xff]);
                self.out_if(NOT_CARRY);
                let registers = 0x80 | (counted & 7) << 3 | (scratch & 7);
                self.add(&[0x48 | (counted >> 3) << 2 | scratch >> 3, 0x19, registers]);
                self.add(&left_offset.wrapping_add(1).to_le_bytes());
            }
        }
        NEGATIVE
    }

    fn look_at_mark(&mut self, marks_avma: u64, block: u8, index: u8, base: u8) {
        // mov base, marks; mov index, block (four bytes); shr index, 12; then the page's byte
        self.add(&[0x48 | base >> 3, 0xb8 | (base & 7)]);
        self.add(&marks_avma.to_le_bytes());
        self.add(&[0x40 | (block >> 3) << 2 | index >> 3, 0x89, modrm(block, index)]);
        self.add(&[0x40 | index >> 3, 0xc1, modrm(5, index), 12]);
        self.add(&[
            0x40 | (index >> 3) << 1 | base >> 3,
            0x80,
            0x3c,
            2 << 6 | (index & 7) << 3 | (base & 7),
            0,
        ]);
    }
}

/// Registers and flags that code writes.
#[derive(Default)]
struct Written {
    registers: Vec<Register>,
    /// Registers that the code saves, perhaps to restore them.
    pushed: Vec<Register>,
    has_flags: bool,
}

impl Written {
    fn by(code: &[u8]) -> Self {
        let mut written = Self::default();
        let mut factory = InstructionInfoFactory::new();
        for instruction in &mut Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
            if instruction.is_invalid() {
                break;
            }
            written.has_flags |= instruction.rflags_modified() != 0;
            if instruction.mnemonic() == Mnemonic::Push && instruction.op0_kind() == OpKind::Register {
                written.pushed.push(instruction.op0_register());
            }
            let used = factory.info(&instruction).used_registers();
            let writes =
                used.iter().filter(|used| matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite));
            written.registers.extend(writes.map(|used| used.register().full_register()));
        }
        written
    }

    /// True if no caller holds a value in a register.
    fn is_lost(&self, register: Register) -> bool {
        self.registers.contains(&register) && !self.pushed.contains(&register)
    }
}

#[cfg(test)]
mod tests {
    use heapr_wire::InnerAction::{Allocate, Free, Reallocate};
    use iced_x86::Instruction;

    use super::*;

    const THREAD: Place = Place::Thread(-16);
    const STATE: Place = Place::State(Countdown { slot_offset: 0x318, left_offset: 64 });
    /// mov rax, rdi; mov r11, rdi; cmp rdi, 0; ret
    const WRITES: [u8; 11] = [0x48, 0x89, 0xf8, 0x49, 0x89, 0xfb, 0x48, 0x83, 0xff, 0, 0xc3];
    /// cmp rdi, 0; ret
    const LEAF: [u8; 5] = [0x48, 0x83, 0xff, 0, 0xc3];

    fn signature(action: InnerAction, block: Option<u8>, count: Option<u8>, size: Option<u8>) -> Signature {
        Signature { action, block, count, size, more: None, pool: None, fixed_bytes: 0, called: 0 }
    }

    fn counted(signature: Signature, body: &[u8], place: Place) -> AllRegistersCountdown {
        AllRegistersCountdown::plan(signature, body, Sampling { marks_avma: 0x7000_1234_5678, place })
            .unwrap()
    }

    fn decoded(counted: &AllRegistersCountdown) -> Vec<Instruction> {
        let code = counted.code(-0x40);
        Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE).into_iter().collect()
    }

    fn mnemonics(code: &[Instruction]) -> Vec<Mnemonic> {
        code.iter().map(Instruction::mnemonic).collect()
    }

    #[test]
    fn a_new_block_takes_three_instructions_where_the_countdown_is_the_threads() {
        use Mnemonic::{Add, Jae, Js, Mov, Sbb, Stc};
        let code = decoded(&counted(signature(Allocate, None, None, Some(1)), &WRITES, THREAD));
        assert_eq!(mnemonics(&code), [Stc, Sbb, Js]);
        assert_eq!((code[1].segment_prefix(), code[1].op1_register()), (Register::FS, Register::RSI));
        assert_eq!(
            (code[1].memory_base(), code[1].memory_displacement64()),
            (Register::None, -16_i64 as u64)
        );
        let code = decoded(&counted(signature(Allocate, None, None, Some(3)), &WRITES, STATE));
        assert_eq!(mnemonics(&code), [Mov, Add, Jae, Sbb, Js]);
        assert_eq!((code[0].segment_prefix(), code[0].memory_displacement64()), (Register::FS, 0x318));
        assert!(code[0].len() >= 5, "a jump fits over it");
        assert_eq!((code[3].op1_register(), code[3].memory_base()), (Register::RCX, code[0].op0_register()));
        assert_eq!(code[3].memory_displacement64(), 65);
    }

    #[test]
    fn what_a_caller_may_keep_is_saved_and_restored_on_every_way() {
        for place in [THREAD, STATE] {
            for signature in [
                signature(Allocate, None, None, Some(0)),
                signature(Allocate, None, Some(0), Some(1)),
                signature(Reallocate, Some(0), None, Some(1)),
                signature(Free, Some(1), None, None),
            ] {
                let counted = counted(signature, &LEAF, place);
                let code = decoded(&counted);
                assert!(code.iter().all(|found| !found.is_invalid()), "{code:?}");
                let saved = counted.saved.len();
                let of = |mnemonic| code.iter().filter(move |found| found.mnemonic() == mnemonic).count();
                assert_eq!((of(Mnemonic::Push), of(Mnemonic::Pop)), (saved, saved));
                if saved > 0 {
                    assert!(code[0].len() >= 5, "a jump fits over it");
                }
                let (last, early) = code.split_last().unwrap();
                assert_eq!(last.near_branch_target(), 0x1000 - 0x40);
                let restoring = counted.restoring().len() as u64;
                let early = early.iter().filter(|found| found.is_jcc_short_or_near());
                assert!(early.clone().all(|found| found.near_branch_target() == 0x1000 - 0x40 - restoring));
                let mut written = Written::by(&counted.code(0)).registers;
                written.retain(|&register| register != Register::RSP);
                let all: Vec<Register> = FREE.iter().map(|&(_, register)| register).collect();
                assert!(written.iter().all(|register| all.contains(register)), "{written:?}");
            }
        }
    }

    #[test]
    fn a_free_looks_at_its_blocks_page() {
        let code = decoded(&counted(signature(Free, Some(0), None, None), &WRITES, STATE));
        use Mnemonic::{Cmp, Jne, Mov, Shr};
        assert_eq!(mnemonics(&code), [Mov, Mov, Shr, Cmp, Jne]);
        assert_eq!((code[0].op0_register(), code[0].immediate64()), (Register::R11, 0x7000_1234_5678));
        assert_eq!((code[1].op0_register(), code[1].op1_register()), (Register::EAX, Register::EDI));
        assert_eq!((code[2].op0_register(), code[2].immediate8()), (Register::EAX, 12));
        let place = (code[3].memory_base(), code[3].memory_index(), code[3].memory_index_scale());
        assert_eq!(place, (Register::R11, Register::RAX, 4));
    }

    #[test]
    fn marks_that_are_made_later_have_their_place() {
        for body in [&WRITES[..], &LEAF] {
            let free = signature(Free, Some(0), None, None);
            let later =
                AllRegistersCountdown::plan(free, body, Sampling { marks_avma: 0, place: STATE }).unwrap();
            let at = later.marks_offset().unwrap() as usize;
            let mut code = later.code(-0x40);
            code[at..at + 8].copy_from_slice(&0x7000_1234_5678_u64.to_le_bytes());
            let known = counted(free, body, STATE);
            assert_eq!((code, known.marks_offset()), (known.code(-0x40), None));
        }
    }

    #[test]
    fn a_register_that_the_function_saves_is_its_callers() {
        // push rax; mov rax, rdi; cmp rdi, 0; pop rax; ret
        let body = [0x50, 0x48, 0x89, 0xf8, 0x48, 0x83, 0xff, 0, 0x58, 0xc3];
        assert_eq!(counted(signature(Free, Some(0), None, None), &body, STATE).saved.len(), 2);
        assert_eq!(counted(signature(Free, Some(0), None, None), &WRITES, STATE).saved.len(), 0);
        // mov rax, rdi; ret: flags may be kept over it.
        let sampling = Sampling { marks_avma: 0, place: STATE };
        let body = [0x48, 0x89, 0xf8, 0xc3];
        assert_eq!(AllRegistersCountdown::plan(signature(Free, Some(0), None, None), &body, sampling), None);
    }
}
