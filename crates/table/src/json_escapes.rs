//! Escapes of JSON strings, read piece by piece.
//!
//! Strings become WTF-8: UTF-8 in which a lone surrogate is encoded in three bytes like any other
//! code point. JavaScript's strings may contain them, so that no contents of a program's strings
//! stop a reader.

/// Last escape of a string, if it was a high surrogate that a low one may follow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Escapes {
    high: Option<u16>,
}

/// Appends the text of the escape (`\n`, `\u00e4`) at the start of `text`. Returns its length, or
/// `None` if the escape is invalid.
pub fn push_unescaped(text: &[u8], escapes: &mut Escapes, into: &mut Vec<u8>) -> Option<usize> {
    let high = escapes.high.take();
    let byte = match *text.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let digits = text.get(2..6)?;
            let mut unit = 0u16;
            for &digit in digits {
                unit = unit << 4 | char::from(digit).to_digit(16)? as u16;
            }
            match (high, unit) {
                (Some(high), 0xdc00..=0xdfff) => {
                    // The first half of the pair was written as a lone surrogate.
                    into.truncate(into.len().saturating_sub(3));
                    let code = 0x10000 + (u32::from(high - 0xd800) << 10) + u32::from(unit - 0xdc00);
                    let mut encoded = [0; 4];
                    into.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut encoded).as_bytes());
                }
                _ => push_unit(unit, into),
            }
            escapes.high = (0xd800..0xdc00).contains(&unit).then_some(unit);
            return Some(6);
        }
        _ => return None,
    };
    into.push(byte);
    Some(2)
}

fn push_unit(unit: u16, into: &mut Vec<u8>) {
    match unit {
        0..0x80 => into.push(unit as u8),
        0x80..0x800 => into.extend_from_slice(&[0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
        _ => into.extend_from_slice(&[
            0xe0 | (unit >> 12) as u8,
            0x80 | (unit >> 6 & 0x3f) as u8,
            0x80 | (unit & 0x3f) as u8,
        ]),
    }
}
