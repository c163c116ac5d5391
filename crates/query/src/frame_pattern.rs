//! Patterns for frames: `module!`, `module!symbol`, `symbol`.

use crate::error::{Error, Result};
use crate::glob::Glob;
use crate::symbol_forms::for_each_form;

/// A frame pattern. `*` stands for any run of characters; case does not matter.
///
/// A module is matched by its file name with or without the version (`libc.so.6`, `libc.so`,
/// `libc`). If the pattern has a `/`, it is matched by its full path. A symbol is matched in full,
/// without its arguments, or without arguments, templates and return type: `std::vector::push_back`
/// matches `std::vector<int>::push_back(int&&)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramePattern {
    text: String,
    module: Option<Glob>,
    /// True if the module is named by its path.
    is_path: bool,
    symbol: Option<Glob>,
}

impl FramePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The pattern names neither a module nor a symbol, or has control characters.
    pub fn parse(text: &str) -> Result<Self> {
        let pattern = text.trim();
        if let Some(offset_bytes) = pattern.find(char::is_control) {
            return Err(Error::ControlCharacter { pattern: text.to_owned(), offset_bytes });
        }
        let (module, symbol) = match separator(pattern) {
            Some(at) => (&pattern[..at], &pattern[at + 1..]),
            None => ("", pattern),
        };
        if module.is_empty() && symbol.is_empty() {
            return Err(Error::EmptyPattern { pattern: text.to_owned() });
        }
        let glob = |part: &str| (!part.is_empty()).then(|| Glob::new(part));
        let is_path = module.contains('/');
        Ok(Self { text: pattern.to_owned(), module: glob(module), is_path, symbol: glob(symbol) })
    }

    /// Returns the pattern as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether matching needs symbols.
    #[must_use]
    pub(crate) fn needs_symbol(&self) -> bool {
        self.symbol.is_some()
    }

    /// Whether a frame of this module (its path; `None`: unknown) and symbol (demangled; `None`:
    /// unknown) matches.
    #[must_use]
    pub fn matches(&self, module_path: Option<&str>, symbol: Option<&str>) -> bool {
        let module_lower = module_path.map(str::to_ascii_lowercase);
        let symbol_lower = symbol.map(str::to_ascii_lowercase);
        self.matches_lower(module_lower.as_deref(), symbol_lower.as_deref())
    }

    /// Variant of [`Self::matches`] for names in lower case.
    pub(crate) fn matches_lower(&self, module_lower: Option<&str>, symbol_lower: Option<&str>) -> bool {
        match symbol_lower {
            Some(symbol) => for_each_form(symbol, |form| self.matches_form(module_lower, form)),
            None => self.symbol.is_none() && self.module_fits(module_lower),
        }
    }

    /// Whether the pattern matches a form of a symbol: see [`for_each_form`].
    pub(crate) fn matches_form(&self, module_lower: Option<&str>, form: &str) -> bool {
        self.symbol.as_ref().is_none_or(|glob| glob.matches_lower(form)) && self.module_fits(module_lower)
    }

    /// Whether the pattern matches a module, whatever the symbol is.
    pub(crate) fn module_fits(&self, module_lower: Option<&str>) -> bool {
        match (&self.module, module_lower) {
            (None, _) => true,
            (Some(_), Some(path)) if self.is_path => self.is_module_path(path),
            (Some(_), Some(path)) => module_names(path).any(|name| self.is_module_name(name)),
            (Some(_), None) => false,
        }
    }

    /// Whether the pattern's module is named by a file's name, and by this one.
    pub(crate) fn is_module_name(&self, name_lower: &str) -> bool {
        !self.is_path && self.module.as_ref().is_some_and(|glob| glob.matches_lower(name_lower))
    }

    /// Whether the pattern's module is named by a path, and by this one.
    pub(crate) fn is_module_path(&self, path_lower: &str) -> bool {
        self.is_path && self.module.as_ref().is_some_and(|glob| glob.matches_lower(path_lower))
    }

    /// The first byte of each symbol that it matches, in lower case; `None`: any.
    pub(crate) fn symbol_start(&self) -> Option<u8> {
        self.symbol.as_ref()?.start()
    }

    /// The first byte of each name or path of a module that it matches, in lower case; `None`: any.
    pub(crate) fn module_start(&self) -> Option<u8> {
        self.module.as_ref()?.start()
    }

    /// The module's name, if the pattern is nothing but one without stars: such patterns can be
    /// looked up by [`module_names`].
    pub(crate) fn as_plain_module(&self) -> Option<&str> {
        if self.symbol.is_some() || self.is_path { None } else { self.module.as_ref()?.as_literal() }
    }

    /// The symbol, if the pattern has only a symbol without stars. Such patterns are found by hash.
    pub(crate) fn as_plain_symbol(&self) -> Option<&str> {
        if self.module.is_some() { None } else { self.symbol.as_ref()?.as_literal() }
    }
}

/// Position of the `!` that ends the module: the first one that is not part of a symbol. Such parts
/// are `operator!` and templates of D (`Pool!(int)`).
fn separator(pattern: &str) -> Option<usize> {
    let is_of_name = |at: usize| {
        let rest = &pattern[at + 1..];
        pattern[..at].ends_with("operator")
            || rest.starts_with('(') && !rest.starts_with("(anonymous namespace)")
    };
    pattern.match_indices('!').map(|(at, _)| at).find(|&at| !is_of_name(at))
}

