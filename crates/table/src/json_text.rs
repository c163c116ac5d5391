//! JSON that is harmless as text: characters that have an effect in a terminal, or are invisible,
//! are written as escapes (`\u009b`). The escapes mean the same, so that no data is lost.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::plain::is_harmless;

/// A writer that replaces harmful characters of JSON by ASCII escapes.
#[derive(Debug)]
pub struct JsonText<W> {
    out: W,
    /// First bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> JsonText<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        // (Controls below 32 are escaped within JSON's strings; elsewhere they are white space.)
        let is_kept = |c: char| c.is_ascii() && c != '\u{7f}' || is_harmless(c);
        let mut rest = text;
        while let Some(place) = rest.find(|c| !is_kept(c)) {
            self.out.write_all(&rest.as_bytes()[..place])?;
            let mut characters = rest[place..].chars();
            let mut units = [0; 2];
            for unit in characters.next().unwrap_or_default().encode_utf16(&mut units) {
                write!(self.out, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        self.out.write_all(rest.as_bytes())
    }
}

impl<W: Write> Write for JsonText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_empty() && bytes.is_ascii() && !bytes.contains(&0x7f) {
            return self.out.write_all(bytes).map(|()| bytes.len());
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // (Serializers write UTF-8.)
            _ => all.len(),
        };
        self.begun = all.split_off(whole);
        self.put(&String::from_utf8_lossy(&all))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A value as indented JSON.
#[must_use]
pub fn json_lines(value: &serde_json::Value) -> String {
    escaped(&format!("{value:#}"))
}

/// Replaces harmful characters of JSON by escapes.
#[must_use]
pub fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\u{7f}' || is_harmless(character) {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Writes a value as JSON.
///
/// # Errors
/// Writing fails, or the value cannot be JSON.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize, is_pretty: bool) -> io::Result<()> {
    let mut text = JsonText::new(out);
    match is_pretty {
        true => serde_json::to_writer_pretty(&mut text, value),
        false => serde_json::to_writer(&mut text, value),
    }
    .map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_something_is_escaped_and_means_the_same() {
        let name = "a\u{9b}31m é\u{202e}b\u{200b}\u{7f}\u{e0041}\n\u{1b}";
        let value = serde_json::json!({ name: [name] });
        let text = json_lines(&value);
        assert!(text.chars().all(|c| c == '\n' || crate::plain::is_harmless(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        // Byte by byte, as a buffer may pass it on.
        let mut out = Vec::new();
        let mut writer = JsonText::new(&mut out);
        let plain = format!("{value:#}");
        plain.as_bytes().iter().for_each(|byte| writer.write_all(&[*byte]).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), text);
        let mut out = Vec::new();
        write_json(&mut out, &value, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
