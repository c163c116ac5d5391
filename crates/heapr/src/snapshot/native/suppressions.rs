//! Leaks that are known and not to be told, in LeakSanitizer's syntax: lines `leak:PATTERN`.
//!
//! A pattern is looked for in function names, source files and modules of a leak's stack. `*`
//! stands for anything, `^` and `$` hold it to the beginning and the end.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context as _, bail};
use heapr_query::FrameView;

/// The patterns of a file, and how often each was met.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    /// Between stars.
    parts: Vec<String>,
    is_at_start: bool,
    is_at_end: bool,
    met: Cell<u64>,
}

impl Suppressions {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut patterns = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':') {
                Some(("leak", pattern)) if !pattern.is_empty() => patterns.push(Pattern::of(pattern)),
                // Files are shared between sanitizers.
                Some((kind, _))
                    if kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) => {}
                _ => bail!("line {}: {line:?} is not leak:PATTERN", number + 1),
            }
        }
        Ok(Self { patterns })
    }

    /// Whether a stack is not to be told; counts it for the pattern that says so.
    pub(crate) fn holds(&self, frames: &[FrameView<'_>], count: u64) -> bool {
        let is_met = |pattern: &&Pattern| {
            frames.iter().any(|frame| {
                let texts = [frame.symbol, frame.file, frame.module];
                texts.into_iter().flatten().any(|text| pattern.is_in(text))
            })
        };
        let Some(pattern) = self.patterns.iter().find(is_met) else { return false };
        pattern.met.set(pattern.met.get() + count);
        true
    }

    /// Patterns that were met, and how often.
    pub(crate) fn met(&self) -> impl Iterator<Item = (&str, u64)> {
        let met = self.patterns.iter().filter(|pattern| pattern.met.get() > 0);
        met.map(|pattern| (pattern.text.as_str(), pattern.met.get()))
    }
}

impl Pattern {
    fn of(text: &str) -> Self {
        let bare = text.strip_prefix('^');
        let is_at_start = bare.is_some();
        let rest = bare.unwrap_or(text);
        let bare = rest.strip_suffix('$');
        let parts = bare.unwrap_or(rest).split('*').map(str::to_owned).collect();
        Self { text: text.to_owned(), parts, is_at_start, is_at_end: bare.is_some(), met: Cell::new(0) }
    }

    fn is_in(&self, text: &str) -> bool {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return false };
        if self.is_at_start && !text.starts_with(first.as_str())
            || self.is_at_end && !text.ends_with(last.as_str())
        {
            return false;
        }
        let mut rest = text;
        for (number, part) in self.parts.iter().enumerate() {
            let is_end = self.is_at_end && number + 1 == self.parts.len();
            let place = match is_end {
                true if rest.ends_with(part.as_str()) => Some(rest.len() - part.len()),
                true => None,
                false => rest.find(part.as_str()),
            };
            let Some(place) = place else { return false };
            if number == 0 && self.is_at_start && place != 0 {
                return false;
            }
            rest = &rest[place + part.len()..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_the_sanitizer() {
        let is_in = |pattern: &str, text: &str| Pattern::of(pattern).is_in(text);
        assert!(is_in("make", "foo::make_it") && !is_in("^make", "foo::make_it"));
        assert!(is_in("^foo*it$", "foo::make_it") && !is_in("^foo*it$", "foo::make_its"));
        assert!(is_in("a*a$", "aa") && !is_in("^a*a$", "a") && is_in("*", "x"));
        assert!(is_in("libfoo.so", "/usr/lib/libfoo.so.1"));
        assert!(is_in("^it$", "it") && !is_in("^it$", "itit"));
    }

    #[test]
    fn other_kinds_and_comments_are_passed_over() {
        let read = Suppressions::parse("# known\nleak:foo\n\nrace:bar\n  leak:^b*$  \n").unwrap();
        assert_eq!(
            read.patterns.iter().map(|pattern| pattern.text.as_str()).collect::<Vec<_>>(),
            ["foo", "^b*$"]
        );
        assert!(Suppressions::parse("what is this").is_err());
    }
}
