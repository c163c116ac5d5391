//! Short forms of help texts, for `-h` and for lists of commands.

/// Ends of the parts of a sentence of which the first says the whole.
const BREAKS: [&str; 4] = [": ", "; ", ". ", ", "];

/// Characters of a text that is not cut at a colon.
const SHORT: usize = 48;

/// Returns the text of an option up to its first semicolon or the end of its first sentence. A long
/// one ends at its colon. A default at its end stays.
pub(super) fn option(text: &str) -> String {
    let (text, default) = match text.rfind(" [default: ") {
        Some(at) if text.ends_with(']') => text.split_at(at),
        _ => (text, ""),
    };
    let ends: &[&str] = if text.chars().count() > SHORT { &["; ", ". ", ": "] } else { &["; ", ". "] };
    let found = ends.iter().flat_map(|end| text.match_indices(end)).map(|(at, _)| at);
    let end = found.filter(|&at| is_outside_of_brackets(text, at)).min();
    let default = default.split_once("; ").map_or(default.to_owned(), |(first, _)| format!("{first}]"));
    format!("{}{default}", end.map_or(text, |end| &text[..end]))
}

/// Returns the longest beginning of a sentence that fits, at one of its breaks. A sentence without
/// such a break stays whole.
pub(super) fn sentence(text: &str, length: usize) -> &str {
    if text.chars().count() <= length {
        return text;
    }
    for end in BREAKS {
        let fits = text.match_indices(end).map(|(at, _)| at);
        let fits =
            fits.filter(|&at| text[..at].chars().count() <= length && is_outside_of_brackets(text, at));
        if let Some(at) = fits.max() {
            return &text[..at];
        }
    }
    text
}

fn is_outside_of_brackets(text: &str, at: usize) -> bool {
    let count = |letters: [char; 2]| text[..at].matches(letters).count();
    count(['(', '[']) == count([')', ']'])
}