/// The names that match a module. They are its file's name, that name with its version shortened
/// step by step, and the stem without a version behind a dash.
///
/// ```text
/// libstdc++.so.6.0.30 -> libstdc++.so.6.0 -> libstdc++.so.6 -> libstdc++.so -> libstdc++
/// libc-2.31.so -> libc-2.31 -> libc
/// ```
pub(crate) fn module_names(path: &str) -> impl Iterator<Item = &str> {
    let whole = file_name(path);
    let so = whole.find(".so");
    // Length of the next shorter name.
    let shorter = move |&bytes: &usize| {
        let so = so.filter(|&so| bytes > so)?;
        Some(whole[..bytes].rfind('.').unwrap_or(so).max(so))
    };
    let without_version = |name: &str| {
        let dash = name.rfind('-')?;
        name[dash + 1..].starts_with(|first: char| first.is_ascii_digit()).then(|| &whole[..dash])
    };
    let stem = so.and_then(|so| without_version(&whole[..so]));
    std::iter::successors(Some(whole.len()), shorter).map(|bytes| &whole[..bytes]).chain(stem)
}

/// Last part of a path.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, module: &str, symbol: &str) -> bool {
        FramePattern::parse(pattern).unwrap().matches(Some(module), Some(symbol))
    }

    #[test]
    fn the_three_forms_match_what_they_say() {
        assert!(matches("libc.so.6!", "/lib/x86_64-linux-gnu/libc.so.6", "malloc"));
        assert!(matches("libc.so.6!malloc", "/lib/x86_64-linux-gnu/libc.so.6", "malloc"));
        assert!(!matches("libc.so.6!calloc", "/lib/x86_64-linux-gnu/libc.so.6", "malloc"));
        assert!(matches("MALLOC", "/lib/x86_64-linux-gnu/libc.so.6", "malloc"));
        assert!(matches("!malloc", "/anything", "malloc"));
        assert!(!matches("mall", "/anything", "malloc"));
    }

    #[test]
    fn a_module_may_be_named_without_its_version_or_with_its_path() {
        for pattern in [
            "libstdc++!",
            "libstdc++.so!",
            "libstdc++.so.6!",
            "LIBSTDC++.SO.6.0.30!",
            "libstd*!",
            "/usr/lib/*!",
        ] {
            assert!(matches(pattern, "/usr/lib/libstdc++.so.6.0.30", "f"), "{pattern}");
        }
        assert!(matches("libc!", "/lib/libc-2.31.so", "f"));
        assert!(!matches("libc!", "/lib/libcrypto.so.3", "f"));
        assert!(!matches("/lib/libc.so!", "/usr/lib/libc.so", "f"));
        assert!(matches("python3.11!", "/usr/bin/python3.11", "f"));
    }

    #[test]
    fn names_of_a_module_lose_their_version_part_by_part() {
        let names = |path| module_names(path).collect::<Vec<_>>();
        let of_version =
            ["libstdc++.so.6.0.30", "libstdc++.so.6.0", "libstdc++.so.6", "libstdc++.so", "libstdc++"];
        assert_eq!(names("/usr/lib/libstdc++.so.6.0.30"), of_version);
        assert_eq!(names("/lib/libc-2.31.so"), ["libc-2.31.so", "libc-2.31", "libc"]);
        assert_eq!(names("/usr/bin/python3.11"), ["python3.11"]);
        assert_eq!(names("/opt/a-1"), ["a-1"]);
    }

    #[test]
    fn a_symbol_may_be_named_without_arguments_and_templates() {
        let symbol = "std::vector<int, std::allocator<int> >::push_back(int&&)";
        for pattern in [
            "std::vector::push_back",
            "std::vector<int, std::allocator<int> >::push_back",
            symbol,
            "*push_back*",
        ] {
            assert!(matches(pattern, "/a", symbol), "{pattern}");
        }
        assert!(!matches("push_back", "/a", symbol));
    }

    #[test]
    fn the_exclamation_mark_of_an_operator_is_no_separator() {
        assert!(matches("foo::operator!=", "/a", "foo::operator!=(foo const&)"));
        assert!(matches("a!foo::operator!", "/a", "foo::operator!()"));
        let of_d = "d.Pool!(int).Pool.grab(ulong)";
        for pattern in [of_d, "d.Pool!(int).Pool.grab", "d.Pool.Pool.grab", "a!d.Pool!(int).Pool.grab"] {
            assert!(matches(pattern, "/a", of_d), "{pattern}");
        }
        assert!(matches("a!(anonymous namespace)::f", "/a", "(anonymous namespace)::f(int)"));
    }

    #[test]
    fn unknown_parts_match_only_patterns_that_do_not_name_them() {
        let of = |pattern: &str| FramePattern::parse(pattern).unwrap();
        assert!(of("a!").matches(Some("/a"), None));
        assert!(!of("f").matches(Some("/a"), None));
        assert!(of("f").matches(None, Some("f")));
        assert!(!of("a!f").matches(None, Some("f")));
    }

    #[test]
    fn senseless_patterns_are_named_in_the_error() {
        assert_eq!(
            FramePattern::parse("!").unwrap_err().to_string(),
            "frame pattern \"!\" names neither a module nor a symbol"
        );
        assert!(FramePattern::parse("  ").is_err());
        assert_eq!(
            FramePattern::parse("a\tb").unwrap_err().to_string(),
            "frame pattern \"a\\tb\" has a control character at byte 1"
        );
    }
}
