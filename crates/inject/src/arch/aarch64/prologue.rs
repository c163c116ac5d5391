//! First instruction of a function, planned to run at another address, so that a branch can replace
//! it. It is one aligned word, which changes in one store: no thread can be in the middle of it.
//!
//! ```text
//! function:  [bti, paciasp]  b hook        trampoline area:  [paciasp] the replaced instruction
//!            rest                                            b rest
//! ```

use super::assembly::{B, NOP, branch_between, distance_bits, ldr};

/// Size in bytes of the branch that replaces a function's first instruction (`b`).
pub(crate) const JUMP_BYTES: usize = 4;
/// Code of such a branch, or the bytes that it replaces.
pub(crate) type JumpBytes = [u8; JUMP_BYTES];

/// Target of a `b` at an address; `None` for another instruction.
pub(super) fn target_of(avma: u64, instruction: u32) -> Option<u64> {
    let words = i64::from((instruction << 6).cast_signed() >> 6);
    (instruction >> 26 == B >> 26).then(|| avma.wrapping_add_signed(4 * words))
}

const PACIASP: u32 = 0xd503_233f;
const AUTIASP: u32 = 0xd503_23bf;
const PACIBSP: u32 = 0xd503_237f;
const AUTIBSP: u32 = 0xd503_23ff;

/// Instructions that sign the return address with their own address as well, and the one that lets
/// `paciasp` do so: `pacm`, `paciasppc`, `pacibsppc`, `pacnbiasppc`, `pacnbibsppc`.
const SIGNING_AT_AN_ADDRESS: [u32; 5] = [0xd503_24ff, 0xdac1_a3fe, 0xdac1_a7fe, 0xdac1_83fe, 0xdac1_87fe];

const NOT_MOVED: &str = "it begins with an instruction that cannot be moved";

/// Instruction that signs the return address, with the one that takes the signature away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signing {
    signs: u32,
    strips: u32,
}

impl Signing {
    fn of(instruction: u32) -> Option<Self> {
        match instruction {
            PACIASP => Some(Self { signs: PACIASP, strips: AUTIASP }),
            PACIBSP => Some(Self { signs: PACIBSP, strips: AUTIBSP }),
            _ => None,
        }
    }
}

/// Beginning of a function.
#[derive(Debug, Clone)]
pub(crate) struct Prologue {
    pub(crate) function_avma: u64,
    /// Address of the jump.
    pub(crate) entry_avma: u64,
    /// Address of the first byte behind the instruction that is replaced.
    pub(crate) rest_avma: u64,
    instruction: u32,
    /// Signing of the return address before the jump, which stays at the target of indirect calls.
    signing: Option<Signing>,
}

/// True for a target of indirect calls: `bti c`, `bti jc`, and the instructions that sign.
fn is_landing_pad(instruction: u32) -> bool {
    const BTI_C: u32 = 0xd503_245f;
    const BTI_JC: u32 = 0xd503_24df;
    matches!(instruction, BTI_C | BTI_JC) || Signing::of(instruction).is_some()
}

fn word_at(code: &[u8], offset: usize) -> Option<u32> {
    code.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Address behind a landing pad, which must stay at the target of indirect calls.
pub(crate) fn entry_of(function_avma: u64, code: &[u8]) -> u64 {
    function_avma + if word_at(code, 0).is_some_and(is_landing_pad) { 4 } else { 0 }
}

impl Prologue {
    /// Plans for a function whose whole body is `code`, as far as known.
    pub(crate) fn plan(function_avma: u64, code: &[u8], _behind: &[u8]) -> Result<Self, &'static str> {
        let entry_avma = entry_of(function_avma, code);
        let at = (entry_avma - function_avma) as usize;
        let instruction = word_at(code, at).ok_or("it is shorter than a jump")?;
        let signing = word_at(code, 0).filter(|_| at != 0).and_then(Signing::of);
        let prologue = Self {
            function_avma,
            entry_avma,
            rest_avma: entry_avma + JUMP_BYTES as u64,
            instruction,
            signing,
        };
        // The room for it is planned before its address is known.
        prologue.moved(entry_avma).map(|_| prologue)
    }

    /// Plans like [`Self::plan`]: a call as the first instruction is refused in any function.
    pub(crate) fn plan_calling(function_avma: u64, code: &[u8], behind: &[u8]) -> Result<Self, &'static str> {
        Self::plan(function_avma, code, behind)
    }

    /// True if the overwritten instructions have a call.
    pub(crate) fn calls(&self) -> bool {
        false
    }

    /// True if an address lies within the overwritten instructions, behind the first one: never.
    pub(crate) fn is_inside(&self, _address_avma: u64) -> bool {
        false
    }

    /// Instruction before the agent's entry, which makes the return address a plain one.
    pub(super) fn strips(&self) -> Option<u32> {
        self.signing.map(|signing| signing.strips)
    }

    /// The replaced instruction for `moved_avma` (aligned to 8), and the branch back.
    pub(super) fn moved(&self, moved_avma: u64) -> Result<Vec<u8>, &'static str> {
        let mut words: Vec<u32> = self.signing.map(|signing| signing.signs).into_iter().collect();
        let here_avma = |words: &[u32]| moved_avma + 4 * words.len() as u64;
        let instruction = self.instruction;
        let from_avma = self.entry_avma;
        match Moving::of(instruction, from_avma)? {
            Moving::Closed => {
                words.push(instruction);
                return Ok(bytes_of(&words));
            }
            Moving::Goes { to_avma } => {
                words.push(branch_between(here_avma(&words), to_avma)?);
                return Ok(bytes_of(&words));
            }
            Moving::Plain => words.push(instruction),
            Moving::Address { register, value } => words.extend(loads(register, value, words.len(), None)),
            Moving::Loads { register, avma } => {
                words.extend(loads(register, avma, words.len(), Some(ldr(register, register, 0))));
            }
            Moving::Tests { short, to_avma } => {
                // The test skips the branch back.
                words.push(short);
                words.push(branch_between(here_avma(&words), self.rest_avma)?);
                words.push(branch_between(here_avma(&words), to_avma)?);
                return Ok(bytes_of(&words));
            }
        }
        words.push(branch_between(here_avma(&words), self.rest_avma)?);
        Ok(bytes_of(&words))
    }
}

