//! Comments of a Rust source as paragraphs and sentences.

/// A paragraph of a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paragraph {
    /// Line of the file in which its comment begins, from 1.
    pub(crate) line: usize,
    /// True for the first paragraph of a doc comment (`///` or `//!`).
    pub(crate) opens_doc: bool,
    /// True in the help of a command or an option.
    pub(crate) is_help: bool,
    /// Words, with code spans as one word each.
    pub(crate) text: String,
}

/// Returns the paragraphs of all line comments, without headings, tables, fenced and indented code.
pub(crate) fn paragraphs(source: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let (mut marker, mut first_line) = ("", 0);
    for (number, line) in (1..).zip(source.lines().chain([""])) {
        let text = line.trim_start();
        let kind = ["////", "///", "//!", "//"].into_iter().find(|kind| text.starts_with(kind)).unwrap_or("");
        if kind != marker {
            let of = Comment {
                lines: &comment,
                is_doc: marker != "//",
                is_help: is_of_clap(text),
                line: first_line,
            };
            take_comment(of, &mut found);
            comment.clear();
            (marker, first_line) = (kind, number);
        }
        if !matches!(kind, "" | "////") {
            let rest = &text[kind.len()..];
            comment.push(rest.strip_prefix(' ').unwrap_or(rest));
        }
    }
    found
}

/// Whether the line behind a comment makes the comment the help of a command or an option.
fn is_of_clap(line: &str) -> bool {
    let is_derived = line.starts_with("#[derive(")
        && line.split(['(', ')', ',', ' ', ':']).any(|word| ["Args", "Parser", "Subcommand"].contains(&word));
    is_derived || ["#[arg(", "#[command(", "#[group("].iter().any(|start| line.starts_with(start))
}

/// Neighbouring comment lines of a file.
struct Comment<'a> {
    lines: &'a [&'a str],
    is_doc: bool,
    is_help: bool,
    /// First line, from 1.
    line: usize,
}

/// Adds the paragraphs of one comment.
fn take_comment(comment: Comment<'_>, found: &mut Vec<Paragraph>) {
    let Comment { lines, is_doc, is_help, line } = comment;
    let mut is_fenced = false;
    let mut text = String::new();
    let mut opens_doc = is_doc;
    let mut end = |text: &mut String| {
        if !text.is_empty() {
            found.push(Paragraph { line, opens_doc, is_help, text: without_code(&std::mem::take(text)) });
            opens_doc = false;
        }
    };
    for shown in lines {
        let words = shown.trim();
        let is_fence = words.starts_with("```");
        is_fenced ^= is_fence;
        let is_other = is_fenced || is_fence || words.is_empty() || shown.starts_with("    ");
        if is_other || words.starts_with(['#', '|']) {
            end(&mut text);
            continue;
        }
        let item = words.strip_prefix("* ").or(words.strip_prefix("- "));
        if item.is_some() {
            end(&mut text);
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(item.unwrap_or(words));
    }
    end(&mut text);
}

/// Replaces each code span by one word, and a link by its text.
fn without_code(text: &str) -> String {
    let mut plain = String::new();
    for (place, part) in text.split('`').enumerate() {
        plain.push_str(if place % 2 == 0 { part } else { "X" });
    }
    plain.replace("[X]", "X")
}

/// Splits a paragraph at `.`, `!` and `?` before a blank.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        let before = text[..at].trim_end_matches(')');
        if before.ends_with(['.', '!', '?']) {
            found.push(text[start..at].trim());
            start = at;
        }
    }
    found.push(text[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_falls_into_paragraphs_and_these_into_sentences() {
        let source = "//! First. Second\n//! goes on `a b c`.\n//!\n//! * item\n//! ```\n//! code\n//! ```\nfn f() {\n    // Why.\n}\n";
        let found = paragraphs(source);
        let texts: Vec<&str> = found.iter().map(|paragraph| paragraph.text.as_str()).collect();
        assert_eq!(texts, ["First. Second goes on X.", "item", "Why."]);
        let opens: Vec<bool> = found.iter().map(|paragraph| paragraph.opens_doc).collect();
        assert_eq!(opens, [true, false, false]);
        assert_eq!(found[2].line, 9);
        assert_eq!(sentences(texts[0]), ["First.", "Second goes on X."]);
        assert_eq!(sentences("One (two.) Three"), ["One (two.)", "Three"]);
    }
}
