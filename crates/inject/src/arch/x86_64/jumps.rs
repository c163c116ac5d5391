//! Targets of a function's jumps. A function that *jumps* to another one leaves no trace on the
//! stack, so that a call counted in both would be counted twice.

use std::collections::HashSet;

use heapr_proc::page_bytes;

use iced_x86::{Decoder, DecoderOptions, FlowControl};

use crate::memory::TargetMemory;

/// Largest number of instructions that are followed.
const INSTRUCTIONS_MAX: usize = 20_000;
/// Size in bytes of the pieces that are read at once.
const PIECE_BYTES: usize = 1024;
/// Size in bytes of the longest instruction.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// True if a function of `bytes` bytes may jump, directly or through others, to an address for
/// which `is_other` is true. Also true if that is uncertain.
pub(crate) fn may_jump_to(
    memory: &impl TargetMemory,
    function_avma: u64,
    bytes: u64,
    is_other: &dyn Fn(u64) -> bool,
) -> bool {
    let own = function_avma..function_avma.wrapping_add(bytes);
    let mut todo = vec![function_avma];
    let mut seen = HashSet::new();
    while let Some(start_avma) = todo.pop() {
        if seen.contains(&start_avma) {
            continue;
        }
        if !own.contains(&start_avma) && is_other(start_avma) {
            return true;
        }
        let to_page_end = (page_bytes() - start_avma % page_bytes()) as usize;
        let code = memory
            .read_vec(start_avma, PIECE_BYTES)
            .or_else(|_| memory.read_vec(start_avma, to_page_end.min(PIECE_BYTES)));
        let Ok(code) = code else { return true };
        let mut decoder = Decoder::with_ip(64, &code, start_avma, DecoderOptions::NONE);
        loop {
            let at_avma = decoder.ip();
            // The code behind a function's last call is another function.
            let is_behind = at_avma == own.end && start_avma != at_avma;
            if is_behind || seen.contains(&at_avma) {
                break;
            }
            if code.len() - decoder.position() < INSTRUCTION_BYTES_MAX && at_avma != start_avma {
                todo.push(at_avma);
                break;
            }
            seen.insert(at_avma);
            if seen.len() > INSTRUCTIONS_MAX {
                return true;
            }
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return true;
            }
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {}
                FlowControl::ConditionalBranch => todo.push(instruction.near_branch_target()),
                FlowControl::UnconditionalBranch => {
                    todo.push(instruction.near_branch_target());
                    break;
                }
                FlowControl::Return | FlowControl::Exception | FlowControl::Interrupt => break,
                FlowControl::IndirectBranch | FlowControl::XbeginXabortXend => return true,
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use heapr_proc::Mapping;

    use super::*;
    use crate::memory::Unreachable;

    /// Code at 0x1000.
    struct Bytes(Vec<u8>);

    impl TargetMemory for Bytes {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> Result<(), Unreachable> {
            let at = address_avma.wrapping_sub(0x1000) as usize;
            let found = self.0.get(at..at.saturating_add(into.len()));
            into.copy_from_slice(found.ok_or(Unreachable { address_avma, bytes: into.len() })?);
            Ok(())
        }

        fn mappings(&self) -> std::io::Result<Vec<Mapping>> {
            Ok(Vec::new())
        }
    }

    fn may_jump(code: &[(usize, &[u8])], bytes: u64, others: &[u64]) -> bool {
        let mut all = vec![0xcc; 4096];
        for &(at, code) in code {
            all[at..at + code.len()].copy_from_slice(code);
        }
        may_jump_to(&Bytes(all), 0x1000, bytes, &|avma| others.contains(&avma))
    }

    #[test]
    fn a_jump_is_followed_through_others_and_a_call_is_not() {
        // test rdi, rdi; je +0x40; ret
        let begin: &[u8] = &[0x48, 0x85, 0xff, 0x74, 0x3b, 0xc3];
        // jmp +0x40
        let on: &[u8] = &[0xe9, 0x3b, 0, 0, 0];
        let code = [(0, begin), (0x40, on), (0x80, &[0xc3][..])];
        assert!(may_jump(&code, 6, &[0x1080]));
        assert!(may_jump(&code, 6, &[0x1040]));
        assert!(!may_jump(&code, 6, &[0x1100]));
        // call +0x40; ret
        assert!(!may_jump(&[(0, &[0xe8, 0x3b, 0, 0, 0, 0xc3])], 6, &[0x1040]));
    }

    #[test]
    fn what_cannot_be_told_may_be() {
        // jmp rax; jmp [rip]; bytes that are no instruction; out of what is mapped
        assert!(may_jump(&[(0, &[0xff, 0xe0])], 2, &[]));
        assert!(may_jump(&[(0, &[0xff, 0x25, 0, 0, 0, 0])], 6, &[]));
        assert!(may_jump(&[(0, &[0x06])], 1, &[]));
        assert!(may_jump(&[(0, &[0xe9, 0, 0, 0, 0x10])], 5, &[]));
    }

    #[test]
    fn what_follows_a_last_call_is_another_function() {
        // call abort (no return); the next function: jmp rax
        assert!(!may_jump(&[(0, &[0xe8, 0x3b, 0, 0, 0]), (5, &[0xff, 0xe0])], 5, &[]));
        // A loop ends.
        assert!(!may_jump(&[(0, &[0xeb, 0xfe])], 2, &[]));
    }
}
