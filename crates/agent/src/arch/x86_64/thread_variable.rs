//! Finds a thread-local variable from the code of a function that only returns it, or that reads it
//! before anything else. Compilers and linkers write such code in these forms:
//!
//! ```text
//! of a program                    mov rax, fs:[n]
//!                                 mov rax, fs:[0]; lea rax, [rax + n]; mov rax, [rax]
//! of a library loaded at start    mov rax, [rip + n]; mov rax, fs:[rax]
//!                                 mov rax, fs:[0]; add rax, [rip + n]; mov rax, [rax]
//! of any library                  lea rdi, [rip + n]; call __tls_get_addr; mov rax, [rax + m]
//! ```

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 32;

/// `endbr64`, which may come first.
const BRANCH_TARGET: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const OF_PROGRAM: [u8; 5] = [0x64, 0x48, 0x8b, 0x04, 0x25];
const OFFSET_FROM: [u8; 3] = [0x48, 0x8b, 0x05];
const AT_OFFSET: [u8; 4] = [0x64, 0x48, 0x8b, 0x00];
const ENTERED: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
const INDEX_AT: [u8; 3] = [0x48, 0x8d, 0x3d];
const CALL: u8 = 0xe8;
const ANSWER: [u8; 4] = [0x5d, 0x48, 0x8b, 0x80];
const RETURN: u8 = 0xc3;
/// Possible first instruction of a function with a frame of its own.
const FRAME: [u8; 4] = [0x48, 0x83, 0xec, 0x08];
/// First of the instructions that have the same length in all forms, as linkers exchange them.
const ADDED: [u8; 3] = [0x48, 0x8d, 0x80];
const ADDED_FROM: [u8; 3] = [0x48, 0x03, 0x05];
const LONG_INDEX_AT: [u8; 4] = [0x66, 0x48, 0x8d, 0x3d];
const LONG_CALL: [u8; 4] = [0x66, 0x66, 0x48, 0xe8];
const READ: [u8; 3] = [0x48, 0x8b, 0x00];
/// Offset, from the thread pointer, of the C library's list of a thread's blocks of such variables:
/// two words each, by the modules' numbers.
const BLOCKS_AT: usize = 8;
const BLOCK_BYTES: usize = 16;

/// Returns the address of the variable that the function at `code_avma` returns. `read` returns the
/// word at an address, if it is readable.
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
        let is_answer = rest.strip_prefix(&AT_OFFSET)?.first() == Some(&RETURN);
        return is_answer.then(|| Some(thread_pointer.wrapping_add(read(place)?)))?;
    }
    let rest = rest.strip_prefix(&ENTERED)?.strip_prefix(&INDEX_AT)?;
    let (place, rest) = number(rest)?;
    let index = code_avma.wrapping_add(11).wrapping_add(place);
    let (_, rest) = number(rest.strip_prefix(&[CALL])?)?;
    let (offset, rest) = number(rest.strip_prefix(&ANSWER)?)?;
    if rest.first() != Some(&RETURN) {
        return None;
    }
    Some(of_module(index, thread_pointer, read)?.wrapping_add(offset))
}

/// Returns the address of the variable that a function reads first; for the parameters see
/// [`address`].
pub(crate) fn address_read_first(
    code: &[u8; CODE_BYTES],
    code_avma: usize,
    thread_pointer: usize,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    let rest = code.strip_prefix(&BRANCH_TARGET).unwrap_or(code);
    let rest = [FRAME, ENTERED].iter().find_map(|begin| rest.strip_prefix(begin)).unwrap_or(rest);
    // Address of the code that is still to be parsed.
    let avma_of = |rest: &[u8]| code_avma.wrapping_add(code.len().wrapping_sub(rest.len()));
    if let Some(rest) = rest.strip_prefix(&OF_PROGRAM) {
        let (offset, rest) = number(rest)?;
        if offset != 0 {
            return Some(thread_pointer.wrapping_add(offset));
        }
        if let Some(rest) = rest.strip_prefix(&ADDED) {
            let (offset, rest) = number(rest)?;
            return rest.starts_with(&READ).then(|| thread_pointer.wrapping_add(offset));
        }
        let (place, rest) = number(rest.strip_prefix(&ADDED_FROM)?)?;
        let place = avma_of(rest).wrapping_add(place);
        return rest.starts_with(&READ).then(|| Some(thread_pointer.wrapping_add(read(place)?)))?;
    }
    if let Some(rest) = rest.strip_prefix(&OFFSET_FROM) {
        let (place, rest) = number(rest)?;
        let place = avma_of(rest).wrapping_add(place);
        return rest.starts_with(&AT_OFFSET).then(|| Some(thread_pointer.wrapping_add(read(place)?)))?;
    }
    let (place, rest) = number(rest.strip_prefix(&LONG_INDEX_AT)?)?;
    let index = avma_of(rest).wrapping_add(place);
    let (_, rest) = number(rest.strip_prefix(&LONG_CALL)?)?;
    rest.starts_with(&READ).then(|| of_module(index, thread_pointer, read))?
}

