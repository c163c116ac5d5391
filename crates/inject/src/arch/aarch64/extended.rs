//! A thread's floating-point and vector registers, as they are kept while it is borrowed.
//!
//! ```text
//! 0    q0 to q31, state and control words      struct user_fpsimd_state
//! 528  (in use: head, z0 to z31, p0 to p15,    struct user_sve_header, and behind it
//!      FFR, state and control words)           the set of SVE's registers
//! ```
//! The upper parts of SVE's registers are the program's between two system calls: a function that
//! copies memory may have its data in them.

/// Size in bytes of the registers that each thread has.
pub(super) const VECTORS_BYTES: usize = 528;

/// Size in bytes of the head of SVE's registers.
const HEAD_BYTES: usize = 16;
/// Location in the head of the vector length in bytes, and of the flags; each has two bytes.
const LENGTH_AT: usize = 8;
const FLAGS_AT: usize = 12;
/// Flag of registers in use. Without it the others follow the head (Linux, `SVE_PT_REGS_SVE`).
const IS_IN_USE: u16 = 1;
/// Size in bytes of the state and control words, with the gap before them.
const CONTROL_BYTES_MAX: usize = 32;
/// Largest vector length in bytes that the architecture allows.
const LENGTH_MAX: usize = 256;
/// Largest size in bytes of SVE's registers with their head.
pub(super) const SCALABLE_BYTES_MAX: usize = HEAD_BYTES + registers_bytes(LENGTH_MAX) + CONTROL_BYTES_MAX;

/// Size in bytes of z0 to z31, p0 to p15 and FFR for a vector length: a predicate has a bit for
/// each byte.
const fn registers_bytes(length: usize) -> usize {
    32 * length + 17 * length / 8
}

fn half_word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// True if the set of SVE's registers that the kernel shows has such registers.
pub(super) fn is_scalable_in_use(set: &[u8]) -> bool {
    half_word(set, FLAGS_AT).is_some_and(|flags| flags & IS_IN_USE != 0) && registers_of(set).is_some()
}

/// The set of SVE's registers in kept ones.
pub(super) fn scalable_of(extended_state: &[u8]) -> Option<&[u8]> {
    extended_state.get(VECTORS_BYTES..).filter(|set| !set.is_empty())
}

/// Vector length in bytes of a set of SVE's registers, and the registers.
pub(super) fn registers_of(set: &[u8]) -> Option<(u16, &[u8])> {
    let length = half_word(set, LENGTH_AT)?;
    let bytes = registers_bytes(usize::from(length));
    Some((length, set.get(HEAD_BYTES..HEAD_BYTES.checked_add(bytes)?)?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Kept registers of a thread that uses SVE with this vector length, all of them bytes of 7.
    pub(in super::super) fn in_use(length: u16) -> Vec<u8> {
        let mut bytes = vec![7; VECTORS_BYTES + HEAD_BYTES + registers_bytes(usize::from(length)) + 16];
        bytes[VECTORS_BYTES..][..HEAD_BYTES].fill(0);
        bytes[VECTORS_BYTES + LENGTH_AT..][..2].copy_from_slice(&length.to_le_bytes());
        bytes[VECTORS_BYTES + FLAGS_AT] = 1;
        bytes
    }

    #[test]
    fn registers_in_use_are_found() {
        for length in [16, 64, 256] {
            let state = in_use(length);
            let set = scalable_of(&state).unwrap();
            assert!(is_scalable_in_use(set) && set.len() <= SCALABLE_BYTES_MAX);
            let (found, registers) = registers_of(set).unwrap();
            assert_eq!(
                (found, registers.len()),
                (length, usize::from(length) * 34 + usize::from(length) / 8)
            );
            assert!(registers.iter().all(|&byte| byte == 7));
            // The kernel's set without registers in use, and one that is cut.
            let mut other = set.to_vec();
            other[FLAGS_AT] = 0;
            assert!(!is_scalable_in_use(&other));
            assert!(!is_scalable_in_use(&set[..100]));
        }
        assert!(!is_scalable_in_use(&[]));
        assert_eq!(scalable_of(&[0; VECTORS_BYTES]), None);
        assert_eq!(scalable_of(&[]), None);
    }
}
