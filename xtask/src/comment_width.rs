//! Comments that are wider than a reader's window. Drawings and tables may be.

use std::path::Path;

use anyhow::Context as _;

use crate::sources::rust_files;

/// Columns of a comment, with its indentation.
const COLUMNS: usize = 100;

/// Each comment line of prose under a folder that is too wide, as `file:line`.
pub(crate) fn too_wide(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in rust_files(folder)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = (1..).zip(text.lines());
        found.extend(lines.filter(|(_, line)| is_wide_prose(line)).map(|(number, line)| {
            format!("{}:{number}: a comment of {} columns", path.display(), line.chars().count())
        }));
    }
    Ok(found)
}

/// A drawing has gaps, arrows or bars, and code that is shown has a `;` or `{` at its end or an
/// assignment.
fn is_wide_prose(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("//") else { return false };
    let text = text.trim_start_matches(['/', '!']);
    let text = text.strip_prefix(' ').unwrap_or(text);
    let is_drawing = ["  ", "->", "<-", "| ", " |", "──"].iter().any(|mark| text.contains(mark));
    let is_code = text.ends_with(';') || text.starts_with("let ") || text.starts_with('{');
    line.chars().count() > COLUMNS && !is_drawing && !is_code && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::is_wide_prose;

    #[test]
    fn prose_is_told_from_drawings() {
        let word = "word ".repeat(25);
        assert!(is_wide_prose(&format!("    /// {word}")));
        assert!(!is_wide_prose(&format!("    /// {word} --> {word}")));
        assert!(!is_wide_prose(&format!("//!  a     b  {word}")));
        assert!(!is_wide_prose("// short"));
        assert!(!is_wide_prose(&format!("let text = \"{word}\";")));
    }
}
