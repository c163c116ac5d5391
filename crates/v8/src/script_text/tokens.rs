//! Tokens of JavaScript: words, texts and brackets. There is no grammar beyond the distinction of
//! names from everything else.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Name or keyword.
    Word,
    Number,
    /// String, or part of a template.
    Text,
    Regex,
    /// `(`, `[`, `{`, and `${` of a template as `{`.
    Open(u8),
    Close(u8),
    /// Arrow, `=>`.
    Arrow,
    /// Dot, `.` or `?.`: a property name follows.
    Dot,
    /// Spread, `...`.
    Spread,
    /// Any other sign, by its first byte. For `++` and `--`, which may end or begin an expression,
    /// one token.
    Sign(u8),
}

/// Token: a range of bytes of the script's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) kind: Kind,
    /// Whether a line begins before the token.
    pub(super) is_on_new_line: bool,
    /// Number of the other bracket, for a bracket; else number of the enclosing bracket, or
    /// [`OUTSIDE`].
    pub(super) partner: u32,
}

/// Enclosing bracket of a token outside of all brackets.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// Splits a script into tokens. Returns `None` if text and code could not be told apart.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    u32::try_from(text.len()).ok()?;
    let mut reader = Reader { text: text.as_bytes(), at: 0, tokens: Vec::new(), open: Vec::new() };
    if text.starts_with("#!") {
        reader.at = text.find('\n').unwrap_or(text.len());
    }
    reader.read()?;
    reader.open.is_empty().then_some(reader.tokens)
}

