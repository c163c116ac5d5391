//! Demangling of D names: `_D` with the parts of the path, each with its length, then the type.
//!
//! The grammar is that of <https://dlang.org/spec/abi.html#name_mangling>. The result is the path
//! with its arguments, as in gdb and c++filt, without the function's return type and attributes.

#![forbid(unsafe_code)]

mod reader;
mod templates;
mod types;

use std::fmt::Write;

use self::reader::Reader;

/// Number of bytes of a text that count as one more step.
const TEXT_BYTES_OF_STEP: usize = 16;

/// Writes the demangled name. `None`: it is not a D name, or it is too long.
#[must_use]
pub fn demangle(name: &str, out: &mut impl Write) -> Option<()> {
    if name == "_Dmain" {
        return out.write_str("D main").ok();
    }
    if !name.starts_with("_D") || !name.is_ascii() {
        return None;
    }
    let mut reader = Reader::new(name, 2);
    let text = reader.declaration()?;
    (reader.at == name.len()).then(|| out.write_str(&text).ok())?
}

/// Names that the compiler gives to special functions, and their source names.
const SPECIAL_NAMES: [(&str, &str); 3] =
    [("__ctor", "this"), ("__dtor", "~this"), ("__postblit", "this(this)")];

/// Symbols that describe the name before them.
const SYMBOLS_ABOUT: [(&str, &str); 5] = [
    ("__init", "initializer for "),
    ("__vtbl", "vtable for "),
    ("__Class", "ClassInfo for "),
    ("__Interface", "Interface for "),
    ("__ModuleInfo", "ModuleInfo for "),
];

impl Reader<'_> {
    /// Reads what follows `_D`.
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

    /// Reads a path of nested names; functions in it with their arguments. With `tells_this`, the
    /// qualifiers of `this` follow the arguments.
    fn qualified(&mut self, tells_this: bool) -> Option<String> {
        self.deeper(|reader| {
            let mut path = String::new();
            loop {
                if reader.take(b'0') {
                    // A part without a name.
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

    /// Reads the arguments that belong to a name: only if something follows them.
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
            // A parent of this form distinguishes several declarations with one name.
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
        self.spend((bytes / TEXT_BYTES_OF_STEP) as u32)?;
        self.at = end;
        let special = SPECIAL_NAMES.iter().find(|(symbol, _)| *symbol == name);
        Some(special.map_or(name, |(_, meaning)| meaning).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn demangle(name: &str) -> String {
        let mut text = String::new();
        super::demangle(name, &mut text).map_or_else(|| name.to_owned(), |()| text)
    }

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
