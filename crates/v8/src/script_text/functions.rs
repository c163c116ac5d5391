//! Functions of a script, and the names that belong to each.

use super::tokens::{Kind, Token};
use heapr_table::SortRows as _;

/// Function: tokens from its parameters to its end.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) first: usize,
    pub(super) last: usize,
    /// Names of its parameters.
    parameters: Vec<String>,
    /// Names that the body declares at its top level, and the token where the body begins.
    declared: Vec<String>,
    body: usize,
}

impl Function {
    /// Whether a name at a token within the function is a parameter or declared in the body.
    pub(super) fn hides(&self, name: &str, at: usize) -> bool {
        self.parameters.iter().any(|own| own == name)
            || at >= self.body && self.declared.iter().any(|own| own == name)
    }
}

/// Finds all functions, in order of their start.
pub(super) fn functions(text: &[u8], tokens: &[Token]) -> Vec<Function> {
    let finder = Finder { text, tokens };
    let mut found: Vec<Function> = (0..tokens.len()).filter_map(|at| finder.function_of(at)).collect();
    found.sort_rows_by_key(|function| (function.first, std::cmp::Reverse(function.last)));
    found.dedup_by_key(|function| function.first);
    found
}

struct Finder<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
}

impl Finder<'_> {
    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn word(&self, at: usize) -> &[u8] {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Word => &self.text[token.start as usize..token.end as usize],
            _ => b"",
        }
    }

    fn partner(&self, at: usize) -> usize {
        self.tokens[at].partner as usize
    }

    /// Returns the function that an arrow, or the bracket before parameters, belongs to.
    fn function_of(&self, at: usize) -> Option<Function> {
        match self.tokens[at].kind {
            Kind::Arrow => {
                let before = at.checked_sub(1)?;
                let first = match self.tokens[before].kind {
                    Kind::Word => before,
                    Kind::Close(b')') => self.partner(before),
                    _ => return None,
                };
                Some(self.function(first, before, at + 1))
            }
            Kind::Open(b'(') => {
                let close = self.partner(at);
                let body = close + 1;
                let is_body = self.kind(body) == Some(Kind::Open(b'{'));
                (is_body && self.is_head(at, body)).then(|| self.function(at, close, body))
            }
            _ => None,
        }
    }

    /// Whether the word before the parameters is `function`, or the name of a method.
    fn is_head(&self, open: usize, body: usize) -> bool {
        let Some(before) = open.checked_sub(1) else { return false };
        let mut word = before;
        if self.kind(word) == Some(Kind::Word) && self.word(word) != b"function" {
            word = word.wrapping_sub(1);
        }
        if self.kind(word) == Some(Kind::Sign(b'*')) {
            word = word.wrapping_sub(1);
        }
        let is_function = self.word(word) == b"function";
        // A call followed by a block on the next line looks like a method.
        let is_method = !self.tokens[body].is_on_new_line
            && match self.tokens[before].kind {
                Kind::Word => {
                    let word = self.word(before);
                    !matches!(word, b"if" | b"for" | b"while" | b"switch" | b"catch" | b"with" | b"await")
                }
                Kind::Text | Kind::Number | Kind::Close(b']') => true,
                _ => false,
            };
        is_function || is_method
    }

    fn function(&self, first: usize, last_of_parameters: usize, body: usize) -> Function {
        let last = match self.kind(body) {
            Some(Kind::Open(b'{')) => self.partner(body),
            _ => self.end_of_expression(body),
        };
        let declared =
            if self.kind(body) == Some(Kind::Open(b'{')) { self.declared(body) } else { Vec::new() };
        Function { first, last, parameters: self.parameters(first, last_of_parameters), declared, body }
    }

    /// Returns the last token of the expression that begins here, rather too far than too short.
    fn end_of_expression(&self, first: usize) -> usize {
        let mut at = first;
        while let Some(token) = self.tokens.get(at) {
            let is_end = match token.kind {
                Kind::Close(_) | Kind::Sign(b',' | b';') => true,
                Kind::Word | Kind::Number if token.is_on_new_line && at > first => {
                    let is_operator = matches!(self.word(at), b"in" | b"instanceof");
                    !is_operator && self.ends_expression(at - 1)
                }
                _ => false,
            };
            if is_end {
                break;
            }
            at = if matches!(token.kind, Kind::Open(_)) { self.partner(at) + 1 } else { at + 1 };
        }
        at.saturating_sub(1).max(first.min(self.tokens.len().saturating_sub(1)))
    }

    fn ends_expression(&self, at: usize) -> bool {
        match self.tokens[at].kind {
            Kind::Word => {
                let operators: [&[u8]; 8] =
                    [b"new", b"typeof", b"delete", b"void", b"in", b"instanceof", b"await", b"yield"];
                !operators.contains(&self.word(at))
            }
            Kind::Number | Kind::Text | Kind::Regex | Kind::Close(_) => true,
            _ => false,
        }
    }

    /// Returns the names of parameters, including those in `{ a, b }`, but not in nested patterns.
    fn parameters(&self, first: usize, last: usize) -> Vec<String> {
        if first == last {
            return self.name(first).into_iter().collect();
        }
        let mut names = Vec::new();
        let mut at = first + 1;
        while at < last {
            let begins = matches!(self.kind(at - 1), Some(Kind::Open(_) | Kind::Sign(b',') | Kind::Spread));
            match self.tokens[at].kind {
                Kind::Word if begins => names.extend(self.name(at)),
                Kind::Open(b'{') if begins => {
                    names.extend(self.of_pattern(at));
                    at = self.partner(at);
                }
                Kind::Open(_) => at = self.partner(at),
                _ => {}
            }
            at += 1;
        }
        names
    }

    fn of_pattern(&self, open: usize) -> Vec<String> {
        let close = self.partner(open);
        let mut names = Vec::new();
        let mut at = open + 1;
        while at < close {
            let begins =
                matches!(self.kind(at - 1), Some(Kind::Open(b'{') | Kind::Sign(b',') | Kind::Spread));
            let ends =
                matches!(self.kind(at + 1), Some(Kind::Close(b'}') | Kind::Sign(b',') | Kind::Sign(b'=')));
            match self.tokens[at].kind {
                Kind::Word if begins && ends => names.extend(self.name(at)),
                Kind::Open(_) => at = self.partner(at),
                _ => {}
            }
            at += 1;
        }
        names
    }

    /// Returns the first names of declarations at the top level of the body.
    fn declared(&self, body: usize) -> Vec<String> {
        let close = self.partner(body);
        let mut names = Vec::new();
        let mut at = body + 1;
        while at < close {
            let begins =
                matches!(self.kind(at - 1), Some(Kind::Open(_) | Kind::Close(b'}') | Kind::Sign(b';')));
            match self.tokens[at].kind {
                Kind::Word if begins || self.tokens[at].is_on_new_line && self.ends_expression(at - 1) => {
                    if matches!(self.word(at), b"let" | b"const" | b"var" | b"class" | b"function") {
                        names.extend(self.name(at + 1));
                    }
                }
                Kind::Open(_) => at = self.partner(at),
                _ => {}
            }
            at += 1;
        }
        names
    }

    fn name(&self, at: usize) -> Option<String> {
        let word = self.word(at);
        (!word.is_empty()).then(|| String::from_utf8_lossy(word).into_owned())
    }
}
