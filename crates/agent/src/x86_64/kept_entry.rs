//! Saving all registers around a call whose caller may keep something in each of them: see
//! [`crate::hooks::kept`].
//!
//! ```text
//! return address                     from the program
//! caller's rbp     <- rbp            pushed by the island, as is the next: a frame as with frame pointers
//! the function's Kept
//! flags, rax, rcx, rdx, rsi, rdi, r8 to r11
//! (aligned)
//! xmm0 to xmm15, or where larger ones are in use ymm0 to ymm15, or zmm0 to zmm31 and k0 to k7
//! ```
//! By moves: the processor's own way (xsavec, xrstor) takes four times as long, and is for what has
//! no moves of all (AVX-512 without BW). Larger ones are in use wherever the C library has copied
//! something by AVX-512.
//!
//! The other registers are kept by all code of the agent's and the C library's.

use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What was saved, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct KeptCall {
    r11_to_r10: [usize; 2],
    r9: usize,
    r8: usize,
    rdi_to_rcx: [usize; 4],
    rax: usize,
    flags: usize,
    function: usize,
    bp: usize,
    return_address: usize,
}

impl KeptCall {
    /// How far below the stack pointer at entry the function's `Kept` lies.
    pub(crate) const FUNCTION_BELOW_ENTRY: usize = 16;

    /// Address of the function's `Kept`.
    pub(crate) fn function(&self) -> usize {
        self.function
    }

    /// The stack pointer at entry, where the return address lies.
    pub(crate) fn entry_sp(&self) -> *const usize {
        &raw const self.return_address
    }

    /// The caller's frame pointer register.
    pub(crate) fn bp(&self) -> usize {
        self.bp
    }

    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.rdi_to_rcx
    }

    pub(crate) fn set_answer(&mut self, answer: usize) {
        self.rax = answer;
    }
}

/// The processor has xmm registers only.
const SAVE_XMM: u8 = 0;
/// It has larger ones, tells which are in use, and saves those.
pub(crate) const SAVE_USED: u8 = 1;
/// It has larger ones.
const SAVE_ALL: u8 = 2;
pub(crate) static VECTOR_SAVING: AtomicU8 = AtomicU8::new(SAVE_ALL);

/// 1: there are moves for all registers of AVX-512.
pub(crate) static MOVES_ALL: AtomicU8 = AtomicU8::new(0);

/// Looks which vector registers the processor has. Before the first call.
pub(crate) fn choose_vector_saving() {
    const OSXSAVE_AND_AVX: u32 = 1 << 27 | 1 << 28;
    const XSAVEC_AND_XGETBV: u32 = 1 << 1 | 1 << 2;
    let has = |register: u32, bits: u32| register & bits == bits;
    let saving =
        match (has(__cpuid(1).ecx, OSXSAVE_AND_AVX), has(__cpuid_count(0xd, 1).eax, XSAVEC_AND_XGETBV)) {
            (false, _) => SAVE_XMM,
            (true, true) => SAVE_USED,
            (true, false) => SAVE_ALL,
        };
    VECTOR_SAVING.store(saving, Relaxed);
    const AVX512_BW: u32 = 1 << 30;
    let has_leaf = __cpuid(0).eax >= 7;
    MOVES_ALL.store(u8::from(has_leaf && has(__cpuid_count(7, 0).ebx, AVX512_BW)), Relaxed);
}

/// The entry, which has `$make_call` make the call.
macro_rules! kept_entry {
    ($make_call:path) => {
        /// Comes from an island with rbp and the function's `Kept` pushed.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn kept_entry() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                ".cfi_def_cfa rbp, 16",
                ".cfi_offset rbp, -16",
                "pushfq",
                "push rax",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                "and rsp, -64",
                "cmp byte ptr [rip + {saving}], {used}",
                "jb 4f",
                "ja 2f",
                // Which are in use: of AVX, and the three of AVX-512.
                "mov ecx, 1",
                "xgetbv",
                "test eax, 0xe4",
                "jz 4f",
                "test eax, 0xe0",
                "jz 8f",
                "cmp byte ptr [rip + {moves_all}], 0",
                "jne 9f",
                "2:",
                // The size of the largest area without AMX, which is nobody's to keep.
                "sub rsp, 2752",
                "xor eax, eax",
                ".irp n, 512, 520, 528, 536, 544, 552, 560, 568",
                "mov [rsp + \\n], rax",
                ".endr",
                "xor edx, edx",
                "mov eax, 0xe6",
                "cmp byte ptr [rip + {saving}], {used}",
                "jne 3f",
                "xsavec [rsp]",
                "jmp 5f",
                "3:",
                "xsave [rsp]",
                "5:",
                "lea rdi, [rbp - 88]",
                "call {make_call}",
                "mov rcx, rax",
                "xor edx, edx",
                "mov eax, 0xe6",
                "xrstor [rsp]",
                "mov rax, rcx",
                "jmp 6f",
                "4:",
                "sub rsp, 256",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "movaps [rsp + 16 * \\n], xmm\\n",
                ".endr",
                "lea rdi, [rbp - 88]",
                "call {make_call}",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "movaps xmm\\n, [rsp + 16 * \\n]",
                ".endr",
                "jmp 6f",
                "8:",
                "sub rsp, 512",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vmovaps [rsp + 32 * \\n], ymm\\n",
                ".endr",
                "vzeroupper",
                "lea rdi, [rbp - 88]",
                "call {make_call}",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vmovaps ymm\\n, [rsp + 32 * \\n]",
                ".endr",
                "jmp 6f",
                "9:",
                "sub rsp, 2112",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                "vmovaps [rsp + 64 * \\n], zmm\\n",
                ".endr",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
                "kmovq [rsp + 2048 + 8 * \\n], k\\n",
                ".endr",
                "vzeroupper",
                "lea rdi, [rbp - 88]",
                "call {make_call}",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                "vmovaps zmm\\n, [rsp + 64 * \\n]",
                ".endr",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7",
                "kmovq k\\n, [rsp + 2048 + 8 * \\n]",
                ".endr",
                "6:",
                "lea rsp, [rbp - 88]",
                "test rax, rax",
                "jnz 7f",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "popfq",
                "lea rsp, [rsp + 8]",
                ".cfi_remember_state",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_restore_state",
                "7:",
                // On to the function itself: its address goes where rbp is, and that where the Kept
                // was.
                "mov rcx, [rbp]",
                "mov [rbp - 8], rcx",
                ".cfi_offset rbp, -24",
                "mov [rbp], rax",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "popfq",
                "pop rbp",
                ".cfi_def_cfa rsp, 16",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                saving = sym $crate::x86_64::kept_entry::VECTOR_SAVING,
                moves_all = sym $crate::x86_64::kept_entry::MOVES_ALL,
                used = const $crate::x86_64::kept_entry::SAVE_USED,
                make_call = sym $make_call,
            );
        }
    };
}

pub(crate) use kept_entry;
