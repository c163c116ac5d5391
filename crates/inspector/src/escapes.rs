//! Unescaping of JSON strings, as bytes.
//!
//! A snapshot arrives as a thousand strings of 100 KB, with every line break written as `\n` and
//! every quote as `\"`. Runs between two backslashes are copied as a whole.

use heapr_table::json_escapes::{Escapes, push_unescaped};

/// Appends the text between the quotes of a JSON string, unescaped. Returns `None` if an escape is
/// invalid.
pub(crate) fn unescape_into(escaped: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(escaped.len());
    let (mut rest, mut escapes) = (escaped, Escapes::default());
    while let Some(at) = memchr::memchr(b'\\', rest) {
        if at != 0 {
            // Text lies between this escape and the last one.
            escapes = Escapes::default();
        }
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[push_unescaped(rest, &mut escapes, out)?..];
    }
    out.extend_from_slice(rest);
    Some(())
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
