//! Text without control characters and the like: names come from untrusted programs and files.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Width of a line without a limit.
pub const NO_LIMIT: usize = usize::MAX / 4;

/// Cuts `text` to at most `width` columns by removing its middle.
#[must_use]
pub fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let kept = width - 1;
    let head: String = take_columns(text.chars(), kept - kept / 2).into_iter().collect();
    let mut tail = take_columns(text.chars().rev(), kept / 2);
    tail.reverse();
    head + "…" + &tail.into_iter().collect::<String>()
}

fn take_columns(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut left = columns;
    characters
        .take_while(|character| {
            let width = character.width().unwrap_or(0);
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

/// Replacement for a character that has an effect in a terminal.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether a character is visible and has no other effect. All output of text from programs and
/// files uses this check.
#[must_use]
pub fn is_harmless(character: char) -> bool {
    match character {
        // Marks and overrides of direction; separators of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => false,
        // Invisible characters: two different names would look alike.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => false,
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => false,
        '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => false,
        // Characters that the command line uses for styles.
        '\u{f8f0}'..='\u{f8f2}' => false,
        _ => !character.is_control(),
    }
}

/// The character, or [`REPLACEMENT`] if it is not harmless.
#[must_use]
pub fn harmless(character: char) -> char {
    if is_harmless(character) { character } else { REPLACEMENT }
}

/// A name without characters that have an effect in a terminal, tabs and line ends included. Names
/// come from untrusted files.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// A name for one line of `width` columns: control characters are replaced, and its length is
/// limited.
#[must_use]
pub fn one_line(text: &str, width: usize) -> String {
    // Without a limit of the line the text comes from the program itself.
    let limit = if width < NO_LIMIT { 200 } else { 64 << 10 };
    let mut line: String =
        text.chars().take(limit).map(|c| if c.is_control() { ' ' } else { harmless(c) }).collect();
    if text.chars().nth(limit).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_in_its_middle() {
        assert_eq!(cut_middle("abcdef", 5), "ab…ef");
        assert_eq!(cut_middle("abcdef", 1), "…");
        assert_eq!(cut_middle("abc", 0), "");
    }

    #[test]
    fn what_would_do_something_in_a_terminal_is_replaced() {
        assert_eq!(printable("a\tb\n\u{202e}"), "a\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(one_line("a\n\u{1b}[m", NO_LIMIT), "a  [m");
        assert_eq!(one_line(&"a".repeat(300), 80).chars().count(), 201);
    }
}
