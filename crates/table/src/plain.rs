//! Text that is nothing but text: names come from programs and files that nobody vouches for.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// In place of a width: no line is too long.
pub const NO_LIMIT: usize = usize::MAX / 4;

/// `text` in at most `width` columns: the middle is what is left out.
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

/// What stands for a character that would do something in a terminal.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether a character does nothing but to be seen. All that prints or exports text of programs and
/// files asks this.
#[must_use]
pub fn is_harmless(character: char) -> bool {
    match character {
        // Marks and overrides of direction; separators of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => false,
        // Nothing is seen of them: two names that differ would look alike.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => false,
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => false,
        '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => false,
        // What the command line uses for styles.
        '\u{f8f0}'..='\u{f8f2}' => false,
        _ => !character.is_control(),
    }
}

/// The character, or what stands for one that is not harmless.
#[must_use]
pub fn harmless(character: char) -> char {
    if is_harmless(character) { character } else { REPLACEMENT }
}

/// Names come from files that nobody vouches for: one of them without what would do something in a
/// terminal, tabs and ends of lines too.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// A name for one line of `width` columns: control characters replaced, no longer than makes
/// sense.
#[must_use]
pub fn one_line(text: &str, width: usize) -> String {
    // What no line limits is a text in the program, not a name.
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
