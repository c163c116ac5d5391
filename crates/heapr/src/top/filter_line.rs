//! Filter as it is typed: the options of `heapr report`, or names of frames.

use clap::Parser;
use heapr_filters::FilterArguments;

/// Refusal of options that name files: a reading again and again would need them each time.
pub(super) const NO_LISTS: &str = "heapr top takes no lists in files: use heapr report";

/// Line with a filter.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, name = "filter")]
struct FilterLine {
    #[command(flatten)]
    filters: FilterArguments,
    /// Frames, as by `--require-frames`
    frames: Vec<String>,
}

/// Parses a filter: options as of `heapr report`, and words that are `--require-frames`.
///
/// # Errors
/// An option is unknown or lacks a value, or a quote is not closed.
pub(super) fn parse(text: &str) -> Result<FilterArguments, String> {
    let words = words(text)?;
    let line = FilterLine::try_parse_from(words).map_err(|error| first_line(&error.to_string()))?;
    let mut filters = line.filters;
    if !filters.cull_lists.is_empty() || !filters.suppress.is_empty() {
        return Err(NO_LISTS.to_owned());
    }
    filters.require_frames.extend(line.frames);
    Ok(filters)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Splits a line into words at blanks outside of quotes.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("{open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// Writes words as a line that [`parse`] splits into the same words.
pub(super) fn line(words: &[String]) -> String {
    let quoted = |word: &String| {
        let needs_quotes = |character: char| character.is_whitespace() || "'\"".contains(character);
        if !word.is_empty() && !word.contains(needs_quotes) {
            return word.clone();
        }
        format!("'{}'", word.replace('\'', "'\"'\"'"))
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_grammar_of_reports() {
        let filter = parse("--size 1K 2K --thread 'a b' render libfoo.so!").unwrap();
        assert_eq!(filter.size, Some(vec!["1K".to_owned(), "2K".to_owned()]));
        assert_eq!(filter.thread, ["a b"]);
        assert_eq!(filter.require_frames, ["render", "libfoo.so!"]);
        assert_eq!(parse("").unwrap(), FilterArguments::default());
    }

    #[test]
    fn a_line_of_words_is_split_into_the_same_words() {
        let given = ["--thread", "a b", "c", "it's \"d\"", ""].map(str::to_owned);
        assert_eq!(words(&line(&given)).unwrap(), given);
    }

    #[test]
    fn a_wrong_filter_is_said_in_one_line() {
        for (text, said) in
            [("--such", "--such"), ("'a", "' is not closed"), ("--suppress x", "heapr report")]
        {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}
