//! Candidates for a word, and their kind.

use std::fmt::Write as _;

use crate::plain_text::printable;

/// Kind of an answer, which tells the shell how to offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words with descriptions that explain them.
    Words,
    /// Numbers or names that say nothing without their descriptions.
    Described,
    /// Paths, of which those that end in `/` go on.
    Paths,
    /// All files: the shell lists them.
    Files,
    /// All directories: the shell lists them.
    Directories,
    /// Programs: the shell lists them.
    Commands,
}

/// Candidate with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) description: String,
}

/// Answer to a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidates {
    pub(super) kind: Kind,
    pub(super) list: Vec<Candidate>,
}

impl Candidates {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, list: Vec::new() }
    }

    /// Adds a candidate if it begins as the typed word does.
    pub(super) fn add(&mut self, typed: &str, word: impl Into<String>, description: impl Into<String>) {
        let word = word.into();
        if word.starts_with(typed) {
            self.list.push(Candidate { word, description: description.into() });
        }
    }

    /// Returns the lines of the answer.
    pub(super) fn text(&self) -> String {
        let kind = match self.kind {
            Kind::Words => "words",
            Kind::Described => "described",
            Kind::Paths => "paths",
            Kind::Files => "files",
            Kind::Directories => "directories",
            Kind::Commands => "commands",
        };
        let mut text = format!("{kind}\n");
        for candidate in &self.list {
            let _ = writeln!(text, "{}\t{}", printable(&candidate.word), printable(&candidate.description));
        }
        text
    }
}
