//! Counting code of a sampled function of the C library. It subtracts a call's bytes from the
//! countdown and continues in the function itself, without the agent and without testing the
//! caller. Only when the countdown has run out does the call take the longer path.
//!
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

/// Largest alignment that all blocks have.
const ALIGNMENT: u8 = 16;

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

/// Code with unresolved jumps to its way out.
struct Code {
    bytes: Vec<u8>,
    /// Offsets behind each jump out.
    jumps: Vec<usize>,
}

impl Code {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a jump out; `condition` is the second byte of the long form.
    fn out_if(&mut self, condition: u8) {
        self.add(&[0x0f, condition, 0, 0, 0, 0]);
        self.jumps.push(self.bytes.len());
    }

    fn load_state(&mut self, countdown: Countdown) {
        // mov r11, fs:[slot]
        self.add(&[0x64, 0x4c, 0x8b, 0x1c, 0x25]);
        self.add(&countdown.slot_offset.to_le_bytes());
    }

    /// Adds the counting of `register`, whose number goes into the ModRM byte.
    fn count(&mut self, countdown: Countdown, register: u8) {
        // add r11, -1; jnc out; sbb [r11 + ...], register; js out
        self.add(&[0x49, 0x83, 0xc3, 0xff]);
        self.out_if(NOT_CARRY);
        self.add(&[0x49, 0x19, 0x83 | register << 3]);
        self.add(&countdown.left_offset.wrapping_add(1).to_le_bytes());
        self.out_if(NEGATIVE);
    }

    /// Adds the test of the page's mark; the address of the marks is written later.
    fn look_at_mark(&mut self) {
        // mov rcx, marks; mov eax, edi; shr eax, 12; cmp byte [rcx + rax * 4], 0; jne out
        self.add(&[0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, 0x89, 0xf8, 0xc1, 0xe8, 0x0c]);
        self.add(&[0x80, 0x3c, 0x81, 0x00]);
        self.out_if(NOT_EQUAL);
    }
}

const NOT_CARRY: u8 = 0x83;
const NEGATIVE: u8 = 0x88;
const NOT_EQUAL: u8 = 0x85;
const EQUAL: u8 = 0x84;
const NOT_ABOVE: u8 = 0x86;
const OVERFLOWS: u8 = 0x80;
const RAX: u8 = 0;
const RDX: u8 = 2;
const RSI: u8 = 6;
const RDI: u8 = 7;

/// Offset of the marks' address in the code. The first instruction holds it, if the code tests a
/// block's page.
pub(crate) const MARKS_OFFSET: u64 = 2;

impl Counted {
    pub(crate) fn looks_at_marks(self) -> bool {
        matches!(self, Self::Resized | Self::Freed)
    }

    /// Machine code; `out` is the distance from its start to the way out. The first instruction is
    /// longer than a jump. The jump can thus be written over it and removed while threads are
    /// stopped anywhere.
    pub(crate) fn code(self, countdown: Countdown, out: i32) -> Vec<u8> {
        let mut code = Code { bytes: Vec::new(), jumps: Vec::new() };
        match self {
            Self::First => {
                code.load_state(countdown);
                code.count(countdown, RDI);
            }
            Self::Third => {
                code.load_state(countdown);
                code.count(countdown, RDX);
            }
            Self::Aligned => {
                code.load_state(countdown);
                // cmp rdi, alignment; jbe out
                code.add(&[0x48, 0x83, 0xff, ALIGNMENT]);
                code.out_if(NOT_ABOVE);
                code.count(countdown, RSI);
            }
            Self::Product => {
                code.load_state(countdown);
                // mov rax, rdi; mul rsi; jo out
                code.add(&[0x48, 0x89, 0xf8, 0x48, 0xf7, 0xe6]);
                code.out_if(OVERFLOWS);
                code.count(countdown, RAX);
            }
            Self::Resized => {
                code.look_at_mark();
                // test rdi, rdi; je out
                code.add(&[0x48, 0x85, 0xff]);
                code.out_if(EQUAL);
                code.load_state(countdown);
                code.count(countdown, RSI);
            }
            Self::Freed => code.look_at_mark(),
        }
        let Code { mut bytes, jumps } = code;
        for behind in jumps {
            let distance = out.wrapping_sub(behind as i32);
            bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

    use super::*;

    const NAMES: [&str; 7] =
        ["malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"];

    fn code_of(name: &str) -> Vec<Instruction> {
        let countdown = Countdown { slot_offset: 0x318, left_offset: 64 };
        let code = Counted::of(name).unwrap().code(countdown, -0x40);
        Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE).into_iter().collect()
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
            assert!(branches.clone().all(|found| found.near_branch_target() == 0x1000 - 0x40), "{name}");
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
