//! Fields of CSV (RFC 4180).

use crate::plain::harmless;

/// A field, quoted if needed. Characters that have an effect in a terminal are replaced, except
/// line ends and tabs. CSV has no escapes for them; JSON has, and loses nothing.
#[must_use]
pub fn quoted(field: &str) -> String {
    let is_kept = |c: char| matches!(c, '\n' | '\r' | '\t');
    let field: String = field.chars().map(|c| if is_kept(c) { c } else { harmless(c) }).collect();
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a\u{9b}b\u{202e}\t"), "a\u{fffd}b\u{fffd}\t");
        assert_eq!(quoted("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
    }
}