/// Keywords before an expression.
const BEFORE_EXPRESSIONS: [&[u8]; 14] = [
    b"return",
    b"typeof",
    b"case",
    b"in",
    b"of",
    b"instanceof",
    b"new",
    b"delete",
    b"void",
    b"throw",
    b"do",
    b"else",
    b"yield",
    b"await",
];

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Open brackets, and whether they belong to a template.
    open: Vec<(u32, bool)>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        loop {
            let is_on_new_line = self.skip_space()?;
            let Some(&byte) = self.text.get(self.at) else { return Some(()) };
            let start = self.at;
            let kind = match byte {
                b'"' | b'\'' => self.string(byte)?,
                b'`' => {
                    self.at += 1;
                    self.template(start, is_on_new_line)?;
                    continue;
                }
                b'(' | b'[' | b'{' => {
                    self.at += 1;
                    self.push(start, Kind::Open(byte), is_on_new_line);
                    self.open.push((self.tokens.len() as u32 - 1, false));
                    continue;
                }
                b')' | b']' | b'}' => {
                    self.at += 1;
                    let is_template = self.close(start, byte, is_on_new_line)?;
                    if is_template {
                        self.template(self.at, false)?;
                    }
                    continue;
                }
                b'0'..=b'9' => self.number(),
                b'.' if self.next_is(1, u8::is_ascii_digit) => self.number(),
                b'/' if self.expression_begins() => self.regex()?,
                _ if is_of_word(byte) => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|&byte| !is_of_word(byte)).unwrap_or(rest.len());
                    Kind::Word
                }
                _ => self.sign(byte),
            };
            self.push(start, kind, is_on_new_line);
        }
    }

    fn push(&mut self, start: usize, kind: Kind, is_on_new_line: bool) {
        let partner = self.open.last().map_or(OUTSIDE, |&(open, _)| open);
        self.tokens.push(Token { start: start as u32, end: self.at as u32, kind, is_on_new_line, partner });
    }

    /// Pairs a closing bracket with its opening one. Returns whether a template continues after it.
    fn close(&mut self, start: usize, byte: u8, is_on_new_line: bool) -> Option<bool> {
        let (open, is_template) = self.open.pop()?;
        let opening = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let number = self.tokens.len() as u32;
        let opened = &mut self.tokens[open as usize];
        if opened.kind != Kind::Open(opening) {
            return None;
        }
        opened.partner = number;
        self.push(start, Kind::Close(byte), is_on_new_line);
        self.tokens.last_mut()?.partner = open;
        Some(is_template)
    }

    fn next_is(&self, offset: usize, is: impl Fn(&u8) -> bool) -> bool {
        self.text.get(self.at + offset).is_some_and(is)
    }

    /// Skips spaces and comments. Returns whether a line ended in them.
    fn skip_space(&mut self) -> Option<bool> {
        let mut has_line = false;
        loop {
            let rest = &self.text[self.at..];
            match rest {
                [b'\n' | b'\r', ..] => {
                    has_line = true;
                    self.at += 1;
                }
                [b' ' | b'\t' | 0x0b | 0x0c, ..] => self.at += 1,
                // U+2028 and U+2029 end lines; U+00A0 and U+FEFF are spaces.
                [0xe2, 0x80, 0xa8 | 0xa9, ..] => {
                    has_line = true;
                    self.at += 3;
                }
                [0xef, 0xbb, 0xbf, ..] => self.at += 3,
                [0xc2, 0xa0, ..] => self.at += 2,
                [b'/', b'/', ..] => {
                    self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                }
                [b'/', b'*', ..] => {
                    let end = memchr::memmem::find(&rest[2..], b"*/")? + 4;
                    has_line |= rest[..end].contains(&b'\n');
                    self.at += end;
                }
                _ => return Some(has_line),
            }
        }
    }

    fn string(&mut self, quote: u8) -> Option<Kind> {
        self.at += 1;
        loop {
            match *self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'\n' => return None,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return Some(Kind::Text);
                    }
                }
            }
        }
    }

    /// Reads part of a template, up to its end or to a substitution.
    fn template(&mut self, start: usize, is_on_new_line: bool) -> Option<()> {
        loop {
            match *self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.push(start, Kind::Text, is_on_new_line);
                    return Some(());
                }
                b'$' if self.next_is(1, |&byte| byte == b'{') => {
                    self.push(start, Kind::Text, is_on_new_line);
                    let open = self.at;
                    self.at += 2;
                    self.push(open, Kind::Open(b'{'), false);
                    self.open.push((self.tokens.len() as u32 - 1, true));
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Kind {
        let is_hexadecimal =
            self.text[self.at] == b'0' && self.next_is(1, |byte| matches!(byte, b'x' | b'X'));
        loop {
            let is_exponent = !is_hexadecimal && self.next_is(0, |byte| matches!(byte, b'e' | b'E'));
            if is_exponent && self.next_is(1, |byte| matches!(byte, b'+' | b'-')) {
                self.at += 2;
            } else if self.next_is(0, |&byte| byte == b'.' || is_of_word(byte)) {
                self.at += 1;
            } else {
                return Kind::Number;
            }
        }
    }

    fn regex(&mut self) -> Option<Kind> {
        self.at += 1;
        let mut is_in_class = false;
        loop {
            match *self.text.get(self.at)? {
                b'\\' => self.at += 1,
                b'\n' | b'\r' => return None,
                b'[' => is_in_class = true,
                b']' => is_in_class = false,
                b'/' if !is_in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        while self.next_is(0, u8::is_ascii_alphabetic) {
            self.at += 1;
        }
        Some(Kind::Regex)
    }

    fn sign(&mut self, byte: u8) -> Kind {
        let (kind, length) = match self.text[self.at..] {
            [b'=', b'>', ..] => (Kind::Arrow, 2),
            [b'.', b'.', b'.', ..] => (Kind::Spread, 3),
            [b'?', b'.', ref rest @ ..] if !rest.first().is_some_and(u8::is_ascii_digit) => (Kind::Dot, 2),
            [b'.', ..] => (Kind::Dot, 1),
            [b'+', b'+', ..] | [b'-', b'-', ..] => (Kind::Sign(byte), 2),
            _ => (Kind::Sign(byte), 1),
        };
        self.at += length;
        kind
    }

    /// Whether a `/` at this position begins a regular expression, rather than dividing.
    fn expression_begins(&self) -> bool {
        let Some((last, before)) = self.tokens.split_last() else { return true };
        match last.kind {
            Kind::Word => {
                let is_property = before.last().is_some_and(|token| token.kind == Kind::Dot);
                !is_property && BEFORE_EXPRESSIONS.contains(&self.bytes(last))
            }
            Kind::Number | Kind::Text | Kind::Regex | Kind::Close(b']') => false,
            Kind::Close(b')') => {
                let head = before.get((last.partner as usize).wrapping_sub(1));
                head.is_some_and(|head| {
                    matches!(self.bytes(head), b"if" | b"while" | b"for" | b"with") && head.kind == Kind::Word
                })
            }
            Kind::Close(_) => !is_object(self.text, before, last.partner as usize),
            Kind::Sign(_) => last.end - last.start == 1,
            _ => true,
        }
    }

    fn bytes(&self, token: &Token) -> &[u8] {
        &self.text[token.start as usize..token.end as usize]
    }
}

/// Whether a `{` begins an object, rather than a block.
pub(super) fn is_object(text: &[u8], tokens: &[Token], open: usize) -> bool {
    let Some(before) = open.checked_sub(1).and_then(|before| tokens.get(before)) else { return false };
    match before.kind {
        Kind::Word => {
            let word = &text[before.start as usize..before.end as usize];
            BEFORE_EXPRESSIONS.contains(&word) && !matches!(word, b"do" | b"else")
        }
        Kind::Open(byte) => byte != b'{',
        Kind::Sign(byte) => byte != b';',
        Kind::Spread => true,
        _ => false,
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'\\') || byte >= 0x80
}
