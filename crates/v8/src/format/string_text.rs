//! Text that JavaScript can hold but Unicode cannot.
//!
//! Strings are stored as WTF-8: UTF-8 in which a lone surrogate is encoded in three bytes like any
//! other code point. JavaScript measures and compares strings by UTF-16 units, and so do the rules
//! of DevTools.

use std::cmp::Ordering;

/// Returns the UTF-16 units of WTF-8 text; invalid bytes count as U+FFFD.
pub(crate) fn utf16_units(text: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut at = 0;
    let mut low = None;
    std::iter::from_fn(move || {
        if let Some(low) = low.take() {
            return Some(low);
        }
        let rest = text.get(at..)?;
        let (code, length) = code_point(rest)?;
        at += length;
        if code < 0x10000 {
            return Some(code as u16);
        }
        low = Some(0xdc00 | (code & 0x3ff) as u16);
        Some(0xd800 | ((code - 0x10000) >> 10) as u16)
    })
}

/// Whether all bytes are valid WTF-8.
pub(crate) fn is_wtf8(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((code, length)) = code_point(rest) {
        if code == 0xfffd && length == 1 {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

fn code_point(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    let tail = |index: usize| {
        text.get(index).filter(|&&byte| byte & 0xc0 == 0x80).map(|&byte| u32::from(byte & 0x3f))
    };
    let lead = u32::from(first);
    let whole = match first {
        0..0x80 => Some((lead, 1)),
        0xc2..0xe0 => tail(1).map(|a| ((lead & 0x1f) << 6 | a, 2)),
        0xe0..0xf0 => tail(1).zip(tail(2)).map(|(a, b)| ((lead & 0xf) << 12 | a << 6 | b, 3)),
        0xf0..0xf5 => {
            tail(1).zip(tail(2)).zip(tail(3)).map(|((a, b), c)| ((lead & 7) << 18 | a << 12 | b << 6 | c, 4))
        }
        _ => None,
    };
    Some(whole.filter(|&(code, _)| code < 0x11_0000).unwrap_or((0xfffd, 1)))
}

/// Length in UTF-16 units, as in JavaScript.
pub(crate) fn utf16_length(text: &[u8]) -> usize {
    if text.is_ascii() { text.len() } else { utf16_units(text).count() }
}

/// Compares in the order of JavaScript's `<`.
pub(crate) fn compare_utf16(left: &[u8], right: &[u8]) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        left.cmp(right)
    } else {
        utf16_units(left).cmp(utf16_units(right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_length_are_those_of_utf16() {
        assert_eq!(compare_utf16("\u{1f600}".as_bytes(), "\u{fb01}".as_bytes()), Ordering::Less);
        assert_eq!(compare_utf16(b"a", b"b"), Ordering::Less);
        assert_eq!(utf16_length("a\u{1f600}\u{e4}".as_bytes()), 4);
        assert_eq!(utf16_length(&[0xed, 0xa0, 0xbd, 0xff]), 2);
    }
}
