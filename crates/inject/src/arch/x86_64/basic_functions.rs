//! Functions that the agent normally calls in a C library, for programs without a shared one. A
//! statically linked program contains only what it uses itself, and possibly without names.
//!
//! ```text
//! functions | struct dl_phdr_info of the program, which `dl_iterate_phdr` reports
//! ```

/// Names of the functions, with their machine code.
const FUNCTIONS: [(&str, &[u8]); 5] = [
    // mov rax, rdi; mov rcx, rdx; rep movsb; ret
    ("memcpy", &[0x48, 0x89, 0xf8, 0x48, 0x89, 0xd1, 0xf3, 0xa4, 0xc3]),
    // mov r8, rdi; mov eax, esi; mov rcx, rdx; rep stosb; mov rax, r8; ret
    ("memset", &[0x49, 0x89, 0xf8, 0x89, 0xf0, 0x48, 0x89, 0xd1, 0xf3, 0xaa, 0x4c, 0x89, 0xc0, 0xc3]),
    // xor eax, eax; 1: cmp byte [rdi + rax], 0; je 2; inc rax; jmp 1; 2: ret
    ("strlen", &[0x31, 0xc0, 0x80, 0x3c, 0x07, 0x00, 0x74, 0x05, 0x48, 0xff, 0xc0, 0xeb, 0xf5, 0xc3]),
    // mov rcx, rdx; xor eax, eax; repe cmpsb; setne al; ret
    ("bcmp", &[0x48, 0x89, 0xd1, 0x31, 0xc0, 0xf3, 0xa6, 0x0f, 0x95, 0xc0, 0xc3]),
    // mov rax, rdi; mov rdx, rsi; lea rdi, [rip + INFO]; mov esi, 64; jmp rax
    (
        ITERATE,
        &[0x48, 0x89, 0xf8, 0x48, 0x89, 0xf2, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0xbe, 64, 0, 0, 0, 0xff, 0xe0],
    ),
];

const ITERATE: &str = "dl_iterate_phdr";
/// Offset in that function of the distance to the structure, counted from the end of its
/// instruction.
const DISTANCE_AT: usize = 9;
const INFO_BYTES: usize = 64;

/// Size in bytes of the code and data from [`basic_functions`].
pub(crate) const BASIC_BYTES: usize = 160;

/// Headers of a program without a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramHeaders {
    pub(crate) bias: u64,
    pub(crate) headers_avma: u64,
    pub(crate) count: u64,
}

/// Code and data to be placed at `start_avma`, in executable memory, and the addresses of the
/// functions in it.
pub(crate) fn basic_functions(start_avma: u64, program: ProgramHeaders) -> (Vec<u8>, Vec<(String, u64)>) {
    let mut bytes = Vec::with_capacity(BASIC_BYTES);
    let mut names = Vec::new();
    let mut distance_at = 0;
    for (name, code) in FUNCTIONS {
        if name == ITERATE {
            distance_at = bytes.len() + DISTANCE_AT;
        }
        names.push((name.to_owned(), start_avma + bytes.len() as u64));
        bytes.extend_from_slice(code);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let distance = (bytes.len() - distance_at - 4) as u32;
    bytes[distance_at..distance_at + 4].copy_from_slice(&distance.to_le_bytes());
    // The program's name is empty: the last word is 0. One module was loaded, no module unloaded.
    let name_avma = start_avma + (bytes.len() + INFO_BYTES - 8) as u64;
    for word in [program.bias, name_avma, program.headers_avma, program.count, 1, 0, 0, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    debug_assert!(bytes.len() <= BASIC_BYTES);
    (bytes, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    /// Each function ends where the next begins, and the last reports the structure.
    #[test]
    fn the_functions_are_what_their_comments_say() {
        let program = ProgramHeaders { bias: 0x5000, headers_avma: 0x5040, count: 9 };
        let (bytes, names) = basic_functions(0x1000, program);
        assert_eq!(names.len(), FUNCTIONS.len());
        for ((_, code), (name, avma)) in FUNCTIONS.iter().zip(&names) {
            let at = (avma - 0x1000) as usize;
            let mut decoder = Decoder::with_ip(64, &bytes[at..at + code.len()], *avma, DecoderOptions::NONE);
            let instructions: Vec<_> = decoder.iter().collect();
            assert!(instructions.iter().all(|instruction| !instruction.is_invalid()), "{name}");
            let last = instructions.last().unwrap();
            assert!(
                matches!(last.flow_control(), FlowControl::Return | FlowControl::IndirectBranch),
                "{name}: {last:?}"
            );
            let info = instructions.iter().find(|instruction| instruction.is_ip_rel_memory_operand());
            if let Some(info) = info {
                let at = (info.ip_rel_memory_address() - 0x1000) as usize;
                assert_eq!(bytes[at..at + 8], 0x5000_u64.to_le_bytes());
                assert_eq!(bytes.len(), at + INFO_BYTES);
            }
        }
    }
}
