//! Code in the record's page that a borrowed thread runs: calls of functions, and the closing of
//! descriptors that are on their way to the agent.
//!
//! ```text
//! CALL                  call r12; mov [r13], rax; ret
//! RETURN                ret
//! CLOSE                 for each of the three words: take it and leave -1, close what it was; ret
//! CALL_WITH_DESCRIPTOR  take the last word and leave -1; it goes to [rdi]; CALL
//! ```
//! `r13` is the scratch memory. A word is taken in one step: however often and whenever this runs,
//! each descriptor is closed, or handed on, once.

/// Where the parts begin.
pub(crate) const RETURN: u64 = 7;
pub(crate) const CLOSE: u64 = 8;
pub(crate) const CALL_WITH_DESCRIPTOR: u64 = 36;

/// The words, from the start of the scratch memory: the descriptor that was received, the pair of
/// sockets that it came through.
pub(crate) const RECEIVED_OFFSET: u64 = 176;
pub(crate) const PAIR_OFFSET: u64 = RECEIVED_OFFSET + 4;

/// Its bytes.
pub(crate) const CODE: [u8; 56] = [
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
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_begin_where_they_are_said_to() {
        assert_eq!(CODE[RETURN as usize], 0xc3);
        assert_eq!(CODE[CLOSE as usize..CLOSE as usize + 5], [0xbb, 3, 0, 0, 0]);
        // The jump goes back to behind the count, and the part ends before the next.
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
}
