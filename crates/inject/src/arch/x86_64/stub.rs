//! Code in the record's page that a borrowed thread runs. It calls functions, closes descriptors on
//! their way to the agent, and removes the agent.
//!
//! ```text
//! CALL                  call r12; mov [r13], rax; ret
//! RETURN                ret
//! CLOSE                 for each of the three words: exchange it with -1, close the old value; ret
//! CALL_WITH_DESCRIPTOR  exchange the last word with -1, store the old value in [rdi]; CALL
//! TAKE_AWAY             mark it begun; call r12 unless it is 0; unmap the r15 pairs at r14;
//!                       ret to a system call that unmaps the mapping of the record at rbx
//! ```
//! `r13` is the address of the scratch memory. A word is exchanged in one step: however often and
//! whenever this code runs, each descriptor is closed, or handed on, once.
//!
//! The removal is one piece of code so that it is done once, and completely. As separate calls it
//! could stop in the middle if the injector were killed. A successor would not know which ranges,
//! and whether the key, belong to the program again.

use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, CodeLabel, dword_ptr, eax, ebx, edi, qword_ptr, r12, r13, r14, r15, rax, rbx, rdi, rsi,
    rsp,
};

use super::assembly::{NOT_ASSEMBLED, assembled};
use super::{BEGUN_OFFSET, RECEIVED_OFFSET, Registers, Removal};

/// Offset of the part RETURN; the following constants are those of the other parts.
pub(crate) const RETURN: u64 = 7;
pub(crate) const CLOSE: u64 = 8;
pub(crate) const CALL_WITH_DESCRIPTOR: u64 = 36;
pub(crate) const TAKE_AWAY: u64 = 58;

/// Number of words below the return frame that lead to CLOSE.
pub(crate) const TIDYING_WORDS: usize = 2;
/// Number of words below the return frame that lead to a last system call.
pub(crate) const LAST_CALL_WORDS: usize = 1;

impl Registers {
    /// Sets the arguments of CALL: the function, the address for its result, and its own arguments.
    pub(crate) fn set_function_call(&mut self, function_avma: u64, result_avma: u64, arguments: [u64; 3]) {
        self.r12 = function_avma;
        self.r13 = result_avma;
        self.rbp = 0;
        self.rax = 0;
        [self.rdi, self.rsi, self.rdx] = arguments;
    }

    /// Sets the argument of CLOSE: the address of the scratch memory.
    pub(crate) fn set_scratch(&mut self, scratch_avma: u64) {
        self.r13 = scratch_avma;
    }

    /// Sets the address of the system call that TAKE_AWAY ends with: the word at the stack pointer
    /// says so on this processor.
    pub(crate) fn set_last_call(&mut self, _system_call_avma: u64) {}

    /// Sets the arguments of TAKE_AWAY.
    pub(crate) fn set_removal(&mut self, removal: &Removal) {
        self.rbx = removal.record_avma;
        (self.r12, self.rdi) = (removal.key_delete_avma, removal.key);
        self.r13 = removal.scratch_avma;
        (self.r14, self.r15) = (removal.pairs_avma, removal.pair_count);
    }
}

/// Largest size in bytes of the machine code.
pub(crate) const CODE_BYTES_MAX: usize = 128;

/// Machine code of all parts. It does not depend on its address.
///
/// # Errors
/// Returns a reason if the assembler refuses the code.
pub(crate) fn code() -> Result<Vec<u8>, &'static str> {
    let (code, parts) = assembled(0, write)?;
    let is_as_said = parts == [RETURN, CLOSE, CALL_WITH_DESCRIPTOR, TAKE_AWAY];
    if is_as_said && code.len() <= CODE_BYTES_MAX { Ok(code) } else { Err(NOT_ASSEMBLED) }
}

/// Writes all parts; returns the labels of those behind CALL.
fn write(a: &mut CodeAssembler) -> Result<[CodeLabel; 4], IcedError> {
    let mut labels = [(); 4].map(|()| a.create_label());
    let [returning, close, call_with_descriptor, take_away] = &mut labels;
    write_call(a, Some(returning))?;
    a.set_label(close)?;
    write_close(a)?;
    a.set_label(call_with_descriptor)?;
    a.mov(eax, -1)?;
    a.xchg(dword_ptr(r13 + RECEIVED_OFFSET as i32), eax)?;
    a.mov(dword_ptr(rdi), eax)?;
    write_call(a, None)?;
    a.set_label(take_away)?;
    write_take_away(a)?;
    Ok(labels)
}

