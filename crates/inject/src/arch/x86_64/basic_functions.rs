//! Functions that the agent normally calls in a C library, for programs without a shared one. A
//! statically linked program contains only what it uses itself, and possibly without names.
//!
//! ```text
//! functions | struct dl_phdr_info of the program, which `dl_iterate_phdr` reports
//! ```

use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, CodeLabel, al, byte_ptr, eax, esi, r8, rax, rcx, rdi, rdx, rsi};

use super::assembly::{NOT_ASSEMBLED, assembled};
use super::{BASIC_NAMES, INFO_BYTES, PlacedCode, ProgramHeaders, program_info};

/// Size in bytes of the code and data from [`basic_functions`].
pub(crate) const BASIC_BYTES: usize = 160;

/// Returns the code and data to be placed at `start_avma`, in executable memory.
///
/// # Errors
/// Returns a reason if the assembler refuses the code.
pub(crate) fn basic_functions(start_avma: u64, program: ProgramHeaders) -> Result<PlacedCode, &'static str> {
    // The structure's location follows from the code's size, which does not depend on it.
    let (code, _) = assembled(start_avma, |a| write(a, start_avma))?;
    let info_avma = (start_avma + code.len() as u64).next_multiple_of(8);
    let (mut bytes, avmas) = assembled(start_avma, |a| write(a, info_avma))?;
    if bytes.len() != code.len() {
        return Err(NOT_ASSEMBLED);
    }
    bytes.resize((info_avma - start_avma) as usize, 0);
    bytes.extend(program_info(program, info_avma));
    debug_assert!(bytes.len() <= BASIC_BYTES);
    Ok((bytes, BASIC_NAMES.map(str::to_owned).into_iter().zip(avmas).collect()))
}

/// Writes the functions; returns their labels.
fn write(a: &mut CodeAssembler, info_avma: u64) -> Result<[CodeLabel; BASIC_NAMES.len()], IcedError> {
    let mut labels = [(); BASIC_NAMES.len()].map(|()| a.create_label());
    let [memcpy, memset, strlen, bcmp, iterate] = &mut labels;
    a.set_label(memcpy)?;
    a.mov(rax, rdi)?;
    a.mov(rcx, rdx)?;
    a.rep().movsb()?;
    a.ret()?;

    a.set_label(memset)?;
    a.mov(r8, rdi)?;
    a.mov(eax, esi)?;
    a.mov(rcx, rdx)?;
    a.rep().stosb()?;
    a.mov(rax, r8)?;
    a.ret()?;

    let (mut next, mut end) = (a.create_label(), a.create_label());
    a.set_label(strlen)?;
    a.xor(eax, eax)?;
    a.set_label(&mut next)?;
    a.cmp(byte_ptr(rdi + rax), 0)?;
    a.je(end)?;
    a.inc(rax)?;
    a.jmp(next)?;
    a.set_label(&mut end)?;
    a.ret()?;

    a.set_label(bcmp)?;
    a.mov(rcx, rdx)?;
    a.xor(eax, eax)?;
    a.repe().cmpsb()?;
    a.setne(al)?;
    a.ret()?;

    a.set_label(iterate)?;
    a.mov(rax, rdi)?;
    a.mov(rdx, rsi)?;
    a.mov(rdi, info_avma)?;
    a.mov(esi, INFO_BYTES as i32)?;
    a.jmp(rax)?;
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};

    /// Each function ends where the next begins, and the last reports the structure.
    #[test]
    fn the_functions_are_what_their_comments_say() {
        let program = ProgramHeaders { bias: 0x5000, headers_avma: 0x5040, count: 9 };
        let (bytes, names) = basic_functions(0x1000, program).unwrap();
        assert!(bytes.len() <= BASIC_BYTES);
        let ends = names.iter().skip(1).map(|&(_, avma)| avma);
        let ends = ends.chain([0x1000 + (bytes.len() - INFO_BYTES) as u64]);
        for ((name, avma), end) in names.iter().zip(ends) {
            let (at, end) = ((avma - 0x1000) as usize, (end - 0x1000) as usize);
            let mut decoder = Decoder::with_ip(64, &bytes[at..end], *avma, DecoderOptions::NONE);
            let mut instructions: Vec<_> = decoder.iter().collect();
            // Zeros up to the structure.
            while bytes[(instructions.last().unwrap().ip() - 0x1000) as usize] == 0 {
                instructions.pop();
            }
            assert!(instructions.iter().all(|instruction| !instruction.is_invalid()), "{name}");
            let last = instructions.last().unwrap();
            assert!(
                matches!(last.flow_control(), FlowControl::Return | FlowControl::IndirectBranch),
                "{name}: {last:?}"
            );
            let info = instructions.iter().find(|found| found.op1_kind() == OpKind::Immediate64);
            assert_eq!(info.is_some(), name == "dl_iterate_phdr");
            if let Some(info) = info {
                let at = (info.immediate64() - 0x1000) as usize;
                assert_eq!(bytes[at..at + 8], 0x5000_u64.to_le_bytes());
                assert_eq!(bytes.len(), at + INFO_BYTES);
            }
        }
    }
}
