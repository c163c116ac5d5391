//! Frames of languages in stacks: nodes whose address encodes a function instead of code.
//!
//! ```text
//!  63     56 55      52 51            24 23         0
//! +---------+----------+----------------+------------+
//! |    0    | language | function       | line       |   plus one: see below
//! +---------+----------+----------------+------------+
//! ```
//! One is added because a return address lies behind its call. No program has code at such an
//! address. A reader that does not know languages shows the bare address. The function is one of
//! the file's ([`LanguageFunction`]), by process, language and number.

use crate::ProcessIndex;

/// Number of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language(pub u8);

/// Name shown before a frame's own, like a module's, and the language's name; by number. Number 0
/// is native code.
const LANGUAGES: &[(&str, &str)] = &[
    ("", ""),
    ("py", "Python"),
    ("js", "JavaScript"),
    ("java", "Java"),
    ("rb", "Ruby"),
    ("php", "PHP"),
    ("pl", "Perl"),
    ("go", "Go"),
    ("jit", "code made at run time"),
    ("lua", "Lua"),
];
/// Name shown before the frames of languages of later versions.
const UNKNOWN: &str = "language";

impl Language {
    /// CPython's frames.
    pub const PYTHON: Self = Self(1);

    /// Name shown before a frame's own name: `py`.
    #[must_use]
    pub fn short_name(self) -> &'static str {
        LANGUAGES.get(usize::from(self.0)).map_or(UNKNOWN, |&(short, _)| short)
    }

    /// Name for people: `Python`.
    #[must_use]
    pub fn name(self) -> &'static str {
        LANGUAGES.get(usize::from(self.0)).map_or("an unknown language", |&(_, name)| name)
    }

    /// Whether a module's path is the name of a language, which its frames have in place of a path.
    #[must_use]
    pub fn is_of(module_path: &str) -> bool {
        module_path == UNKNOWN || LANGUAGES.iter().skip(1).any(|&(short, _)| short == module_path)
    }
}

/// Choice of the frames to show, where a program has frames of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum LanguageFrames {
    /// All frames, each at its position.
    #[default]
    Mixed,
    /// Frames of the language, and native frames outside of its interpreter.
    Own,
    /// Native frames.
    Native,
}

/// Position of a frame of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LanguagePlace {
    /// The language.
    pub language: Language,
    /// Number of its function.
    pub function: u32,
    /// Line in the function's file; 0: unknown.
    pub line: u32,
}

impl LanguagePlace {
    const LANGUAGE_SHIFT: u32 = 52;
    const FUNCTION_SHIFT: u32 = 24;
    /// Largest number of a language; larger numbers could be truncated kernel addresses.
    const LANGUAGE_MAX: u64 = 14;

    /// Decodes an address one before that of a node; `None` for an address of code.
    #[must_use]
    pub fn of_call(call_avma: u64) -> Option<Self> {
        let language = call_avma >> Self::LANGUAGE_SHIFT;
        (1..=Self::LANGUAGE_MAX).contains(&language).then_some(Self {
            language: Language(language as u8),
            function: (call_avma >> Self::FUNCTION_SHIFT) as u32 & 0xfff_ffff,
            line: call_avma as u32 & 0xff_ffff,
        })
    }

    /// Decodes the address of a node; `None` for an address of code.
    #[must_use]
    pub fn of_return_address(return_address: u64) -> Option<Self> {
        Self::of_call(return_address.checked_sub(1)?)
    }

    /// The address of a stack node that represents this position.
    #[must_use]
    pub fn return_address(self) -> u64 {
        let place = u64::from(self.language.0) << Self::LANGUAGE_SHIFT
            | u64::from(self.function & 0xfff_ffff) << Self::FUNCTION_SHIFT
            | u64::from(self.line & 0xff_ffff);
        place + 1
    }
}

/// A function of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageFunction {
    /// Process of the function.
    pub process: ProcessIndex,
    /// Language of the function.
    pub language: Language,
    /// Number that places refer to.
    pub number: u32,
    /// Qualified name, where the language has one; may be empty.
    pub name: String,
    /// Source file, as the language has it.
    pub file: String,
    /// First line of the function in its file; 0: unknown.
    pub first_line: u32,
}

impl LanguageFunction {
    /// Key by which functions are sorted and found.
    pub(crate) fn key(&self) -> (ProcessIndex, Language, u32) {
        (self.process, self.language, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_its_address_and_code_is_none() {
        for (language, function, line) in [(1, 1, 1), (14, 0xfff_ffff, 0xff_fffe), (2, 0, 0)] {
            let place = LanguagePlace { language: Language(language), function, line };
            assert_eq!(LanguagePlace::of_call(place.return_address() - 1), Some(place));
        }
        for call_avma in [0, 0x7fff_ffff_ffff, 0xf_ffff_ffff_ffff, 0xff_ffff_ffff_6000, u64::MAX] {
            assert_eq!(LanguagePlace::of_call(call_avma), None, "{call_avma:x}");
        }
        assert_eq!(Language::PYTHON.short_name(), "py");
        assert_eq!(Language(13).short_name(), "language");
        assert!(Language::is_of("py") && !Language::is_of("/usr/bin/py") && !Language::is_of(""));
    }
}
