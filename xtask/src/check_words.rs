//! Checks the rules for the words of comments that a machine can check. They are the beginning of a
//! doc comment, the length of a sentence, and that a thing is described by what it is.

use anyhow::{Context as _, bail};

use crate::comments::{paragraphs, sentences};
use crate::sources::rust_files;

/// Largest number of words of a sentence.
const WORDS_MAX: usize = 25;

/// First words of a doc comment whose subject is a relative clause, or stands in another item.
const OPENINGS: &[&str] = &[
    "The same",
    "What",
    "Who",
    "Whose",
    "Whom",
    "Where",
    "When",
    "How",
    "Of",
    "It",
    "Its",
    "They",
    "Their",
    "Those",
    "These",
    "That",
    "Nothing",
    "Nobody",
    "None",
    "So",
    "Such",
    "Same",
    "Like",
    "There",
    "No longer",
    "As there",
    "As in",
    "As of",
    "As for",
    "As above",
    "As with",
    "As before",
    "As if",
    "As by",
    "As to",
    "Whether it",
    "Whether they",
    "Whether one",
    "Whether that",
    "Whether there",
    "Whether this",
    "Whether these",
    "Whether its",
    "Whether nothing",
];
/// First words that only the help of an option may have, where they continue the option's name.
const OPENINGS_OF_HELP: &[&str] = &["Which", "Also"];
/// First words that make a relative clause with one of [`RELATIVE`].
const PREPOSITIONS: &[&str] = &["By", "From", "To", "For", "With", "In", "At", "On"];
const RELATIVE: &[&str] = &["which", "what", "whom", "whose"];
/// Verbs before "none" as a predicate.
const VERBS: &[&str] = &["is", "are", "was", "were", "be", "has", "have"];

/// Checks the comments of all crates; of the arguments of commands they are the help.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = crate::root();
    let mut errors = Vec::new();
    let mut files = 0_usize;
    for path in [rust_files(&root.join("crates"))?, rust_files(&root.join("xtask"))?].concat() {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        errors.extend(breaches(&text).into_iter().map(|(line, what)| format!("{shown}:{line}: {what}")));
        files += 1;
    }
    if !errors.is_empty() {
        bail!("comments break the rules of words (docs/contributing.md):\n  {}", errors.join("\n  "));
    }
    println!("check-words: {files} files keep the rules");
    Ok(())
}

/// Returns the breaches of a source, each with the line in which its comment begins.
fn breaches(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for paragraph in paragraphs(source) {
        if paragraph.opens_doc
            && let Some(opening) = bad_opening(&paragraph.text, paragraph.is_help)
        {
            found.push((paragraph.line, format!("a doc comment begins with \"{opening}\"")));
        }
        for sentence in sentences(&paragraph.text) {
            let words: Vec<&str> = sentence.split_whitespace().collect();
            if words.len() > WORDS_MAX {
                found.push((paragraph.line, format!("a sentence of {} words: {sentence}", words.len())));
            }
            if is_negative(&words) {
                found.push((paragraph.line, format!("says what a thing is not: {sentence}")));
            }
        }
    }
    found
}

/// Returns the first words of a text that may not open a doc comment. `is_help`: see
/// [`OPENINGS_OF_HELP`].
fn bad_opening(text: &str, is_help: bool) -> Option<String> {
    let words: Vec<&str> = text.trim_start_matches('(').split_whitespace().take(2).map(bare).collect();
    let first = words.first()?;
    let both = words.join(" ");
    let is_relative = words.len() > 1 && PREPOSITIONS.contains(first) && RELATIVE.contains(&words[1]);
    let is_cut = !is_help && OPENINGS_OF_HELP.contains(first);
    let is_listed = OPENINGS.contains(first) || OPENINGS.contains(&both.as_str());
    (is_relative || is_cut || is_listed).then_some(both)
}

/// True for words that describe a thing by its absence: see the tests.
fn is_negative(words: &[&str]) -> bool {
    let lower: Vec<String> = words.iter().map(|word| bare(word).to_lowercase()).collect();
    lower.iter().any(|word| word == "nobody")
        || lower.windows(2).any(|pair| VERBS.contains(&pair[0].as_str()) && pair[1] == "none")
}

/// Returns a word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::breaches;

    #[test]
    fn openings_lengths_and_negations_are_told() {
        let long = format!("/// Number of {}.\n", "words ".repeat(30).trim_end());
        let bad = [
            "/// The same, of a thread.\n",
            "/// By which it is told.\n",
            "/// Whether it is.\n",
            "/// Whether nothing is left.\n",
            "/// Like the other, without names.\n",
            "/// Which allocations count.\npub counted: Counted,\n",
            "/// A block that is none.\n",
            "// Said by nobody.\n",
            &long,
        ];
        for source in bad {
            assert_eq!(breaches(source).len(), 1, "{source}");
        }
        let good = [
            "/// Whether the thread is stopped.\n",
            "/// Number of threads; none at the start.\n",
            "// It may move.\n",
            "/// Which allocations count\n#[arg(long)]\npub counted: Counted,\n",
            "/// ```\n/// What is shown.\n/// ```\n",
            "/// By the name of `what is` there.\n",
        ];
        for source in good {
            assert_eq!(breaches(source), [], "{source}");
        }
    }
}
