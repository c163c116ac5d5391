//! Escaping of text for XML and HTML.

use heapr_table::plain::is_harmless;

/// Escapes text for XML and HTML; characters that XML 1.0 cannot have are replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if !is_harmless(character) => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}
