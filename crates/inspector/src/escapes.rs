//! Unescaping of JSON strings, as bytes.
//!
//! A snapshot arrives as a thousand strings of 100 KB, with every line break written as `\n` and
//! every quote as `\"`. Runs between two backslashes are copied as a whole. Lone surrogates, which
//! are not valid in UTF-8, become three bytes each (WTF-8). Therefore no contents of a program's
//! strings stop a capture.

/// Appends the text between the quotes of a JSON string, unescaped. Returns `None` if an escape is
/// invalid.
pub(crate) fn unescape_into(escaped: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(escaped.len());
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let plain = match *rest.get(at + 1)? {
            letter @ (b'"' | b'\\' | b'/') => letter,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                rest = unescape_unit(&rest[at..], out)?;
                continue;
            }
            _ => return None,
        };
        out.push(plain);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    Some(())
}

/// Unescapes one `\uXXXX`, or two that form one character. Returns the remaining text.
fn unescape_unit<'a>(escaped: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let first = unit(escaped)?;
    let rest = &escaped[6..];
    if (0xd800..0xdc00).contains(&first)
        && let Some(second @ 0xdc00..0xe000) = unit(rest)
    {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        push_code(code, out);
        return Some(&rest[6..]);
    }
    push_code(first, out);
    Some(rest)
}

fn unit(escaped: &[u8]) -> Option<u32> {
    let digits = escaped.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

fn push_code(code: u32, out: &mut Vec<u8>) {
    let low = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend([0xc0 | (code >> 6) as u8, low(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (code >> 12) as u8, low(6), low(0)]),
        _ => out.extend([0xf0 | (code >> 18) as u8, low(12), low(6), low(0)]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unescaped(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        unescape_into(text.as_bytes(), &mut out).map(|()| out)
    }

    #[test]
    fn half_surrogates_are_kept_as_three_bytes() {
        assert_eq!(unescaped(r"a\ud83d").unwrap(), b"a\xed\xa0\xbd");
        assert_eq!(unescaped(r"\ude00\ud83d\ude00").unwrap(), b"\xed\xb8\x80\xf0\x9f\x98\x80");
        assert_eq!(unescaped(r"\ud83d\n").unwrap(), b"\xed\xa0\xbd\n");
    }

    #[test]
    fn escapes_that_are_none_are_refused() {
        for text in [r"\", r"\x", r"\u12", r"\u12g4", r"a\u+123"] {
            assert_eq!(unescaped(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>(), is_ascii in any::<bool>()) {
            let mut json = serde_json::to_string(&text).unwrap();
            if is_ascii {
                json = json.chars().flat_map(|c| {
                    let mut units = [0; 2];
                    if c.is_ascii() { vec![c.to_string()] } else {
                        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect()
                    }
                }).collect();
            }
            prop_assert_eq!(unescaped(&json[1..json.len() - 1]).unwrap(), text.as_bytes());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'u'), any::<u8>()], 0..40)) {
            let _ = unescape_into(&bytes, &mut Vec::new());
        }
    }
}
