//! Templates and their arguments: types, symbols and values.

use super::reader::Reader;

impl Reader<'_> {
    pub(super) fn template(&mut self) -> Option<String> {
        (self.take_text("__T") || self.take_text("__U")).then_some(())?;
        let name = self.identifier()?;
        let mut arguments = Vec::new();
        while !self.take(b'Z') {
            self.take(b'H');
            let kind = self.peek();
            self.at += 1;
            arguments.push(match kind {
                b'T' => self.a_type()?,
                b'S' => self.symbol_argument()?,
                b'V' => {
                    let start = self.at;
                    let name = self.a_type()?;
                    let code = |at: usize| self.text.as_bytes().get(at).copied();
                    let kind = match code(start)? {
                        b'Q' => code(self.back_reference(start)?.0)?,
                        kind => kind,
                    };
                    self.value(kind, &name)?
                }
                b'X' => {
                    let bytes = self.number()?;
                    let end = self.at.checked_add(bytes)?;
                    let text = self.text.get(self.at..end)?.to_owned();
                    self.at = end;
                    text
                }
                _ => return None,
            });
        }
        Some(format!("{name}!({})", arguments.join(", ")))
    }

    /// Reads a symbol as a template argument: a whole declaration or a path. Before 2017, its
    /// length precedes it.
    pub(super) fn symbol_argument(&mut self) -> Option<String> {
        if self.take_text("_D") {
            return self.declaration();
        }
        let start = self.at;
        if self.peek().is_ascii_digit()
            && let Some(bytes) = self.number()
            && self.take_text("_D")
        {
            let end = (self.at - 2).checked_add(bytes)?;
            let name = self.declaration()?;
            return (self.at == end).then_some(name);
        }
        self.at = start;
        self.qualified(false)
    }

    /// Reads a value of a type with the name `name` whose code begins with `kind`.
    pub(super) fn value(&mut self, kind: u8, name: &str) -> Option<String> {
        self.deeper(|reader| match reader.peek() {
            b'n' => {
                reader.at += 1;
                Some("null".to_owned())
            }
            b'N' => {
                reader.at += 1;
                Some(format!("-{}", reader.integer(kind)?))
            }
            b'i' => {
                reader.at += 1;
                reader.integer(kind)
            }
            b'0'..=b'9' => reader.integer(kind),
            b'e' => {
                reader.at += 1;
                reader.real()
            }
            b'c' => {
                reader.at += 1;
                let real = reader.real()?;
                let imaginary = reader.take(b'c').then(|| reader.real())??;
                Some(format!("{real}+{imaginary}i"))
            }
            b'a' | b'w' | b'd' => reader.string(),
            b'A' => {
                reader.at += 1;
                let count = reader.number()?;
                let is_map = kind == b'H';
                let mut parts = Vec::new();
                for _ in 0..count {
                    let value = reader.value(0, "")?;
                    parts.push(if is_map { format!("{value}:{}", reader.value(0, "")?) } else { value });
                }
                Some(format!("[{}]", parts.join(", ")))
            }
            b'S' => {
                reader.at += 1;
                let count = reader.number()?;
                let mut parts = Vec::new();
                for _ in 0..count {
                    parts.push(reader.value(0, "")?);
                }
                Some(format!("{name}({})", parts.join(", ")))
            }
            b'f' => {
                reader.at += 1;
                reader.take_text("_D").then(|| reader.declaration())?
            }
            _ => None,
        })
    }

    pub(super) fn integer(&mut self, kind: u8) -> Option<String> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let text = self.text.get(self.at..self.at + digits).filter(|text| !text.is_empty())?;
        self.at += digits;
        Some(match kind {
            b'b' => (text != "0").to_string(),
            b'a' | b'u' | b'w' => {
                let character = text.parse().ok().and_then(char::from_u32)?;
                if character == ' ' || character.is_ascii_graphic() {
                    format!("'{character}'")
                } else {
                    format!("'\\u{{{:x}}}'", u32::from(character))
                }
            }
            b'h' | b't' | b'k' => format!("{text}u"),
            b'l' => format!("{text}L"),
            b'm' => format!("{text}uL"),
            _ => text.to_owned(),
        })
    }

    /// Reads hexadecimal digits, of which the first stands before the point, and an exponent behind
    /// `P`.
    pub(super) fn real(&mut self) -> Option<String> {
        for (code, text) in [("NAN", "NaN"), ("INF", "Inf"), ("NINF", "-Inf")] {
            if self.take_text(code) {
                return Some(text.to_owned());
            }
        }
        let sign = if self.take(b'N') { "-" } else { "" };
        let digits = self.rest().bytes().take_while(u8::is_ascii_hexdigit).count();
        let mantissa = self.text.get(self.at..self.at + digits).filter(|digits| !digits.is_empty())?;
        self.at += digits;
        let power = self.take(b'P').then(|| {
            let sign = if self.take(b'N') { "-" } else { "" };
            Some(format!("{sign}{}", self.number()?))
        })??;
        let (whole, rest) = mantissa.split_at(1);
        Some(format!("{sign}0x{whole}.{rest}p{power}"))
    }

    pub(super) fn string(&mut self) -> Option<String> {
        let suffix = match self.peek() {
            b'a' => "",
            b'w' => "w",
            _ => "d",
        };
        self.at += 1;
        let bytes = self.number()?;
        self.take(b'_').then_some(())?;
        let end = self.at.checked_add(bytes.checked_mul(2)?)?;
        let digits = self.text.get(self.at..end)?;
        self.at = end;
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let text: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        Some(format!("\"{}\"{suffix}", String::from_utf8_lossy(&text?).escape_default()))
    }
}
