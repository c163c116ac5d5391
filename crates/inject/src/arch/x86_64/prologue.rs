//! First instructions of a function, planned to run at another address, so that a jump can replace
//! them.
//!
//! ```text
//! function:  [endbr64]  jmp hook            trampoline area:  the overwritten instructions
//!            rest                                             jmp rest
//! ```

use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, Mnemonic,
};

/// Size in bytes of the jump that replaces a function's first instructions (`jmp rel32`).
pub(crate) const JUMP_BYTES: usize = 5;
/// Code of such a jump, or the bytes that it replaces.
pub(crate) type JumpBytes = [u8; JUMP_BYTES];
/// Alignment of functions in bytes; compilers fill the space between them.
const FUNCTION_ALIGNMENT: u64 = 16;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Code of `ret`.
const RETURN: [u8; 1] = [0xc3];

/// Beginning of a function.
#[derive(Debug, Clone)]
pub(crate) struct Prologue {
    pub(crate) function_avma: u64,
    /// Address of the jump.
    pub(crate) entry_avma: u64,
    /// Address of the first byte behind the instructions that are overwritten, fully or in part.
    pub(crate) rest_avma: u64,
    instructions: Vec<Instruction>,
    /// Whether the last instruction never falls through.
    is_closed: bool,
    /// Whether the last instruction is a call that is changed to return to the rest.
    returns_to_rest: bool,
}

/// Address behind an `endbr64`, which must stay at the target of indirect calls.
pub(crate) fn entry_of(function_avma: u64, code: &[u8]) -> u64 {
    if code.starts_with(&ENDBR64) { function_avma + 4 } else { function_avma }
}

impl Prologue {
    /// Plans for a function whose whole body is `code`, as far as known (at least 32 bytes),
    /// followed by `behind`.
    pub(crate) fn plan(function_avma: u64, code: &[u8], behind: &[u8]) -> Result<Self, &'static str> {
        Self::plan_with(function_avma, code, behind, false)
    }

    /// Plans like [`Self::plan`], for a function that may begin with calls. Its callees return to
    /// the trampoline area, which no unwind tables cover. Stacks are not unwound meanwhile, because
    /// an allocator's nested calls are not recorded.
    pub(crate) fn plan_calling(function_avma: u64, code: &[u8], behind: &[u8]) -> Result<Self, &'static str> {
        Self::plan_with(function_avma, code, behind, true)
    }

    fn plan_with(
        function_avma: u64,
        code: &[u8],
        behind: &[u8],
        may_call: bool,
    ) -> Result<Self, &'static str> {
        let entry_avma = entry_of(function_avma, code);
        let end_avma = function_avma + code.len() as u64;
        let body = code.get((entry_avma - function_avma) as usize..).unwrap_or_default();
        if body == RETURN && is_room_behind(end_avma, behind, entry_avma, is_plain_padding) {
            return Ok(Self::of_return(function_avma, entry_avma));
        }
        let mut decoder = Decoder::with_ip(64, body, entry_avma, DecoderOptions::NONE);
        let mut instructions = Vec::new();
        let mut is_closed = false;
        let mut returns_to_rest = false;
        let mut rest_avma = entry_avma;
        while rest_avma < entry_avma + JUMP_BYTES as u64 {
            if is_closed && rest_avma == end_avma && has_padding(end_avma, behind, entry_avma) {
                rest_avma = entry_avma + JUMP_BYTES as u64;
                break;
            }
            if is_closed || !decoder.can_decode() {
                return Err("it is shorter than a jump");
            }
            let instruction = decoder.decode();
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::ConditionalBranch => {}
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return => {
                    is_closed = true;
                }
                FlowControl::Exception | FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
                    return Err("it begins with an instruction that cannot be moved");
                }
                FlowControl::Call if may_call => {}
                // The callee returns behind the overwritten bytes, as without a hook.
                FlowControl::Call if instruction.next_ip() >= entry_avma + JUMP_BYTES as u64 => {
                    returns_to_rest = true;
                }
                // A call in the moved part would return to the jump.
                _ => return Err("it begins with a call"),
            }
            if instruction.is_invalid() || instruction.mnemonic() == Mnemonic::Syscall {
                return Err("it begins with an instruction that cannot be moved");
            }
            rest_avma = instruction.next_ip();
            instructions.push(instruction);
        }
        // No instruction may jump back into the overwritten bytes.
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let is_branch = matches!(
                instruction.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call
            );
            let target = instruction.near_branch_target();
            if is_branch && target > entry_avma && target < rest_avma {
                return Err("it jumps back to its own beginning");
            }
        }
        Ok(Self { function_avma, entry_avma, rest_avma, instructions, is_closed, returns_to_rest })
    }

    /// Plan for a function that only returns.
    fn of_return(function_avma: u64, entry_avma: u64) -> Self {
        Self {
            function_avma,
            entry_avma,
            rest_avma: entry_avma + JUMP_BYTES as u64,
            instructions: vec![Instruction::with(Code::Retnq)],
            is_closed: true,
            returns_to_rest: false,
        }
    }

    /// Moved instructions for `island_avma`, and the jump back.
    pub(crate) fn moved(&self, island_avma: u64) -> Result<Vec<u8>, &'static str> {
        let (call, plain) = match self.instructions.split_last() {
            Some((call, plain)) if self.returns_to_rest => (Some(call), plain),
            _ => (None, self.instructions.as_slice()),
        };
        let mut code = Vec::new();
        if matches!(plain, [only] if only.code() == Code::Retnq) {
            code.extend(RETURN);
        } else if !plain.is_empty() {
            let block = InstructionBlock::new(plain, island_avma);
            let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE)
                .map_err(|_| "its first instructions cannot be moved that far")?;
            code = encoded.code_buffer;
        }
        if let Some(call) = call {
            code.extend(pushes(self.rest_avma));
            let jump_avma = island_avma + code.len() as u64;
            let target_avma = call.near_branch_target();
            code.extend(jump(jump_avma, target_avma).ok_or("the island is too far away")?);
        } else if !self.is_closed {
            let jump_avma = island_avma + code.len() as u64;
            code.extend(jump(jump_avma, self.rest_avma).ok_or("the island is too far away")?);
        }
        Ok(code)
    }

    /// True if the function begins with a call, whose callee returns to the trampoline area.
    pub(crate) fn calls(&self) -> bool {
        let is_call = |found: &Instruction| {
            matches!(found.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        };
        self.instructions.iter().any(is_call)
    }

    /// True if a thread at `address_avma` is inside the overwritten bytes.
    pub(crate) fn is_inside(&self, address_avma: u64) -> bool {
        address_avma > self.entry_avma && address_avma < self.rest_avma
    }
}