/// Returns the address of the calling thread's variable that two words identify: its module's
/// number, and its offset in the module's block.
fn of_module(
    index: usize,
    thread_pointer: usize,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    let (module, first) = (read(index)?, read(index.wrapping_add(8))?);
    let blocks = read(thread_pointer.wrapping_add(BLOCKS_AT))?;
    let block = read(blocks.wrapping_add(module.checked_mul(BLOCK_BYTES)?))?;
    // The thread has no block yet.
    let has_block = block != usize::MAX && block != 0;
    has_block.then(|| block.wrapping_add(first))
}

/// Reads four bytes as a signed number.
fn number(code: &[u8]) -> Option<(usize, &[u8])> {
    let (bytes, rest) = code.split_first_chunk::<4>()?;
    Some((i32::from_le_bytes(*bytes) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Form = fn(&[u8; CODE_BYTES], usize, usize, &mut dyn FnMut(usize) -> Option<usize>) -> Option<usize>;

    fn of_form(form: Form, code: &[u8], memory: &[(usize, usize)]) -> Option<usize> {
        let mut whole = [0xcc; CODE_BYTES];
        whole[..code.len()].copy_from_slice(code);
        form(&whole, 0x1000, 0x7000, &mut |at| {
            memory.iter().find(|&&(place, _)| place == at).map(|&(_, value)| value)
        })
    }

    fn of(code: &[u8], memory: &[(usize, usize)]) -> Option<usize> {
        of_form(address, code, memory)
    }

    /// Code as gcc writes it in CPython 3.15, for a program and a library.
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

    fn of_reader(code: &[u8], memory: &[(usize, usize)]) -> Option<usize> {
        of_form(address_read_first, code, memory)
    }

    /// Code as gcc and ld write it in Ruby 3.3 and later: a library, and a linker's relaxations.
    #[test]
    fn a_function_that_reads_the_variable_first_leads_to_it() {
        let library = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x66, 0x48, 0x8d, 0x3d, 0x48, 0x82, 0x37, 0,
            0x66, 0x66, 0x48, 0xe8, 0x7b, 0x7e, 0xf5, 0xff, 0x48, 0x8b, 0x00, 0x48, 0x8b, 0x40, 0x78,
        ];
        let memory = [(0x37_9258, 3), (0x37_9260, 8), (0x7008, 0x9000), (0x9030, 0x5000)];
        assert_eq!(of_reader(&library, &memory), Some(0x5008));
        assert_eq!(of_reader(&library, &memory[..2]), None);
        let program = [0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x40, 0x78, 0xc3];
        assert_eq!(of_reader(&program, &[]), Some(0x6ff8));
        let of_thread = [0x48, 0x83, 0xec, 0x08, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
        let added = [&of_thread[..], &[0x48, 0x8d, 0x80, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0]].concat();
        assert_eq!(of_reader(&added, &[]), Some(0x6ff8));
        let added_from = [&of_thread[..], &[0x48, 0x03, 0x05, 0x10, 0, 0, 0, 0x48, 0x8b, 0]].concat();
        assert_eq!(of_reader(&added_from, &[(0x1024, usize::MAX - 15)]), Some(0x6ff0));
        let at_start = [0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x64, 0x48, 0x8b, 0x00, 0x48, 0x8b];
        assert_eq!(of_reader(&at_start, &[(0x1017, usize::MAX - 15)]), Some(0x6ff0));
        for bytes in [&library[..24], &added[..20], &added_from[..20], &at_start[..10], &of_thread[..], &[]] {
            assert_eq!(of_reader(bytes, &memory), None);
        }
    }
}
