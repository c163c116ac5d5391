//! Addresses of a process, and the reach of branches.

/// Largest distance in bytes of a trampoline area: 128 MiB, the range of `b`, with a margin for the
/// distance between function and area.
pub(crate) const JUMP_DISTANCE: u64 = (128 << 20) - (16 << 20);

/// Address in a word that may be a return address: without its signature and its tag.
pub(crate) fn code_address(word: u64) -> u64 {
    word & (heapr_known::machine::HERE.address_limit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_return_address_is_a_plain_one() {
        assert_eq!(code_address(0x0035_aaaa_1234_5678), 0xaaaa_1234_5678);
        assert_eq!(code_address(0xff7f_aaaa_1234_5678), 0xaaaa_1234_5678);
        assert_eq!(code_address(0xaaaa_1234_5678), 0xaaaa_1234_5678);
    }
}