fn write_call(a: &mut CodeAssembler, returning: Option<&mut CodeLabel>) -> Result<(), IcedError> {
    a.call(r12)?;
    a.mov(qword_ptr(r13), rax)?;
    if let Some(returning) = returning {
        a.set_label(returning)?;
    }
    a.ret()
}

fn write_close(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut next = a.create_label();
    // Numbers of the words: 3 to 1.
    a.mov(ebx, 3)?;
    a.set_label(&mut next)?;
    a.or(edi, -1)?;
    a.xchg(dword_ptr(r13 + rbx * 4 + (RECEIVED_OFFSET as i32 - 4)), edi)?;
    a.mov(eax, libc::SYS_close as i32)?;
    a.syscall()?;
    a.dec(ebx)?;
    a.jne(next)?;
    a.ret()
}

fn write_take_away(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let (mut next, mut end) = (a.create_label(), a.create_label());
    a.mov(dword_ptr(r13 + BEGUN_OFFSET as i32), 1)?;
    a.test(r12, r12)?;
    a.je(next)?;
    // Aligned for a call.
    a.sub(rsp, 8)?;
    a.call(r12)?;
    a.add(rsp, 8)?;
    a.set_label(&mut next)?;
    a.test(r15, r15)?;
    a.je(end)?;
    a.dec(r15)?;
    a.mov(rdi, qword_ptr(r14))?;
    a.mov(rsi, qword_ptr(r14 + 8))?;
    a.add(r14, 16)?;
    a.mov(eax, libc::SYS_munmap as i32)?;
    a.syscall()?;
    a.jmp(next)?;
    a.set_label(&mut end)?;
    a.mov(rdi, qword_ptr(rbx + 16))?;
    a.mov(rsi, qword_ptr(rbx + 24))?;
    a.mov(eax, libc::SYS_munmap as i32)?;
    a.ret()
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

    use super::*;

    fn instructions(part: u64) -> Vec<Instruction> {
        let code = code().unwrap();
        Decoder::with_ip(64, &code[part as usize..], part, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn its_parts_begin_where_they_are_said_to() {
        assert_eq!(instructions(RETURN)[0].mnemonic(), Mnemonic::Ret);
        let close = instructions(CLOSE);
        // The jump leads back to the first instruction of the loop, and the part ends before the
        // next one.
        assert_eq!((close[6].mnemonic(), close[6].near_branch_target()), (Mnemonic::Jne, close[1].ip()));
        assert_eq!((close[7].mnemonic(), close[7].next_ip()), (Mnemonic::Ret, CALL_WITH_DESCRIPTOR));
        // The displacements: the last word, and the one before the first.
        assert_eq!(close[2].memory_displacement64(), RECEIVED_OFFSET - 4);
        let call = instructions(CALL_WITH_DESCRIPTOR);
        assert_eq!(call[1].memory_displacement64(), RECEIVED_OFFSET);
        assert_eq!((call[5].mnemonic(), call[5].next_ip()), (Mnemonic::Ret, TAKE_AWAY));
    }

    #[test]
    fn taking_away_goes_round_and_comes_to_its_end() {
        let code = instructions(TAKE_AWAY);
        assert!(code.iter().all(|found| !found.is_invalid()));
        assert_eq!(code[0].memory_displacement64(), BEGUN_OFFSET);
        let jumps: Vec<&Instruction> = code.iter().filter(|found| found.near_branch_target() != 0).collect();
        let [no_function, no_pair, again] = jumps[..] else { panic!("{jumps:?}") };
        let next = code.iter().filter(|found| found.mnemonic() == Mnemonic::Test).nth(1).unwrap();
        let end = code.iter().find(|found| found.ip() == again.next_ip()).unwrap();
        assert_eq!((no_function.mnemonic(), no_function.near_branch_target()), (Mnemonic::Je, next.ip()));
        assert_eq!((no_pair.mnemonic(), no_pair.near_branch_target()), (Mnemonic::Je, end.ip()));
        assert_eq!((again.mnemonic(), again.near_branch_target()), (Mnemonic::Jmp, next.ip()));
        assert_eq!((end.mnemonic(), end.memory_displacement64()), (Mnemonic::Mov, 16));
        assert_eq!(code.last().unwrap().mnemonic(), Mnemonic::Ret);
    }
}
