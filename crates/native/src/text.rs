//! Whether a block begins with text.

/// So much of a block is looked at.
pub(crate) const TEXT_BYTES_MAX: usize = 64;
/// Shorter texts are too often something else.
const TEXT_BYTES_MIN: usize = 4;

/// The text that a block's first bytes are, up to a zero or the end of the block. `is_cut`: the
/// block has more.
pub(crate) fn text_of(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..length];
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or("")
        }
        Err(_) => return None,
    };
    let is_text = |one: char| !one.is_control() || matches!(one, '\t' | '\n' | '\r');
    (text.len() >= TEXT_BYTES_MIN && text.chars().all(is_text)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_a_zero_or_with_the_block_and_a_cut_character_is_left_out() {
        assert_eq!(text_of(b"GET /index\0\x01\x02", false), Some("GET /index"));
        assert_eq!(text_of(b"GET /index", false), Some("GET /index"));
        assert_eq!(text_of("größe".as_bytes(), false), Some("größe"));
        let cut = &"größe".as_bytes()[..5];
        assert_eq!((text_of(cut, true), text_of(cut, false)), (Some("grö"), None));
        let within = &"abcdé".as_bytes()[..5];
        assert_eq!((text_of(within, true), text_of(within, false)), (Some("abcd"), None));
    }

    #[test]
    fn numbers_and_addresses_are_no_text() {
        assert_eq!(text_of(&0x5555_5577_1230_u64.to_le_bytes(), false), None);
        assert_eq!(text_of(&[7, 0, 0, 0, 0, 0, 0, 0], false), None);
        assert_eq!(text_of(b"ab\0", false), None);
        assert_eq!(text_of(b"", true), None);
    }
}
