//! The agent's own versions of the functions that compilers call for copying, filling and comparing
//! memory.
//!
//! The C library's versions use any registers of the processor. In a detour of an allocator's
//! function the registers of AVX and AVX-512 belong to the program
//! ([`crate::arch::all_registers_entry`] saves only those of SSE). Also, a program may define its
//! own `memcpy`.
//!
//! The symbols are hidden, so that no other module is bound to them.

use core::arch::global_asm;

global_asm!(
    ".text",
    ".macro heapr_function name",
    ".balign 16",
    ".hidden heapr_\\name",
    ".globl heapr_\\name",
    ".type heapr_\\name, @function",
    "heapr_\\name:",
    ".endm",
    // Forwards. Of up to 32 bytes all are read before the first is written; of more, the first and
    // the last 16.
    "heapr_function memcpy",
    ".cfi_startproc",
    "mov rax, rdi",
    "cmp rdx, 16",
    "jb 3f",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + rdx - 16]",
    "cmp rdx, 32",
    "jbe 2f",
    // The last 16 bytes are written separately.
    "lea rcx, [rdi + rdx - 16]",
    "lea r8, [rdi + rdx - 64]",
    "cmp rdx, 64",
    "jb 1f",
    "8:",
    "movups xmm0, [rsi]",
    "movups xmm2, [rsi + 16]",
    "movups xmm3, [rsi + 32]",
    "movups xmm4, [rsi + 48]",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm2",
    "movups [rdi + 32], xmm3",
    "movups [rdi + 48], xmm4",
    "add rsi, 64",
    "add rdi, 64",
    "cmp rdi, r8",
    "jbe 8b",
    "cmp rdi, rcx",
    "jae 9f",
    "1:",
    "movups xmm0, [rsi]",
    "movups [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "cmp rdi, rcx",
    "jb 1b",
    "9:",
    "movups [rcx], xmm1",
    "ret",
    "2:",
    "movups [rdi], xmm0",
    "movups [rdi + rdx - 16], xmm1",
    "ret",
    "3:",
    "cmp rdx, 8",
    "jb 4f",
    "mov rcx, [rsi]",
    "mov rsi, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], rsi",
    "ret",
    "4:",
    "cmp rdx, 4",
    "jb 5f",
    "mov ecx, [rsi]",
    "mov esi, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], esi",
    "ret",
    "5:",
    "test rdx, rdx",
    "jz 6f",
    "movzx ecx, byte ptr [rsi]",
    "cmp rdx, 1",
    "je 7f",
    "movzx r8d, word ptr [rsi + rdx - 2]",
    "mov [rdi + rdx - 2], r8w",
    "7:",
    "mov [rdi], cl",
    "6:",
    "ret",
    ".cfi_endproc",
    ".size heapr_memcpy, . - heapr_memcpy",
    // Backwards, if the target begins within the source.
    "heapr_function memmove",
    ".cfi_startproc",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jae heapr_memcpy",
    "cmp rdx, 32",
    "jbe heapr_memcpy",
    "mov rax, rdi",
    "movups xmm1, [rsi]",
    "1:",
    "movups xmm0, [rsi + rdx - 16]",
    "movups [rdi + rdx - 16], xmm0",
    "sub rdx, 16",
    "cmp rdx, 16",
    "ja 1b",
    "movups [rdi], xmm1",
    "ret",
    ".cfi_endproc",
    ".size heapr_memmove, . - heapr_memmove",
    "heapr_function memset",
    ".cfi_startproc",
    "mov r8, rdi",
    "movzx eax, sil",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".cfi_endproc",
    ".size heapr_memset, . - heapr_memset",
    "heapr_function bcmp",
    ".cfi_startproc",
    "jmp heapr_memcmp",
    ".cfi_endproc",
    ".size heapr_bcmp, . - heapr_bcmp",
    "heapr_function memcmp",
    ".cfi_startproc",
    // Eight bytes at a time while they are equal.
    "1:",
    "cmp rdx, 8",
    "jb 2f",
    "mov rax, [rdi]",
    "mov rcx, [rsi]",
    "cmp rax, rcx",
    "jne 4f",
    "add rdi, 8",
    "add rsi, 8",
    "sub rdx, 8",
    "jmp 1b",
    "2:",
    "test rdx, rdx",
    "jz 3f",
    "movzx eax, byte ptr [rdi]",
    "movzx ecx, byte ptr [rsi]",
    "inc rdi",
    "inc rsi",
    "dec rdx",
    "sub eax, ecx",
    "jz 2b",
    "ret",
    "3:",
    "xor eax, eax",
    "ret",
    "4:",
    // The first byte is the most significant one of the number.
    "bswap rax",
    "bswap rcx",
    "cmp rax, rcx",
    "sbb eax, eax",
    "or eax, 1",
    "ret",
    ".cfi_endproc",
    ".size heapr_memcmp, . - heapr_memcmp",
    "heapr_function strlen",
    ".cfi_startproc",
    "xor eax, eax",
    "1:",
    "cmp byte ptr [rdi + rax], 0",
    "je 2f",
    "inc rax",
    "jmp 1b",
    "2:",
    "ret",
    ".cfi_endproc",
    ".size heapr_strlen, . - heapr_strlen",
    ".purgem heapr_function",
);