/// Method of moving an instruction.
enum Moving {
    /// Instruction that does the same at any address.
    Plain,
    /// Instruction that does the same at any address; control does not come behind it.
    Closed,
    /// Instruction that only branches.
    Goes { to_avma: u64 },
    /// Instruction that computes an address (`adr`, `adrp`).
    Address { register: u32, value: u64 },
    /// Instruction that loads a register from an address (`ldr`, literal).
    Loads { register: u32, avma: u64 },
    /// Instruction that branches if something holds; `short` is it with a distance of two
    /// instructions.
    Tests { short: u32, to_avma: u64 },
}

impl Moving {
    fn of(instruction: u32, avma: u64) -> Result<Self, &'static str> {
        let register = instruction & 0x1f;
        let signed = |value: u32, bits: u32| i64::from((value << (32 - bits)).cast_signed() >> (32 - bits));
        let distance19 = 4 * signed(instruction >> 5 & 0x7_ffff, 19);
        let page_or_byte = signed((instruction >> 5 & 0x7_ffff) << 2 | instruction >> 29 & 3, 21);
        if let Some(to_avma) = target_of(avma, instruction) {
            return Ok(Self::Goes { to_avma });
        }
        Ok(match instruction >> 24 {
            // adr; adrp
            0x10 | 0x30 | 0x50 | 0x70 => {
                Self::Address { register, value: avma.wrapping_add_signed(page_or_byte) }
            }
            0x90 | 0xb0 | 0xd0 | 0xf0 => {
                Self::Address { register, value: (avma & !0xfff).wrapping_add_signed(page_or_byte << 12) }
            }
            // ldr x, literal; the other literals' registers cannot hold the address.
            0x58 if register < 31 => Self::Loads { register, avma: avma.wrapping_add_signed(distance19) },
            0x18 | 0x58 | 0x98 | 0xd8 | 0x1c | 0x5c | 0x9c => return Err(NOT_MOVED),
            // b.cond, cbz, cbnz
            0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Self::Tests {
                short: instruction & !(0x7_ffff << 5) | distance_bits(8, 19)? << 5,
                to_avma: avma.wrapping_add_signed(distance19),
            },
            // tbz, tbnz
            0x36 | 0x37 | 0xb6 | 0xb7 => Self::Tests {
                short: instruction & !(0x3fff << 5) | distance_bits(8, 14)? << 5,
                to_avma: avma.wrapping_add_signed(4 * signed(instruction >> 5 & 0x3fff, 14)),
            },
            // bl
            0x94..=0x97 => return Err("it begins with a call"),
            // br, ret; blr and the others
            0xd6 | 0xd7 => match instruction >> 21 & 0x7ff {
                0x6b0 | 0x6b2 => Self::Closed,
                0x6b1 => return Err("it begins with a call"),
                _ => return Err(NOT_MOVED),
            },
            _ if SIGNING_AT_AN_ADDRESS.contains(&instruction) => return Err(NOT_MOVED),
            // svc, brk, hlt
            0xd4 => return Err(NOT_MOVED),
            _ => Self::Plain,
        })
    }
}

