//! Counting code of a sampled function of the C library. It subtracts a call's bytes from the
//! countdown and continues in the function itself, without the agent and without testing the
//! caller. Only when the countdown has run out does the call take the longer path.
//!
//! ```text
//! malloc:  mov r11, fs:[slot]; add r11, -1; jnc out      no state yet: then there is no carry
//!          sbb [r11 + 1 + countdown], rdi; js out        the size, and one more by the carry
//! free:    mov rcx, marks; mov eax, edi; shr eax, 12; cmp byte [rcx + rax * 4], 0; jne out
//! ```
//! The allocator's own calls are counted too. If the countdown runs out at one of them, the agent
//! draws a new distance, and takes no sample. The rest of an exponentially distributed distance has
//! the same distribution as the whole. The program's calls are thus sampled as if the others did
//! not exist.
//!
//! A function that *jumps* to another one would be counted twice, with the program's address as the
//! caller of both. The C library does that for a realloc without a block, and for an alignment that
//! all blocks have. These calls go to the agent, which makes the call itself.

use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, eax, edi, qword_ptr, r11, rax, rcx, rdi, rdx, rsi,
};

/// Largest alignment that all blocks have.
const ALIGNMENT: i32 = 16;

/// Quantity of a call that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// First argument.
    First,
    /// Second argument; the first is an alignment.
    Aligned,
    /// Third argument.
    Third,
    /// Product of the first two arguments.
    Product,
    /// Size of a resized block, whose page may be marked.
    Resized,
    /// A freed block, whose page may be marked.
    Freed,
}

impl Counted {
    /// Quantity that is counted for a function of the C library.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "malloc" => Self::First,
            "memalign" | "aligned_alloc" => Self::Aligned,
            "posix_memalign" => Self::Third,
            "calloc" => Self::Product,
            "realloc" => Self::Resized,
            "free" => Self::Freed,
            _ => return None,
        })
    }
}

/// Location of a thread's countdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Countdown {
    /// Offset from the thread pointer to the word with the address of the thread's state.
    pub(crate) slot_offset: i32,
    /// Offset of the countdown in the thread's state.
    pub(crate) left_offset: i32,
}

/// Offset of the marks' address in the code. The first instruction holds it, if the code tests a
/// block's page.
pub(crate) const MARKS_OFFSET: u64 = 2;

impl Counted {
    pub(crate) fn looks_at_marks(self) -> bool {
        matches!(self, Self::Resized | Self::Freed)
    }

    /// Writes the machine code; `out` is the way out. The first instruction is at least as long as
    /// a jump. The jump can thus be written over it and removed while threads are stopped anywhere.
    pub(crate) fn write(
        self,
        a: &mut CodeAssembler,
        countdown: Countdown,
        out: CodeLabel,
    ) -> Result<(), IcedError> {
        match self {
            Self::First => {
                load_state(a, countdown)?;
                count(a, countdown, rdi, out)
            }
            Self::Third => {
                load_state(a, countdown)?;
                count(a, countdown, rdx, out)
            }
            Self::Aligned => {
                load_state(a, countdown)?;
                a.cmp(rdi, ALIGNMENT)?;
                a.jbe(out)?;
                count(a, countdown, rsi, out)
            }
            Self::Product => {
                load_state(a, countdown)?;
                a.mov(rax, rdi)?;
                a.mul(rsi)?;
                a.jo(out)?;
                count(a, countdown, rax, out)
            }
            Self::Resized => {
                look_at_mark(a, out)?;
                a.test(rdi, rdi)?;
                a.je(out)?;
                load_state(a, countdown)?;
                count(a, countdown, rsi, out)
            }
            Self::Freed => look_at_mark(a, out),
        }
    }
}

fn load_state(a: &mut CodeAssembler, countdown: Countdown) -> Result<(), IcedError> {
    a.mov(r11, qword_ptr(countdown.slot_offset).fs())
}

/// Writes the counting of a register's value.
fn count(
    a: &mut CodeAssembler,
    countdown: Countdown,
    counted: AsmRegister64,
    out: CodeLabel,
) -> Result<(), IcedError> {
    a.add(r11, -1)?;
    a.jae(out)?;
    a.sbb(qword_ptr(r11 + countdown.left_offset.wrapping_add(1)), counted)?;
    a.js(out)
}

/// Writes the test of the page's mark; the address of the marks is written later.
fn look_at_mark(a: &mut CodeAssembler, out: CodeLabel) -> Result<(), IcedError> {
    a.mov(rcx, 0_u64)?;
    a.mov(eax, edi)?;
    a.shr(eax, 12)?;
    a.cmp(byte_ptr(rcx + rax * 4), 0)?;
    a.jne(out)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

    use super::super::assembly::assembled;
    use super::*;

    const NAMES: [&str; 7] =
        ["malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"];

    /// Address of the way out, an instruction of one byte.
    const OUT: u64 = 0x1000;

    fn code_of(name: &str) -> Vec<Instruction> {
        let countdown = Countdown { slot_offset: 0x318, left_offset: 64 };
        let (code, [out]) = assembled(OUT, |a| {
            let mut out = a.create_label();
            a.set_label(&mut out)?;
            a.ret()?;
            Counted::of(name).unwrap().write(a, countdown, out)?;
            Ok([out])
        })
        .unwrap();
        assert_eq!(out, OUT);
        Decoder::with_ip(64, &code[1..], OUT + 1, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn each_function_counts_its_own_word_and_writes_nothing_else() {
        for (name, register) in [
            ("malloc", Some(Register::RDI)),
            ("free", None),
            ("calloc", Some(Register::RAX)),
            ("realloc", Some(Register::RSI)),
            ("memalign", Some(Register::RSI)),
            ("aligned_alloc", Some(Register::RSI)),
            ("posix_memalign", Some(Register::RDX)),
        ] {
            let counts = |found: &&Instruction| found.mnemonic() == Mnemonic::Sbb;
            let code = code_of(name);
            let found: Vec<&Instruction> = code.iter().filter(counts).collect();
            assert_eq!(found.first().map(|found| found.op1_register()), register, "{name}");
            for found in found {
                let place = (found.memory_base(), found.memory_displacement64());
                assert_eq!(place, (Register::R11, 65), "{name}");
            }
        }
    }

    #[test]
    fn every_branch_leads_out_and_a_jump_fits_over_the_first_instruction() {
        for name in NAMES {
            let code = code_of(name);
            assert!(code.iter().all(|found| !found.is_invalid()), "{name}: {code:?}");
            assert!(code[0].len() >= 5, "{name}: {code:?}");
            let branches = code.iter().filter(|found| found.is_jcc_short_or_near());
            assert!(branches.clone().count() > 0, "{name}");
            assert!(branches.clone().all(|found| found.near_branch_target() == OUT), "{name}");
        }
        assert_eq!((code_of("malloc").len(), code_of("free").len()), (5, 5));
    }

    #[test]
    fn what_jumps_to_another_function_goes_to_the_agent() {
        let asked = |name: &str, mnemonic| {
            let code = code_of(name);
            code.windows(2).any(|two| two[0].mnemonic() == mnemonic && two[1].is_jcc_short_or_near())
        };
        // realloc without a block is malloc; so is memalign with an alignment that all blocks have.
        assert!(asked("realloc", Mnemonic::Test));
        assert!(asked("memalign", Mnemonic::Cmp) && asked("aligned_alloc", Mnemonic::Cmp));
        assert!(asked("calloc", Mnemonic::Mul));
    }
}
