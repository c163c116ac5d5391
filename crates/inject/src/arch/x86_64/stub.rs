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

use super::Registers;

/// Offset of the part RETURN; the following constants are those of the other parts.
pub(crate) const RETURN: u64 = 7;
pub(crate) const CLOSE: u64 = 8;
pub(crate) const CALL_WITH_DESCRIPTOR: u64 = 36;
pub(crate) const TAKE_AWAY: u64 = 56;

/// Offset in the scratch memory of the mark that the removal has begun.
pub(crate) const BEGUN_OFFSET: u64 = 8;

/// Offset in the scratch memory of the received descriptor. The pair of sockets that it came
/// through follows.
pub(crate) const RECEIVED_OFFSET: u64 = 176;
pub(crate) const PAIR_OFFSET: u64 = RECEIVED_OFFSET + 4;

/// Arguments of TAKE_AWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Address of the injection record.
    pub(crate) record_avma: u64,
    pub(crate) scratch_avma: u64,
    /// Function that deletes `key`; 0: there is no key.
    pub(crate) key_delete_avma: u64,
    pub(crate) key: u64,
    /// Ranges to be unmapped: address and number of the pairs of start and size in bytes.
    pub(crate) pairs_avma: u64,
    pub(crate) pair_count: u64,
}

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

    /// Sets the arguments of TAKE_AWAY.
    pub(crate) fn set_removal(&mut self, removal: &Removal) {
        self.rbx = removal.record_avma;
        (self.r12, self.rdi) = (removal.key_delete_avma, removal.key);
        self.r13 = removal.scratch_avma;
        (self.r14, self.r15) = (removal.pairs_avma, removal.pair_count);
    }
}

/// Machine code of all parts.
pub(crate) const CODE: [u8; 122] = [
    0x41, 0xff, 0xd4, // call r12
    0x49, 0x89, 0x45, 0x00, // mov [r13], rax
    0xc3, // ret
    0xbb, 3, 0, 0, 0, // mov ebx, 3
    0x83, 0xcf, 0xff, // or edi, -1
    0x41, 0x87, 0xbc, 0x9d, 0xac, 0, 0, 0, // xchg [r13 + rbx * 4 + 172], edi
    0xb8, 3, 0, 0, 0, // mov eax, 3
    0x0f, 0x05, // syscall
    0xff, 0xcb, // dec ebx
    0x75, 0xea, // jnz: the next word
    0xc3, // ret
    0x83, 0xc8, 0xff, // or eax, -1
    0x41, 0x87, 0x85, 0xb0, 0, 0, 0, // xchg [r13 + 176], eax
    0x89, 0x07, // mov [rdi], eax
    0x41, 0xff, 0xd4, // call r12
    0x49, 0x89, 0x45, 0x00, // mov [r13], rax
    0xc3, // ret
    0x41, 0xc7, 0x45, 0x08, 1, 0, 0, 0, // mov dword [r13 + 8], 1
    0x4d, 0x85, 0xe4, // test r12, r12
    0x74, 0x0b, // jz: no function
    0x48, 0x83, 0xec, 0x08, // sub rsp, 8: aligned for a call
    0x41, 0xff, 0xd4, // call r12
    0x48, 0x83, 0xc4, 0x08, // add rsp, 8
    0x4d, 0x85, 0xff, // test r15, r15
    0x74, 0x17, // jz: the end
    0x49, 0xff, 0xcf, // dec r15
    0x49, 0x8b, 0x3e, // mov rdi, [r14]
    0x49, 0x8b, 0x76, 0x08, // mov rsi, [r14 + 8]
    0x49, 0x83, 0xc6, 0x10, // add r14, 16
    0xb8, 11, 0, 0, 0, // mov eax, 11
    0x0f, 0x05, // syscall
    0xeb, 0xe4, // jmp: the next pair
    0x48, 0x8b, 0x7b, 0x10, // mov rdi, [rbx + 16]
    0x48, 0x8b, 0x73, 0x18, // mov rsi, [rbx + 24]
    0xb8, 11, 0, 0, 0,    // mov eax, 11
    0xc3, // ret
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_begin_where_they_are_said_to() {
        assert_eq!(CODE[RETURN as usize], 0xc3);
        assert_eq!(CODE[CLOSE as usize..CLOSE as usize + 5], [0xbb, 3, 0, 0, 0]);
        // The jump leads back to the first instruction of the loop, and the part ends before the
        // next one.
        let jump = CLOSE as usize + 25;
        assert_eq!(CODE[jump], 0x75);
        let target = (jump + 2).wrapping_add_signed(isize::from(CODE[jump + 1].cast_signed()));
        assert_eq!(target, CLOSE as usize + 5);
        assert_eq!(CODE[CALL_WITH_DESCRIPTOR as usize - 1], 0xc3);
        // The displacements: the last word, and the one before the first.
        let word = |at: usize| u32::from_le_bytes(CODE[at..at + 4].try_into().unwrap());
        assert_eq!(u64::from(word(CLOSE as usize + 12)), RECEIVED_OFFSET - 4);
        assert_eq!(u64::from(word(CALL_WITH_DESCRIPTOR as usize + 6)), RECEIVED_OFFSET);
    }

    #[test]
    fn taking_away_goes_round_and_comes_to_its_end() {
        let at = TAKE_AWAY as usize;
        assert_eq!(CODE[at - 1], 0xc3);
        assert_eq!(u64::from(CODE[at + 3]), BEGUN_OFFSET);
        let jump = |from: usize| (from + 2).wrapping_add_signed(isize::from(CODE[from + 1].cast_signed()));
        let (no_function, next, end) = (at + 11, at + 24, at + 52);
        assert_eq!(jump(no_function), next);
        assert_eq!((CODE[next + 3], jump(next + 3)), (0x74, end));
        assert_eq!((CODE[end - 2], jump(end - 2)), (0xeb, next));
        assert_eq!(CODE.last(), Some(&0xc3));
    }
}