/// Code that loads a number that follows it, behind `before` words: the instruction `then`, and a
/// jump over the number.
fn loads(register: u32, value: u64, before: usize, then: Option<u32>) -> Vec<u32> {
    let mut words = vec![0, B];
    words.splice(1..1, then);
    let skip = words.len() - 1;
    // The number is aligned to 8.
    if !(before + words.len()).is_multiple_of(2) {
        words.push(NOP);
    }
    let number = words.len();
    words[0] = 0x5800_0000 | (number as u32) << 5 | register;
    words[skip] = B | (number + 2 - skip) as u32;
    words.extend([value as u32, (value >> 32) as u32]);
    words
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// True if code at `code_avma` directly calls or branches to one of `functions`.
pub(crate) fn calls_one_of(code_avma: u64, code: &[u8], functions: &[u64]) -> bool {
    code.as_chunks::<4>().0.iter().zip((code_avma..).step_by(4)).any(|(bytes, avma)| {
        // bl as b
        let branch = u32::from_le_bytes(*bytes) & !(1 << 31);
        target_of(avma, branch).is_some_and(|target| functions.contains(&target))
    })
}

#[cfg(test)]
mod tests {
    use super::super::assembly::{RET, SVC, br};
    use super::*;

    const FUNCTION: u64 = 0x10_0000;

    fn plan(words: &[u32]) -> Result<Prologue, &'static str> {
        Prologue::plan(FUNCTION, &bytes_of(words), &[])
    }

    fn moved(words: &[u32]) -> Vec<u32> {
        let code = plan(words).unwrap().moved(FUNCTION + 0x1000).unwrap();
        code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn a_plain_instruction_is_followed_by_the_branch_back() {
        // stp x29, x30, [sp, -48]!
        assert_eq!(moved(&[0xa9bd_7bfd]), [0xa9bd_7bfd, 0x17ff_fc00]);
        // A return stays one.
        assert_eq!(moved(&[RET]), [RET]);
        assert_eq!(moved(&[br(16)]), [br(16)]);
    }

    #[test]
    fn landing_pads_stay() {
        for pad in [0xd503_245f, 0xd503_24df] {
            let prologue = plan(&[pad, 0xa9bd_7bfd]).unwrap();
            assert_eq!((prologue.entry_avma, prologue.rest_avma), (FUNCTION + 4, FUNCTION + 8));
            assert_eq!(prologue.strips(), None);
        }
        // The agent sees the plain return address, and the function itself its signed one.
        let prologue = plan(&[PACIASP, 0xa9bd_7bfd]).unwrap();
        assert_eq!((prologue.entry_avma, prologue.strips()), (FUNCTION + 4, Some(AUTIASP)));
        assert_eq!(moved(&[PACIASP, 0xa9bd_7bfd])[..2], [PACIASP, 0xa9bd_7bfd]);
        assert_eq!(plan(&[PACIBSP, 0xa9bd_7bfd]).unwrap().strips(), Some(AUTIBSP));
    }

    #[test]
    fn instructions_that_know_their_address_are_moved() {
        // adrp x3, +0x925000: the page is a number behind the code.
        assert_eq!(moved(&[0xb000_4923]), [0x5800_0043, 0x1400_0003, 0x00a2_5000, 0, 0x17ff_fbfd]);
        // ldr x1, +16
        assert_eq!(
            moved(&[0x5800_0081]),
            [0x5800_0081, 0xf940_0021, 0x1400_0004, NOP, 0x0010_0010, 0, 0x17ff_fbfb]
        );
        // cbz x0, +16; tbnz w0, 3, +16: to the rest, or where it led.
        assert_eq!(moved(&[0xb400_0080]), [0xb400_0040, 0x17ff_fc00, 0x17ff_fc02]);
        assert_eq!(moved(&[0x3718_0080]), [0x3718_0040, 0x17ff_fc00, 0x17ff_fc02]);
        // b +16
        assert_eq!(moved(&[0x1400_0004]), [0x17ff_fc04]);
        // bl, blr, svc, ldr q0, paciasppc: not moved.
        for refused in [0x9400_0004, 0xd63f_0260, SVC, 0x9c00_0080, 0xdac1_a3fe] {
            assert!(plan(&[refused]).is_err(), "{refused:#x}");
        }
        assert!(plan(&[]).is_err());
        assert!(plan(&[PACIASP]).is_err());
    }

    #[test]
    fn calls_are_found_by_their_targets() {
        let code = bytes_of(&[0xa9bd_7bfd, 0x9400_0010, 0x1400_0020]);
        assert!(calls_one_of(FUNCTION, &code, &[FUNCTION + 4 + 0x40]));
        assert!(calls_one_of(FUNCTION, &code, &[FUNCTION + 8 + 0x80]));
        assert!(!calls_one_of(FUNCTION, &code, &[FUNCTION]));
    }
}
