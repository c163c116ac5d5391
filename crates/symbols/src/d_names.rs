//! Names of D: `_D` with the parts of the path, each with its length, then the type.
//!
//! The grammar is that of <https://dlang.org/spec/abi.html#name_mangling>. Written is the path with
//! its arguments, as gdb and c++filt do: the return type and the attributes of the function are
//! left out.

use std::fmt::Write;

/// How deep a name may be: types in types, templates in templates.
const DEPTH_MAX: u32 = 64;
/// Most elements that are read of one name, over all its back references; long texts count for
/// several.
const STEPS_MAX: u32 = 64 << 10;
const TEXT_BYTES_OF_STEP: usize = 16;

/// Writes what `name` says; `None`: it is no name of D, or too long a one.
pub(crate) fn demangle(name: &str, out: &mut impl Write) -> Option<()> {
    if name == "_Dmain" {
        return out.write_str("D main").ok();
    }
    if !name.starts_with("_D") || !name.is_ascii() {
        return None;
    }
    let mut reader = Reader { text: name, at: 2, depth: 0, steps_left: STEPS_MAX };
    let text = reader.declaration()?;
    (reader.at == name.len()).then(|| out.write_str(&text).ok())?
}

/// Attributes of functions: they follow an `N`.
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

/// Names that the compiler gives, and what they are for.
const SPECIAL_NAMES: [(&str, &str); 3] =
    [("__ctor", "this"), ("__dtor", "~this"), ("__postblit", "this(this)")];

/// Symbols that are about what stands before them.
const SYMBOLS_ABOUT: [(&str, &str); 5] = [
    ("__init", "initializer for "),
    ("__vtbl", "vtable for "),
    ("__Class", "ClassInfo for "),
    ("__Interface", "Interface for "),
    ("__ModuleInfo", "ModuleInfo for "),
];

struct Reader<'n> {
    text: &'n str,
    at: usize,
    depth: u32,
    steps_left: u32,
}

