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
use iced_x86::code_asm::{
    AsmRegister32, AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, eax, ecx, edi, edx, esi, qword_ptr,
    r10, r10d, r11, r11d, rax, rcx, rdi, rdx, rsi,
};
use iced_x86::{
    Decoder, DecoderOptions, IcedError, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

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

/// A general register, and its lower half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct General {
    whole: AsmRegister64,
    low: AsmRegister32,
}

impl General {
    /// Size in bytes of an instruction that pushes or pops the register.
    fn push_bytes(self) -> u64 {
        if Register::from(self.whole) >= Register::R8 { 2 } else { 1 }
    }
}

/// Quantity of a function's calls that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Size(General),
    Product(General, General),
    Resized { block: General, size: General },
    Freed(General),
}

/// Plan for counting a function's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllRegistersCountdown {
    words: Words,
    sampling: Sampling,
    /// Registers that the code uses; `saved` are those of them that must be saved.
    scratch: [General; 2],
    saved: Vec<General>,
}

/// Registers in which no allocator function gets an argument.
const FREE: [General; 3] =
    [General { whole: rax, low: eax }, General { whole: r11, low: r11d }, General { whole: r10, low: r10d }];
/// Registers of the first four arguments.
const ARGUMENTS: [General; 4] = [
    General { whole: rdi, low: edi },
    General { whole: rsi, low: esi },
    General { whole: rdx, low: edx },
    General { whole: rcx, low: ecx },
];
/// Prefixes without effect, which make the first instruction at least as long as a jump.
const PADDING: [u8; 4] = [0x2e; 4];

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
        let mut registers = FREE.map(|register| (register, written.is_lost(register.whole.into())));
        registers.sort_by_key(|&(_, is_lost)| !is_lost);
        let saved = registers.iter().take(count).filter(|(_, is_lost)| !is_lost).map(|&(one, _)| one);
        let [(first, _), (second, _), _] = registers;
        written.has_flags.then(|| Self { words, sampling, scratch: [first, second], saved: saved.collect() })
    }

    /// Variant of the plan with the countdown in a thread's state, for an attach; the address of
    /// the marks is written later.
    pub(crate) fn in_state(&self, countdown: Countdown) -> Self {
        let sampling = Sampling { place: Place::State(countdown), ..self.sampling };
        Self { sampling, ..self.clone() }
    }

    /// Offset of the marks' address in the code, if it is to be written later.
    pub(crate) fn marks_offset(&self) -> Option<u64> {
        let looks = matches!(self.words, Words::Resized { .. } | Words::Freed(_));
        let padding = if self.saved.is_empty() { 0 } else { PADDING.len() as u64 };
        let saving = padding + self.saved.iter().map(|register| register.push_bytes()).sum::<u64>();
        (looks && self.sampling.marks_avma == 0).then_some(saving + MARKS_OFFSET)
    }

    /// True if the code saves registers.
    pub(crate) fn saves(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Writes code that restores saved registers, and leaves the flags unchanged.
    pub(crate) fn write_restoring(&self, a: &mut CodeAssembler) -> Result<(), IcedError> {
        self.saved.iter().rev().try_for_each(|register| a.pop(register.whole))
    }

    /// Writes the machine code. `out` is the way out, `early` the code before it that restores
    /// registers. The first instruction is at least as long as a jump.
    pub(crate) fn write(
        &self,
        a: &mut CodeAssembler,
        early: CodeLabel,
        out: CodeLabel,
    ) -> Result<(), IcedError> {
        let Sampling { marks_avma, place } = self.sampling;
        let [first, second] = self.scratch;
        for (number, register) in self.saved.iter().enumerate() {
            if number == 0 {
                a.db(&PADDING)?;
            }
            a.push(register.whole)?;
        }
        match self.words {
            Words::Size(size) => count(a, place, first.whole, size.whole, early)?,
            Words::Product(size, number) => {
                a.mov(first.whole, size.whole)?;
                a.imul_2(first.whole, number.whole)?;
                a.jo(early)?;
                count(a, place, second.whole, first.whole, early)?;
            }
            Words::Resized { block, size } => {
                look_at_mark(a, marks_avma, block, self.scratch)?;
                a.jne(early)?;
                a.test(block.whole, block.whole)?;
                a.je(early)?;
                count(a, place, first.whole, size.whole, early)?;
            }
            Words::Freed(block) => look_at_mark(a, marks_avma, block, self.scratch)?,
        }
        self.write_restoring(a)?;
        match self.words {
            Words::Freed(_) => a.jne(out),
            _ => a.js(out),
        }
    }
}

/// Writes the counting of a register's value; afterwards the result is negative if the countdown
/// has run out.
fn count(
    a: &mut CodeAssembler,
    place: Place,
    scratch: AsmRegister64,
    counted: AsmRegister64,
    early: CodeLabel,
) -> Result<(), IcedError> {
    match place {
        Place::Thread(offset) => {
            a.stc()?;
            a.sbb(qword_ptr(offset).fs(), counted)
        }
        Place::State(Countdown { slot_offset, left_offset }) => {
            a.mov(scratch, qword_ptr(slot_offset).fs())?;
            a.add(scratch, -1)?;
            a.jae(early)?;
            a.sbb(qword_ptr(scratch + left_offset.wrapping_add(1)), counted)
        }
    }
}

/// Writes the test of the mark of a block's page; afterwards the result is not equal if it is
/// marked.
fn look_at_mark(
    a: &mut CodeAssembler,
    marks_avma: u64,
    block: General,
    [index, base]: [General; 2],
) -> Result<(), IcedError> {
    a.mov(base.whole, marks_avma)?;
    a.mov(index.low, block.low)?;
    a.shr(index.low, 12)?;
    a.cmp(byte_ptr(base.whole + index.whole * 4), 0)
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

    use super::super::assembly::assembled;
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

    /// Address of the code before the way out.
    const OUT: u64 = 0x1000;

    /// Returns a plan's code, its address, and that of the way out.
    fn code(counted: &AllRegistersCountdown) -> (Vec<u8>, [u64; 2]) {
        let (mut bytes, [out_avma, code_avma]) = assembled(OUT, |a| {
            let (mut early, mut out, mut begin) = (a.create_label(), a.create_label(), a.create_label());
            a.set_label(&mut early)?;
            a.nop()?;
            counted.write_restoring(a)?;
            a.set_label(&mut out)?;
            a.ret()?;
            a.set_label(&mut begin)?;
            counted.write(a, early, out)?;
            Ok([out, begin])
        })
        .unwrap();
        (bytes.split_off((code_avma - OUT) as usize), [code_avma, out_avma])
    }

    fn decoded(counted: &AllRegistersCountdown) -> Vec<Instruction> {
        let (code, [code_avma, _]) = code(counted);
        Decoder::with_ip(64, &code, code_avma, DecoderOptions::NONE).into_iter().collect()
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
                let (bytes, [_, out_avma]) = super::tests::code(&counted);
                let (last, early) = code.split_last().unwrap();
                assert_eq!(last.near_branch_target(), out_avma);
                let early = early.iter().filter(|found| found.is_jcc_short_or_near());
                assert!(early.clone().all(|found| found.near_branch_target() == OUT));
                let mut written = Written::by(&bytes).registers;
                written.retain(|&register| register != Register::RSP);
                let all = FREE.map(|register| Register::from(register.whole));
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
            let (mut bytes, places) = code(&later);
            bytes[at..at + 8].copy_from_slice(&0x7000_1234_5678_u64.to_le_bytes());
            let known = counted(free, body, STATE);
            assert_eq!(((bytes, places), known.marks_offset()), (code(&known), None));
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