#[cfg(all(feature = "cdylib", not(test)))]
global_asm!(
    ".irp name, memcpy, memmove, memset, memcmp, bcmp, strlen",
    ".hidden \\name",
    ".globl \\name",
    ".set \\name, heapr_\\name",
    ".endr",
);

#[cfg(test)]
mod tests {
    use core::ffi::c_int;

    unsafe extern "C" {
        fn heapr_memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn heapr_memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn heapr_memset(to: *mut u8, byte: c_int, bytes: usize) -> *mut u8;
        fn heapr_memcmp(one: *const u8, other: *const u8, bytes: usize) -> c_int;
        fn heapr_bcmp(one: *const u8, other: *const u8, bytes: usize) -> c_int;
        fn heapr_strlen(text: *const u8) -> usize;
    }

    const ROOM: usize = 400;

    /// Returns bytes of which no two neighbours are equal.
    fn numbered() -> Vec<u8> {
        (0..ROOM).map(|number| (number * 7 + number / 256) as u8).collect()
    }

    #[test]
    fn copies_and_moves_are_those_of_slices_at_every_length_and_distance() {
        for bytes in (0..130).chain([200, 255, 256]) {
            for (from, to) in
                [(0, 0), (0, 1), (1, 0), (3, 19), (19, 3), (0, 16), (40, 8), (8, 40), (0, 140), (140, 1)]
            {
                let (source, mut copied, mut moved, mut expected) =
                    (numbered(), vec![0xee; ROOM], numbered(), numbered());
                // SAFETY: both ranges lie in ROOM bytes.
                unsafe {
                    let answer = heapr_memcpy(copied.as_mut_ptr().add(to), source.as_ptr().add(from), bytes);
                    assert_eq!(answer, copied.as_mut_ptr().add(to));
                    let start = moved.as_mut_ptr();
                    assert_eq!(heapr_memmove(start.add(to), start.add(from), bytes), start.add(to));
                }
                expected.copy_within(from..from + bytes, to);
                assert_eq!(moved, expected, "{bytes} bytes from {from} to {to}");
                assert_eq!(copied[to..to + bytes], source[from..from + bytes]);
                assert!(copied[..to].iter().chain(&copied[to + bytes..]).all(|&byte| byte == 0xee));
            }
        }
    }

    #[test]
    fn fills_comparisons_and_lengths_are_those_of_slices() {
        for bytes in 0..100 {
            let mut filled = vec![1; ROOM];
            // SAFETY: the range lies in ROOM bytes.
            unsafe { heapr_memset(filled.as_mut_ptr().add(5), 0x1a5, bytes) };
            assert!(
                filled
                    .iter()
                    .enumerate()
                    .all(|(at, &byte)| { byte == if (5..5 + bytes).contains(&at) { 0xa5 } else { 1 } })
            );
            let one = numbered();
            for different in 0..=bytes {
                for change in [1_u8, 0x80] {
                    let mut other = one.clone();
                    other[different] ^= change;
                    // SAFETY: as above.
                    let (order, is_different) = unsafe {
                        (
                            heapr_memcmp(one.as_ptr(), other.as_ptr(), bytes),
                            heapr_bcmp(one.as_ptr(), other.as_ptr(), bytes),
                        )
                    };
                    assert_eq!(order.cmp(&0), one[..bytes].cmp(&other[..bytes]));
                    assert_eq!(is_different != 0, different < bytes);
                }
            }
            let mut text = vec![b'x'; bytes];
            text.push(0);
            // SAFETY: the text ends with a zero.
            assert_eq!(unsafe { heapr_strlen(text.as_ptr()) }, bytes);
        }
    }
}
