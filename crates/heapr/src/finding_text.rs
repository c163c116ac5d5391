//! Findings as text.

use std::io::{self, Write};

use heapr_findings::Finding;

use crate::plain_text::{error_line_width, line_width, page_columns};
use crate::style::Style;

/// Writes the findings, with evidence and confidence if `is_whole`, and then the verdict: what was
/// found comes before what was not.
pub(crate) fn write(
    out: &mut dyn Write,
    verdict: &str,
    findings: &[Finding],
    style: Style,
    is_whole: bool,
) -> io::Result<()> {
    let width = if is_whole { line_width() } else { error_line_width() };
    let columns = page_columns(width).clamp(60, 110);
    for (number, finding) in findings.iter().enumerate() {
        for (line, text) in wrapped(&finding.sentence, columns - 3).iter().enumerate() {
            let lead = if line == 0 { format!("{}. ", number + 1) } else { "   ".to_owned() };
            writeln!(out, "{lead}{}", style.bold(text))?;
        }
        if is_whole {
            for evidence in &finding.evidence {
                for (line, text) in wrapped(evidence, columns - 5).iter().enumerate() {
                    writeln!(out, "   {} {text}", if line == 0 { "-" } else { " " })?;
                }
            }
            writeln!(out, "   {} confidence; more:", finding.confidence.name())?;
        }
        // A command is never cut, so that it can be copied.
        writeln!(out, "   {}", style.faint(&finding.command))?;
    }
    if !verdict.is_empty() {
        for line in wrapped(verdict, columns) {
            writeln!(out, "{}", style.bold(&line))?;
        }
    }
    Ok(())
}

/// Breaks text into lines of at most `columns` characters. A longer word has a line of its own, and
/// a unit stays with its number.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    const UNITS: [&str; 8] = ["B", "KiB", "MiB", "GiB", "TiB", "%", "ms", "s"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches(|sign: char| ",.;:)".contains(sign)));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|last: char| last.is_ascii_digit()) => {
                number.extend([" ", word]);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.extend([" ", &word]);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a_word_longer_than_a_line b", 7), ["a_word_longer_than_a_line", "b"]);
        assert_eq!(wrapped("", 7), [""; 0]);
        assert_eq!(wrapped("holds 12.5 MiB, or 3 %.", 11), ["holds", "12.5 MiB,", "or 3 %."]);
    }
}
