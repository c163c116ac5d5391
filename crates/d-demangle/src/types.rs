//! Types: basic ones, arrays, pointers, functions with their attributes and arguments.

use super::reader::Reader;

/// Attributes of functions, each encoded after an `N`.
const ATTRIBUTES: [(u8, &str); 10] = [
    (b'a', "pure"),
    (b'b', "nothrow"),
    (b'c', "ref"),
    (b'd', "@property"),
    (b'e', "@trusted"),
    (b'f', "@safe"),
    (b'i', "@nogc"),
    (b'j', "return"),
    (b'l', "scope"),
    (b'm', "@live"),
];

const BASIC_TYPES: [(u8, &str); 23] = [
    (b'n', "typeof(null)"),
    (b'v', "void"),
    (b'g', "byte"),
    (b'h', "ubyte"),
    (b's', "short"),
    (b't', "ushort"),
    (b'i', "int"),
    (b'k', "uint"),
    (b'l', "long"),
    (b'm', "ulong"),
    (b'f', "float"),
    (b'd', "double"),
    (b'e', "real"),
    (b'o', "ifloat"),
    (b'p', "idouble"),
    (b'j', "ireal"),
    (b'q', "cfloat"),
    (b'r', "cdouble"),
    (b'c', "creal"),
    (b'b', "bool"),
    (b'a', "char"),
    (b'u', "wchar"),
    (b'w', "dchar"),
];

impl Reader<'_> {
    /// Reads the qualifiers of `this`, or of a delegate.
    pub(super) fn modifiers(&mut self) -> String {
        let mut text = String::new();
        loop {
            text += match self.peek() {
                b'x' => " const",
                b'y' => " immutable",
                b'O' => " shared",
                b'N' if self.rest().starts_with("Ng") => {
                    self.at += 1;
                    " inout"
                }
                _ => return text,
            };
            self.at += 1;
        }
    }

    pub(super) fn is_at_function(&self) -> bool {
        matches!(self.peek(), b'F' | b'U' | b'V' | b'W' | b'R' | b'Y')
    }

    /// Reads convention, attributes and arguments. Returns the text before the result's type, the
    /// attributes, and the arguments.
    pub(super) fn function_without_result(&mut self) -> Option<((&'static str, String), String)> {
        let convention = match self.peek() {
            b'F' => "",
            b'U' => "extern(C) ",
            b'V' => "extern(Pascal) ",
            b'W' => "extern(Windows) ",
            b'R' => "extern(C++) ",
            b'Y' => "extern(Objective-C) ",
            _ => return None,
        };
        self.at += 1;
        let mut attributes = String::new();
        while self.peek() == b'N' {
            let code = self.text.as_bytes().get(self.at + 1).copied().unwrap_or(0);
            let Some((_, name)) = ATTRIBUTES.iter().find(|&&(known, _)| known == code) else { break };
            attributes.extend([name, " "]);
            self.at += 2;
        }
        Some(((convention, attributes), self.arguments()?))
    }

    pub(super) fn arguments(&mut self) -> Option<String> {
        let mut arguments: Vec<String> = Vec::new();
        loop {
            self.spend(1)?;
            match self.peek() {
                b'X' => {
                    self.at += 1;
                    return Some(format!("{}...", arguments.join(", ")));
                }
                b'Y' => {
                    self.at += 1;
                    arguments.push("...".to_owned());
                    return Some(arguments.join(", "));
                }
                b'Z' => {
                    self.at += 1;
                    return Some(arguments.join(", "));
                }
                _ => {}
            }
            let mut argument = String::new();
            loop {
                let (bytes, text) = match self.peek() {
                    b'M' => (1, "scope "),
                    b'N' if self.rest().starts_with("Nk") => (2, "return "),
                    b'I' => (1, "in "),
                    b'J' => (1, "out "),
                    b'K' => (1, "ref "),
                    b'L' => (1, "lazy "),
                    _ => break,
                };
                self.at += bytes;
                argument += text;
            }
            arguments.push(argument + &self.a_type()?);
        }
    }

    pub(super) fn function(&mut self, what: &str) -> Option<String> {
        let ((convention, attributes), arguments) = self.function_without_result()?;
        let result = self.a_type()?;
        Some(format!("{convention}{result}({arguments}) {attributes}{what}"))
    }

    pub(super) fn a_type(&mut self) -> Option<String> {
        self.deeper(|reader| {
            let code = reader.peek();
            if let Some((_, name)) = BASIC_TYPES.iter().find(|&&(known, _)| known == code) {
                reader.at += 1;
                return Some((*name).to_owned());
            }
            if reader.is_at_function() {
                return reader.function("function");
            }
            if code == b'Q' {
                return reader.referred(Self::a_type);
            }
            reader.at += 1;
            Some(match code {
                b'O' => format!("shared({})", reader.a_type()?),
                b'x' => format!("const({})", reader.a_type()?),
                b'y' => format!("immutable({})", reader.a_type()?),
                b'N' if reader.take(b'g') => format!("inout({})", reader.a_type()?),
                b'N' if reader.take(b'h') => format!("__vector({})", reader.a_type()?),
                b'N' if reader.take(b'n') => "typeof(*null)".to_owned(),
                b'A' => format!("{}[]", reader.a_type()?),
                b'G' => {
                    let count = reader.number()?;
                    format!("{}[{count}]", reader.a_type()?)
                }
                b'H' => {
                    let key = reader.a_type()?;
                    format!("{}[{key}]", reader.a_type()?)
                }
                b'P' if reader.is_at_function() => reader.function("function")?,
                b'P' => format!("{}*", reader.a_type()?),
                b'C' | b'S' | b'E' | b'T' => reader.qualified(false)?,
                b'D' => {
                    let this = reader.modifiers();
                    let delegate = |reader: &mut Self| reader.function("delegate");
                    let function =
                        if reader.peek() == b'Q' { reader.referred(delegate) } else { delegate(reader) };
                    function? + &this
                }
                b'B' => {
                    // Older names have the number of types before them.
                    let count = reader.peek().is_ascii_digit().then(|| reader.number());
                    let mut types = Vec::new();
                    while if let Some(count) = count { types.len() < count? } else { !reader.take(b'Z') } {
                        types.push(reader.a_type()?);
                    }
                    format!("Tuple!({})", types.join(", "))
                }
                b'z' if reader.take(b'i') => "cent".to_owned(),
                b'z' if reader.take(b'k') => "ucent".to_owned(),
                _ => return None,
            })
        })
    }
}