impl<'n> Reader<'n> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'n str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_it = self.peek() == wanted;
        self.at += usize::from(is_it);
        is_it
    }

    fn take_text(&mut self, wanted: &str) -> bool {
        let is_it = self.rest().starts_with(wanted);
        self.at += if is_it { wanted.len() } else { 0 };
        is_it
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.text.get(self.at..self.at + digits)?.parse().ok()?;
        self.at += digits;
        Some(number)
    }

    /// One level deeper, as long as there are levels and steps left.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Where a back reference at `at` (its `Q`) leads to, and where it ends: digits of base 26, the
    /// last one in lower case.
    fn back_reference(&self, at: usize) -> Option<(usize, usize)> {
        let mut distance = 0_usize;
        for (number, byte) in self.text.as_bytes().get(at + 1..)?.iter().enumerate() {
            let digit = byte.to_ascii_lowercase().checked_sub(b'a').filter(|&digit| digit < 26)?;
            distance = distance.checked_mul(26)?.checked_add(usize::from(digit))?;
            if byte.is_ascii_lowercase() {
                let target = at.checked_sub(distance).filter(|&target| target < at)?;
                return Some((target, at + 2 + number));
            }
        }
        None
    }

    /// Reads what a back reference leads to.
    fn referred<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (target, end) = self.back_reference(self.at)?;
        let found = self.deeper(|reader| {
            reader.at = target;
            read(reader)
        });
        self.at = end;
        found
    }

    /// Behind `_D`.
    fn declaration(&mut self) -> Option<String> {
        self.deeper(|reader| {
            let name = reader.qualified(true)?;
            if !reader.take(b'Z') && reader.at < reader.text.len() {
                reader.a_type()?;
            }
            Some(name)
        })
    }

    fn is_at_name(&self) -> bool {
        match self.peek() {
            b'0'..=b'9' => true,
            b'_' => self.rest().starts_with("__T") || self.rest().starts_with("__U"),
            b'Q' => self
                .back_reference(self.at)
                .is_some_and(|(target, _)| self.text.as_bytes()[target].is_ascii_digit()),
            _ => false,
        }
    }

    /// Names in names; functions among them with their arguments. `tells_this`: what is said of
    /// `this` is written behind those.
    fn qualified(&mut self, tells_this: bool) -> Option<String> {
        self.deeper(|reader| {
            let mut path = String::new();
            loop {
                if reader.take(b'0') {
                    // Without a name.
                } else {
                    let name = reader.identifier()?;
                    match SYMBOLS_ABOUT.iter().find(|(symbol, _)| *symbol == name) {
                        Some((_, about)) if !path.is_empty() && reader.peek() == b'Z' => {
                            path.insert_str(0, about)
                        }
                        _ => {
                            path.extend([if path.is_empty() { "" } else { "." }, &name]);
                            path += &reader.arguments_of_name(tells_this).unwrap_or_default();
                        }
                    }
                }
                if !reader.is_at_name() {
                    return Some(path);
                }
            }
        })
    }

    /// Arguments that belong to a name: only if something follows them.
    fn arguments_of_name(&mut self, tells_this: bool) -> Option<String> {
        let start = self.at;
        let read = |reader: &mut Self| {
            let this = if reader.take(b'M') { reader.modifiers() } else { String::new() };
            let (_, arguments) = reader.function_without_result()?;
            let this = if tells_this { this } else { String::new() };
            (reader.at < reader.text.len()).then(|| format!("({arguments}){this}"))
        };
        let found = read(self);
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// What `this` is, or what a delegate is called with.
    fn modifiers(&mut self) -> String {
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

    fn identifier(&mut self) -> Option<String> {
        self.deeper(|reader| {
            if reader.peek() == b'Q' {
                return reader.referred(Self::plain_identifier);
            }
            if reader.peek() == b'_' {
                return reader.template();
            }
            let start = reader.at;
            let bytes = reader.number().filter(|&bytes| bytes > 0)?;
            let end = reader.at.checked_add(bytes)?;
            let name = reader.text.get(reader.at..end)?;
            if name.starts_with("__T") || name.starts_with("__U") {
                let template = reader.template()?;
                return (reader.at == end).then_some(template);
            }
            // One of several declarations of one name has a parent of this form.
            if name.len() > 3
                && name.starts_with("__S")
                && name[3..].bytes().all(|byte| byte.is_ascii_digit())
            {
                reader.at = end;
                return reader.identifier();
            }
            reader.at = start;
            reader.plain_identifier()
        })
    }

    fn plain_identifier(&mut self) -> Option<String> {
        let bytes = self.number()?;
        let end = self.at.checked_add(bytes)?;
        let name = self.text.get(self.at..end).filter(|name| !name.is_empty())?;
        self.steps_left = self.steps_left.checked_sub((bytes / TEXT_BYTES_OF_STEP) as u32)?;
        self.at = end;
        let special = SPECIAL_NAMES.iter().find(|(symbol, _)| *symbol == name);
        Some(special.map_or(name, |(_, meaning)| meaning).to_owned())
    }

    fn template(&mut self) -> Option<String> {
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

    /// A symbol as an argument of a template: a whole declaration or a path; before 2017 with its
    /// length.
    fn symbol_argument(&mut self) -> Option<String> {
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

    /// A value of a type whose code begins with `kind` and which is called `name`.
    fn value(&mut self, kind: u8, name: &str) -> Option<String> {
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

    fn integer(&mut self, kind: u8) -> Option<String> {
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

    /// Hexadecimal digits, the first of them before the point, and an exponent behind `P`.
    fn real(&mut self) -> Option<String> {
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

    fn string(&mut self) -> Option<String> {
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

    fn is_at_function(&self) -> bool {
        matches!(self.peek(), b'F' | b'U' | b'V' | b'W' | b'R' | b'Y')
    }

    /// Convention, attributes and arguments; gives what stands before the result's type,
    /// attributes, and arguments.
    fn function_without_result(&mut self) -> Option<((&'static str, String), String)> {
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

    fn arguments(&mut self) -> Option<String> {
        let mut arguments: Vec<String> = Vec::new();
        loop {
            self.steps_left = self.steps_left.checked_sub(1)?;
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

    fn function(&mut self, what: &str) -> Option<String> {
        let ((convention, attributes), arguments) = self.function_without_result()?;
        let result = self.a_type()?;
        Some(format!("{convention}{result}({arguments}) {attributes}{what}"))
    }

    fn a_type(&mut self) -> Option<String> {
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
                    // The number of its types once stood before them.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::demangle::demangle;

    #[test]
    fn paths_arguments_templates_and_back_references_are_read() {
        for (mangled, expected) in [
            ("_Dmain", "D main"),
            ("_D8demangle4testFaZv", "demangle.test(char)"),
            ("_D8demangle4testFAaAiZv", "demangle.test(char[], int[])"),
            ("_D8demangle4testFHiaZv", "demangle.test(char[int])"),
            ("_D8demangle4testFG42aZv", "demangle.test(char[42])"),
            ("_D8demangle4testFC5classZv", "demangle.test(class)"),
            ("_D8demangle4testFKaLaJaIaZv", "demangle.test(ref char, lazy char, out char, in char)"),
            ("_D8demangle4testFDFZaZv", "demangle.test(char() delegate)"),
            ("_D8demangle4testFPUNaNbZaZv", "demangle.test(extern(C) char() pure nothrow function)"),
            ("_D8demangle4testMxFZv", "demangle.test() const"),
            ("_D8demangle4test6__ctorMFZC8demangle4test", "demangle.test.this()"),
            ("_D8demangle4test6__initZ", "initializer for demangle.test"),
            ("_D8demangle4test12__ModuleInfoZ", "ModuleInfo for demangle.test"),
            ("_D8demangle4mainFZ6nestedFiZv", "demangle.main().nested(int)"),
            ("_D8demangle11__T4testTiZ4testFZv", "demangle.test!(int).test()"),
            ("_D8demangle14__T4testVii10Z4testFZv", "demangle.test!(10).test()"),
            ("_D8demangle15__T4testVmi100Z4testFZv", "demangle.test!(100uL).test()"),
            ("_D8demangle22__T4testVAyaa3_616263Z4testFZv", "demangle.test!(\"abc\").test()"),
            ("_D8demangle4testFXv", "demangle.test(...)"),
            ("_D8demangle4testFaQbZv", "demangle.test(char, char)"),
            ("_D1d__T4PoolTiZQi4grabMFNbNimZPi", "d.Pool!(int).Pool.grab(ulong)"),
        ] {
            assert_eq!(demangle(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn what_is_no_name_of_d_stays_as_it_is() {
        for name in ["_D", "_Dfoo", "_D3ab", "_D1aFQbZv", "_D8demangle4testFZv_", "_D1aFQaZv"] {
            assert_eq!(demangle(name), name);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(name in "_D[0-9a-dA-HNQSTVZM_]{0,40}") {
            let _ = demangle(&name);
        }
    }
}
