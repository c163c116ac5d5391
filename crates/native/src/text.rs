//! Text at the start of a block, or behind a header.

/// Largest number of bytes of a text that is stored.
const TEXT_BYTES_MAX: usize = 64;
/// Largest length of a string's header. Redis has up to 17 bytes, and 16 of an object before them;
/// CPython has 40 to 72.
const HEADER_BYTES_MAX: usize = 80;
/// Number of a block's first bytes that are examined.
pub(crate) const LOOKED_AT_BYTES: usize = HEADER_BYTES_MAX + TEXT_BYTES_MAX;
/// Least length of a text at the start of a block; shorter ones are too often other data.
const TEXT_BYTES_MIN: usize = 4;
/// Least length of a text behind a header. Addresses and numbers lie there, too: four to six of
/// their bytes in a row are often text by chance.
const TEXT_BYTES_MIN_BEHIND: usize = 7;

/// Knowledge of the first bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Unknown,
    /// Other data than text.
    Header,
}

/// Returns the text at the start of a block, or the first one behind a header, up to a zero or the
/// block's end. `bytes`: the block's first bytes; `is_cut`: the block is longer.
pub(crate) fn text_of(bytes: &[u8], is_cut: bool, beginning: Beginning) -> Option<&str> {
    let at_start = match beginning {
        Beginning::Header => None,
        Beginning::Unknown => text_at(bytes, is_cut, TEXT_BYTES_MIN),
    };
    at_start.or_else(|| {
        // A printable byte before an ASCII letter belongs to the text; any other byte may belong to
        // a number: a hash, minus one.
        let begins = |start: usize| match (bytes[start - 1], bytes[start]) {
            (before, first) if first.is_ascii() => is_text(first) && !(before.is_ascii() && is_text(before)),
            (before, _) => !is_text(before),
        };
        let mut starts = (1..bytes.len().min(HEADER_BYTES_MAX)).filter(|&start| begins(start));
        starts.find_map(|start| {
            let text = text_at(&bytes[start..], is_cut, TEXT_BYTES_MIN_BEHIND)?;
            (!ends_as_address(bytes, start + text.len())).then_some(text)
        })
    })
}

/// The text at the start of `bytes`.
fn text_at(bytes: &[u8], is_cut: bool, least_bytes: usize) -> Option<&str> {
    let shown = &bytes[..bytes.len().min(TEXT_BYTES_MAX)];
    let is_cut = is_cut || shown.len() < bytes.len();
    let length = shown.iter().position(|&byte| byte == 0).unwrap_or(shown.len());
    let is_cut = is_cut && length == shown.len();
    let bytes = &shown[..length];
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or("")
        }
        Err(_) => return None,
    };
    let is_shown = |one: char| !one.is_control() || matches!(one, '\t' | '\n' | '\r');
    (text.len() >= least_bytes && text.chars().all(is_shown)).then_some(text)
}

/// Whether a byte may belong to a text.
fn is_text(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Whether the bytes before `end` are the upper ones of an address in a position-independent
/// program (0x55... to 0x56...). Their last letter is always a U or a V.
fn ends_as_address(bytes: &[u8], end: usize) -> bool {
    let top = end.checked_sub(1).and_then(|last| bytes.get(last));
    end % 8 == 6 && matches!(top, Some(b'U' | b'V')) && bytes.get(end..end + 2) == Some(&[0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_a_zero_or_with_the_block_and_a_cut_character_is_left_out() {
        assert_eq!(text_of(b"GET /index\0\x01\x02", false, Beginning::Unknown), Some("GET /index"));
        assert_eq!(text_of(b"GET /index", false, Beginning::Unknown), Some("GET /index"));
        assert_eq!(text_of("größe".as_bytes(), false, Beginning::Unknown), Some("größe"));
        let cut = &"größe".as_bytes()[..5];
        assert_eq!(
            (text_of(cut, true, Beginning::Unknown), text_of(cut, false, Beginning::Unknown)),
            (Some("grö"), None)
        );
        let within = &"abcdé".as_bytes()[..5];
        assert_eq!(
            (text_of(within, true, Beginning::Unknown), text_of(within, false, Beginning::Unknown)),
            (Some("abcd"), None)
        );
    }

    #[test]
    fn numbers_and_addresses_are_no_text() {
        assert_eq!(text_of(&0x5555_5577_1230_u64.to_le_bytes(), false, Beginning::Unknown), None);
        assert_eq!(text_of(&[7, 0, 0, 0, 0, 0, 0, 0], false, Beginning::Unknown), None);
        assert_eq!(text_of(b"ab\0", false, Beginning::Unknown), None);
        assert_eq!(text_of(b"", true, Beginning::Unknown), None);
    }

    #[test]
    fn text_behind_a_header_is_found() {
        // redis: length, room, kind; CPython: count, type, length, hash, state.
        assert_eq!(text_of(b"\x07\x07\x01user 42\0", false, Beginning::Unknown), Some("user 42"));
        let python =
            [&1_u64.to_le_bytes()[..], &0x7f12_3456_7890_u64.to_le_bytes(), &[7, 0, 0, 0, 0, 0, 0, 0]];
        let python =
            [&python.concat()[..], &u64::MAX.to_le_bytes(), &[0xe4, 0, 0, 0, 0, 0, 0, 0], b"user 42\0"];
        assert_eq!(text_of(&python.concat(), false, Beginning::Unknown), Some("user 42"));
        let minus_one = [&[0_u8; 8][..], &u64::MAX.to_le_bytes(), b"payload\0"].concat();
        assert_eq!(text_of(&minus_one, false, Beginning::Unknown), Some("payload"));
        let long = [&[1_u8; 40][..], &[b'x'; 100]].concat();
        assert_eq!(text_of(&long, true, Beginning::Unknown), Some(&*"x".repeat(64)));
        let far = [&[1_u8; 90][..], b"too far away"].concat();
        assert_eq!(text_of(&far, false, Beginning::Unknown), None);
    }

    #[test]
    fn a_number_before_an_address_is_no_text() {
        let words = [0x4142_0000_0000_0001_u64.to_le_bytes(), 0x5555_4443_4241_u64.to_le_bytes()].concat();
        assert_eq!(text_of(&words, true, Beginning::Unknown), None);
    }
}
