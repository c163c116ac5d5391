//! Text of a script, and the outer names that a function in it uses.
//!
//! The result errs on one side: a possible use counts as a use. Names of properties, keys, texts
//! and comments do not count, nor do names that parameters hide. If a text cannot be parsed, or a
//! function calls `eval`, every name counts as used.

mod functions;
mod tokens;

use std::collections::HashMap;

use functions::{Function, functions};
use rustc_hash::FxHashSet;
use tokens::{Kind, OUTSIDE, Token, is_object, tokens};

/// Parsed script.
#[derive(Debug)]
pub(crate) struct ScriptText {
    text: String,
    line_starts: Vec<usize>,
    tokens: Vec<Token>,
    /// Functions, in order of their start.
    functions: Vec<Function>,
    /// Functions by the first byte of their parameters.
    by_start: HashMap<usize, usize>,
}

/// Names that a function uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Uses {
    /// Used names, except those that belong to the function itself.
    Names(FxHashSet<String>),
    /// Any name may be used.
    Everything,
}

impl Uses {
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Names(names) => names.contains(name),
            Self::Everything => true,
        }
    }
}

impl ScriptText {
    /// Parses a script. Returns `None` if it cannot be parsed.
    pub(crate) fn of(text: String) -> Option<Self> {
        let tokens = tokens(&text)?;
        let functions = functions(text.as_bytes(), &tokens);
        let start = |function: &Function| tokens[function.first].start as usize;
        let by_start = functions.iter().enumerate().map(|(at, function)| (start(function), at)).collect();
        let line_starts = line_starts(&text);
        Some(Self { text, line_starts, tokens, functions, by_start })
    }

    /// Returns the names used by the function that, according to V8, begins at this line and column
    /// (from 0, in UTF-16 units).
    pub(crate) fn uses_at(&self, line: u32, column: u32) -> Uses {
        let offset = self.offset(line, column);
        let function = offset.and_then(|offset| self.function_at(offset));
        function.map_or(Uses::Everything, |function| self.uses(function))
    }

    fn function_at(&self, offset: usize) -> Option<usize> {
        if let Some(&at) = self.by_start.get(&offset) {
            return Some(at);
        }
        // For some asynchronous functions, V8 reports the position of this word.
        let token = self.tokens.binary_search_by_key(&(offset as u32), |token| token.start).ok()?;
        let next = self.tokens.get(token + 1).filter(|_| self.word(token) == Some("async"))?;
        self.by_start.get(&(next.start as usize)).copied()
    }

    fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let start = *self.line_starts.get(line as usize)?;
        let mut units = 0;
        for (at, character) in self.text[start..].char_indices() {
            if units >= column {
                return (units == column).then_some(start + at);
            }
            units += character.len_utf16() as u32;
        }
        None
    }

    fn word(&self, token: usize) -> Option<&str> {
        let Token { start, end, kind, .. } = *self.tokens.get(token)?;
        (kind == Kind::Word).then(|| &self.text[start as usize..end as usize])
    }

    fn kind(&self, token: usize) -> Option<Kind> {
        self.tokens.get(token).map(|token| token.kind)
    }

    fn uses(&self, function: usize) -> Uses {
        let Function { first, last, .. } = self.functions[function];
        let mut names = FxHashSet::default();
        // Functions around the token, this one first.
        let mut around: Vec<usize> = Vec::new();
        let mut next = function;
        for at in first..=last {
            while self.functions.get(next).is_some_and(|function| function.first <= at) {
                around.push(next);
                next += 1;
            }
            around.retain(|&function| self.functions[function].last >= at);
            let Some(word) = self.word(at) else { continue };
            if word.contains('\\') || word == "eval" && self.kind(at + 1) == Some(Kind::Open(b'(')) {
                return Uses::Everything;
            }
            let is_property = at > 0 && self.kind(at - 1) == Some(Kind::Dot);
            if is_property || word.starts_with('#') || self.is_key(at) {
                continue;
            }
            let is_hidden = around.iter().any(|&function| self.functions[function].hides(word, at));
            if !is_hidden && !names.contains(word) {
                names.insert(word.to_owned());
            }
        }
        Uses::Names(names)
    }

    /// Whether a word is the key of an object's field: `{ key: … }`.
    fn is_key(&self, at: usize) -> bool {
        let is_before = at.checked_sub(1).and_then(|before| self.kind(before));
        let around = self.tokens[at].partner;
        self.kind(at + 1) == Some(Kind::Sign(b':'))
            && matches!(is_before, Some(Kind::Open(b'{') | Kind::Sign(b',')))
            && around != OUTSIDE
            && self.kind(around as usize) == Some(Kind::Open(b'{'))
            && is_object(self.text.as_bytes(), &self.tokens, around as usize)
    }
}

/// Returns the start of each line; lines end as in V8.
fn line_starts(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_end = match character {
            '\n' | '\u{2028}' | '\u{2029}' => true,
            '\r' => characters.peek().is_none_or(|&(_, next)| next != '\n'),
            _ => false,
        };
        if is_end {
            starts.push(at + character.len_utf8());
        }
    }
    starts
}

#[cfg(test)]
mod tests;
