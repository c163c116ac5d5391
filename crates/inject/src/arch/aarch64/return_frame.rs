//! Frame that returns a borrowed thread to its own state without the injector; see the x86-64
//! folder. The link register leads to the C library's `mov x8, 139; svc 0` (rt_sigreturn).
//!
//! ```text
//! sp -> signal information (marks of this crate)   128 bytes
//!       struct ucontext                            signal mask, no alternate stack, registers
//!       struct fpsimd_context, end mark            vector registers
//! or    struct fpsimd_context, extra_context, end mark, and behind it
//!       struct sve_context with its registers, end mark
//! ```

use super::Registers;
use super::extended::{VECTORS_BYTES, registers_of, scalable_of};

/// Largest size in bytes of the frame: 10 KiB are needed for the longest vectors.
pub(crate) const FRAME_BYTES_MAX: u64 = 16 << 10;
/// Number of words by which [`is_return_frame`] recognises the frame.
pub(super) const FRAME_WORDS: usize = 4;

/// First words of the signal information, which the kernel does not read.
const MARK: [u64; 2] = [u64::from_le_bytes(*b"heaprret"), 1];
const INFORMATION_BYTES: usize = 128;
/// Flags that sigaltstack refuses, so that the alternate stack is unchanged.
const NO_ALTERNATE_STACK: u64 = 0x7fff_0000;
/// Offset of the registers in the ucontext.
const REGISTERS_AT: usize = 176;
/// Size in bytes of the record that ends the list of records: zeros.
const END_BYTES: usize = 16;
const FPSIMD_MAGIC: u32 = 0x4650_8001;
const FPSIMD_BYTES: u32 = 528;
/// Size in bytes of q0 to q31, which the state and control words follow.
const QUADS_BYTES: usize = 512;
const EXTRA_MAGIC: u32 = 0x4558_5401;
const EXTRA_BYTES: usize = 32;
const SVE_MAGIC: u32 = 0x5356_4501;
/// Size in bytes of the head of SVE's record.
const SVE_HEAD_BYTES: usize = 16;

/// Bytes of the frame for `sp_avma` (aligned to 16), the address of its first word.
pub(crate) fn return_frame(
    sp_avma: u64,
    _sigreturn_avma: u64,
    registers: &Registers,
    signal_mask: u64,
    extended_state: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut words = |words: &[u64]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    words(&MARK);
    words(&[0; INFORMATION_BYTES / 8 - MARK.len()]);
    // Flags, link, stack, mask.
    words(&[0, 0, 0, NO_ALTERNATE_STACK, 0, signal_mask]);
    words(&[0; (REGISTERS_AT - 48) / 8]);
    let general = &registers.general;
    words(&[0]);
    words(&general.x);
    words(&[general.sp, general.pc, general.pstate]);
    // The records are aligned to 16.
    words(&[0]);
    // The kernel refuses a frame without them; a frame of a new call has zeros.
    let no_vectors = [0; VECTORS_BYTES];
    let state = if extended_state.len() >= no_vectors.len() { extended_state } else { &no_vectors };
    let (vectors, control) = state.split_at(QUADS_BYTES);
    bytes.extend(FPSIMD_MAGIC.to_le_bytes());
    bytes.extend(FPSIMD_BYTES.to_le_bytes());
    bytes.extend(&control[..8]);
    bytes.extend(vectors);
    if let Some(record) = scalable_of(state).and_then(scalable_record) {
        // Long vectors do not fit into the kernel's own part. The rest must begin right behind it.
        let rest_avma = sp_avma + (bytes.len() + EXTRA_BYTES + END_BYTES) as u64;
        bytes.extend(EXTRA_MAGIC.to_le_bytes());
        bytes.extend((EXTRA_BYTES as u32).to_le_bytes());
        bytes.extend(rest_avma.to_le_bytes());
        bytes.extend(((record.len() + END_BYTES) as u64).to_le_bytes());
        bytes.resize(bytes.len() + 8 + END_BYTES, 0);
        bytes.extend(record);
    }
    bytes.resize(bytes.len() + END_BYTES, 0);
    bytes
}

/// Record of SVE's registers, from the set that the kernel has shown.
fn scalable_record(set: &[u8]) -> Option<Vec<u8>> {
    let (length, registers) = registers_of(set)?;
    let bytes = (SVE_HEAD_BYTES + registers.len()).next_multiple_of(16);
    let mut record = Vec::with_capacity(bytes);
    record.extend(SVE_MAGIC.to_le_bytes());
    record.extend((bytes as u32).to_le_bytes());
    record.extend(length.to_le_bytes());
    record.resize(SVE_HEAD_BYTES, 0);
    record.extend(registers);
    record.resize(bytes, 0);
    Some(record)
}

/// True if the first words of a stack are those of such a frame.
pub(crate) fn is_return_frame(words: &[u64]) -> bool {
    words.starts_with(&MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_registers_where_the_kernel_reads_them() {
        let mut registers = Registers::default();
        (registers.general.x[0], registers.general.sp, registers.general.pc) = (1, 2, 3);
        for state in [&[][..], &[7; 528]] {
            let frame = return_frame(0, 0, &registers, 9, state);
            let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
            let context = INFORMATION_BYTES;
            // Linux, `struct ucontext` and `struct sigcontext` of arm64.
            assert_eq!(word(context + 40), 9);
            assert_eq!(word(context + 176 + 8), 1);
            assert_eq!((word(context + 176 + 8 * 32), word(context + 176 + 8 * 33)), (2, 3));
            let records = context + 176 + 288;
            assert_eq!(word(records), u64::from(FPSIMD_BYTES) << 32 | u64::from(FPSIMD_MAGIC));
            assert_eq!(word(records + FPSIMD_BYTES as usize), 0);
            assert_eq!(frame.len() % 16, 0);
            assert!(frame.len() as u64 <= crate::remote::SMALL_FRAME_BYTES);
            assert!(is_return_frame(&[word(0), word(8), word(16), word(24)]));
        }
    }

    #[test]
    fn long_vectors_follow_the_frame() {
        const SP: u64 = 0x7000_0000;
        for length in [16, 64, 256] {
            let frame =
                return_frame(SP, 0, &Registers::default(), 0, &super::super::extended::tests::in_use(length));
            let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
            let extra = INFORMATION_BYTES + 176 + 288 + FPSIMD_BYTES as usize;
            assert_eq!(word(extra), 32 << 32 | u64::from(EXTRA_MAGIC));
            assert_eq!((word(extra + 32), word(extra + 40)), (0, 0));
            let rest = extra + 48;
            assert_eq!(word(extra + 8), SP + rest as u64);
            assert_eq!(word(extra + 16) as usize, frame.len() - rest);
            assert_eq!((rest % 16, frame.len() % 16), (0, 0));
            let bytes = (word(rest) >> 32) as usize;
            assert_eq!((word(rest) as u32, word(rest + 8)), (SVE_MAGIC, u64::from(length)));
            assert_eq!(bytes + END_BYTES, frame.len() - rest);
            let registers = usize::from(length) * 34 + usize::from(length) / 8;
            assert!(frame[rest + 16..][..registers].iter().all(|&byte| byte == 7));
            assert!(frame.len() as u64 <= FRAME_BYTES_MAX);
        }
    }
}
