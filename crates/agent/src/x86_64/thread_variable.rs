//! Where a thread has a variable of its own, from the code of a function that does nothing but
//! answer it, in the three forms that compilers give it:
//!
//! ```text
//! of a program                    mov rax, fs:[n]; ret
//! of a library loaded at start    mov rax, [rip + n]; mov rax, fs:[rax]; ret
//! of any library                  push rbp; mov rbp, rsp; lea rdi, [rip + n]; call __tls_get_addr;
//!                                 pop rbp; mov rax, [rax + m]; ret
//! ```

/// Bytes of code that are looked at.
pub(crate) const CODE_BYTES: usize = 32;

/// `endbr64`, which may come first.
const BRANCH_TARGET: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const OF_PROGRAM: [u8; 5] = [0x64, 0x48, 0x8b, 0x04, 0x25];
const OFFSET_FROM: [u8; 3] = [0x48, 0x8b, 0x05];
const AT_OFFSET: [u8; 5] = [0x64, 0x48, 0x8b, 0x00, 0xc3];
const ENTERED: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
const INDEX_AT: [u8; 3] = [0x48, 0x8d, 0x3d];
const CALL: u8 = 0xe8;
const ANSWER: [u8; 4] = [0x5d, 0x48, 0x8b, 0x80];
const RETURN: u8 = 0xc3;
/// The C library's list of a thread's blocks of such variables, from the thread pointer: two words
/// each, by the modules' numbers.
const BLOCKS_AT: usize = 8;
const BLOCK_BYTES: usize = 16;

/// The address of the variable that the function answers whose code begins at `code_avma`.
/// `read`: what lies at an address, if it can be read.
pub(crate) fn address(
    code: &[u8; CODE_BYTES],
    code_avma: usize,
    thread_pointer: usize,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    let rest = code.strip_prefix(&BRANCH_TARGET).unwrap_or(code);
    let code_avma = code_avma.wrapping_add(code.len().wrapping_sub(rest.len()));
    if let Some(rest) = rest.strip_prefix(&OF_PROGRAM) {
        let (offset, rest) = number(rest)?;
        return (rest.first() == Some(&RETURN)).then(|| thread_pointer.wrapping_add(offset));
    }
    if let Some(rest) = rest.strip_prefix(&OFFSET_FROM) {
        let (place, rest) = number(rest)?;
        let place = code_avma.wrapping_add(7).wrapping_add(place);
        return rest.starts_with(&AT_OFFSET).then(|| Some(thread_pointer.wrapping_add(read(place)?)))?;
    }
    let rest = rest.strip_prefix(&ENTERED)?.strip_prefix(&INDEX_AT)?;
    let (place, rest) = number(rest)?;
    let index = code_avma.wrapping_add(11).wrapping_add(place);
    let (_, rest) = number(rest.strip_prefix(&[CALL])?)?;
    let (offset, rest) = number(rest.strip_prefix(&ANSWER)?)?;
    if rest.first() != Some(&RETURN) {
        return None;
    }
    let (module, first) = (read(index)?, read(index.wrapping_add(8))?);
    let blocks = read(thread_pointer.wrapping_add(BLOCKS_AT))?;
    let block = read(blocks.wrapping_add(module.checked_mul(BLOCK_BYTES)?))?;
    // The thread has none yet.
    let has_block = block != usize::MAX && block != 0;
    has_block.then(|| block.wrapping_add(first).wrapping_add(offset))
}

/// Four bytes, with a sign.
fn number(code: &[u8]) -> Option<(usize, &[u8])> {
    let (bytes, rest) = code.split_first_chunk::<4>()?;
    Some((i32::from_le_bytes(*bytes) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8], memory: &[(usize, usize)]) -> Option<usize> {
        let mut whole = [0xcc; CODE_BYTES];
        whole[..code.len()].copy_from_slice(code);
        address(&whole, 0x1000, 0x7000, &mut |at| {
            memory.iter().find(|&&(place, _)| place == at).map(|&(_, value)| value)
        })
    }

    /// As gcc writes it in CPython 3.15, program and library.
    #[test]
    fn each_form_leads_to_the_variable() {
        let program = [0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3];
        assert_eq!(of(&program, &[]), Some(0x6fd8));
        assert_eq!(of(&program[4..], &[]), Some(0x6fd8));
        let at_start = [0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x64, 0x48, 0x8b, 0x00, 0xc3];
        assert_eq!(of(&at_start, &[(0x1017, usize::MAX - 15)]), Some(0x6ff0));
        let library = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0x20, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x5d, 0x48, 0x8b,
            0x80, 0x28, 0, 0, 0, 0xc3,
        ];
        let memory = [(0x102b, 3), (0x1033, 0x100), (0x7008, 0x9000), (0x9030, 0x5000)];
        assert_eq!(of(&library, &memory), Some(0x5128));
        assert_eq!(of(&library, &memory[..3]), None);
        assert_eq!(of(&library, &[(0x102b, 3), (0x1033, 0), (0x7008, 0x9000), (0x9030, usize::MAX)]), None);
        for bytes in [&program[..13], &at_start[..11], &library[..24], &library[1..], &[]] {
            assert_eq!(of(bytes, &memory), None);
        }
    }
}