/// Code that pushes an address, leaving registers and flags unchanged.
fn pushes(avma: u64) -> [u8; 13] {
    let [a, b, c, d, e, f, g, h] = avma.to_le_bytes();
    // push (four bytes, extended); mov dword [rsp + 4]
    [0x68, a, b, c, d, 0xc7, 0x44, 0x24, 0x04, e, f, g, h]
}

/// True if code at `code_avma` directly calls or jumps to one of `functions`.
pub(crate) fn calls_one_of(code_avma: u64, code: &[u8], functions: &[u64]) -> bool {
    let mut decoder = Decoder::with_ip(64, code, code_avma, DecoderOptions::NONE);
    decoder.iter().any(|found| {
        matches!(found.flow_control(), FlowControl::Call | FlowControl::UnconditionalBranch)
            && functions.contains(&found.near_branch_target())
    })
}

/// True if a function that is shorter than a jump has only padding behind it.
fn has_padding(end_avma: u64, behind: &[u8], entry_avma: u64) -> bool {
    is_room_behind(end_avma, behind, entry_avma, |padding| {
        let mut decoder = Decoder::with_ip(64, padding, end_avma, DecoderOptions::NONE);
        decoder.iter().all(|found| matches!(found.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
    })
}

/// True if a jump fits before the next possible start of a function, and the bytes up to it are
/// padding. Bytes beyond could be the next function's beginning, even if they look like padding.
fn is_room_behind(
    end_avma: u64,
    behind: &[u8],
    entry_avma: u64,
    is_padding: impl FnOnce(&[u8]) -> bool,
) -> bool {
    let next_avma = end_avma.next_multiple_of(FUNCTION_ALIGNMENT);
    let padding = behind.get(..(next_avma - end_avma) as usize);
    next_avma >= entry_avma + JUMP_BYTES as u64 && padding.is_some_and(is_padding)
}

/// True if bytes are the fillings of GNU's assembler and LLVM's: `nop`, `int3`, `nop` with an
/// operand. The decoder knows more, but building its tables takes longer than the rest of a start.
fn is_plain_padding(mut bytes: &[u8]) -> bool {
    while let [first, rest @ ..] = bytes {
        if matches!(first, 0x90 | 0xcc) {
            bytes = rest;
            continue;
        }
        // Layout: data16 prefixes, cs:, 0f 1f, ModRM, SIB, displacement.
        let prefixes = bytes.iter().take_while(|&&byte| byte == 0x66 || byte == 0x2e).count();
        let Some([0x0f, 0x1f, mode, ..]) = bytes.get(prefixes..) else { return false };
        let has_sib = usize::from(mode & 7 == 4);
        let operand_bytes = match mode >> 6 {
            0 if mode & 7 != 5 => has_sib,
            1 => has_sib + 1,
            2 => has_sib + 4,
            _ => return false,
        };
        match bytes.get(prefixes + 3 + operand_bytes..) {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    true
}

/// Code of `jmp rel32`, if the distance fits.
pub(crate) fn jump(from_avma: u64, to_avma: u64) -> Option<[u8; JUMP_BYTES]> {
    let distance = to_avma.wrapping_sub(from_avma + JUMP_BYTES as u64).cast_signed();
    let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_padding(code: &[u8]) -> Vec<u8> {
        let mut body = code.to_vec();
        body.resize(48, 0x90);
        body
    }

    #[test]
    fn a_data_access_relative_to_the_code_still_reaches_its_data() {
        // cmpb $0, 0x1000(%rip); push %r12
        let body = with_padding(&[0x80, 0x3d, 0x00, 0x10, 0, 0, 0, 0x41, 0x54]);
        let plan = Prologue::plan(0x10_0000, &body, &[]).unwrap();
        assert_eq!((plan.entry_avma, plan.rest_avma), (0x10_0000, 0x10_0007));
        let moved = plan.moved(0x20_0000).unwrap();
        let displacement = i32::from_le_bytes(moved[2..6].try_into().unwrap());
        assert_eq!(0x20_0007 + i64::from(displacement), 0x10_0007 + 0x1000);
        assert_eq!(moved[7..], jump(0x20_0007, 0x10_0007).unwrap());
    }

    #[test]
    fn the_landing_pad_of_an_indirect_call_stays() {
        let body = with_padding(&[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, 0x41, 0x55, 0x55]);
        let plan = Prologue::plan(0x1000, &body, &[]).unwrap();
        assert_eq!((plan.entry_avma, plan.rest_avma), (0x1004, 0x1009));
        assert!(plan.is_inside(0x1005) && !plan.is_inside(0x1004) && !plan.is_inside(0x1009));
    }

    #[test]
    fn what_cannot_be_moved_is_refused() {
        // A call; a return without a known end; a loop back to the second instruction.
        let plan = |code: &[u8]| Prologue::plan(0x1000, code, &[]);
        assert!(plan(&with_padding(&[0xff, 0xd0, 0x90, 0x90, 0x90])).is_err());
        assert!(plan(&with_padding(&[0x31, 0xc0, 0xc3])).is_err());
        assert!(plan(&with_padding(&[0x55, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfa])).is_err());
        assert!(plan(&[]).is_err());
    }

    #[test]
    fn what_a_last_call_calls_returns_to_the_rest() {
        // sub rsp, 8; call 0x2000
        let body = with_padding(&[0x48, 0x83, 0xec, 0x08, 0xe8, 0xf7, 0x0f, 0, 0]);
        let plan = Prologue::plan(0x7f00_8000_1000, &body, &[]).unwrap();
        assert_eq!(plan.rest_avma, 0x7f00_8000_1009);
        let moved = plan.moved(0x7f00_8000_5000).unwrap();
        assert_eq!(moved[..4], body[..4]);
        assert_eq!(moved[4..9], [0x68, 0x09, 0x10, 0x00, 0x80]);
        assert_eq!(moved[9..17], [0xc7, 0x44, 0x24, 0x04, 0x00, 0x7f, 0, 0]);
        assert_eq!(moved[17..], jump(0x7f00_8000_5011, 0x7f00_8000_2000).unwrap());
    }

    #[test]
    fn a_function_that_only_jumps_on_is_moved_without_a_jump_back() {
        let body = with_padding(&jump(0x1000, 0x9000).unwrap());
        let moved = Prologue::plan(0x1000, &body, &[]).unwrap().moved(0x5000).unwrap();
        assert_eq!(moved, jump(0x5000, 0x9000).unwrap());
    }

    #[test]
    fn a_short_function_gives_its_padding() {
        // A jump of two bytes; an immediate return behind a landing pad.
        let moved = Prologue::plan(0x1000, &[0xeb, 0x7e], &[0x90; 14]).unwrap().moved(0x5000).unwrap();
        assert_eq!(moved, jump(0x5000, 0x1080).unwrap());
        let returns = Prologue::plan(0x1000, &[0xf3, 0x0f, 0x1e, 0xfa, 0xc3], &[0x90; 11]).unwrap();
        assert_eq!((returns.rest_avma, returns.moved(0x5000).unwrap()), (0x1009, vec![0xc3]));
        // As in the debugger hook of glibc's loader.
        let filled = [0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
        let returns = Prologue::plan(0x2060, &[0xc3], &filled).unwrap();
        assert_eq!((returns.rest_avma, returns.moved(0x5000).unwrap()), (0x2065, vec![0xc3]));
        assert!(is_plain_padding(&filled) && !is_plain_padding(&filled[..14]));
        assert!(!is_plain_padding(&[0x90, 0x55]));
        // The next function begins at once, or has a beginning that looks like padding, or the
        // padding ends too soon.
        let mut next = [0x90; 14];
        next[5] = 0x55;
        assert!(Prologue::plan(0x1000, &[0xeb, 0x7e], &next).is_err());
        assert!(Prologue::plan(0x1000, &[0xeb, 0x7e], &[0x90; 3]).is_err());
        assert!(Prologue::plan(0x100c, &[0xeb, 0x7e], &[0x90; 16]).is_err());
    }
}
