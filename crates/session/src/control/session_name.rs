//! Names of sessions: they become file names and are printed, so only harmless characters are
//! allowed.

use std::fmt;

use crate::Error;

/// Largest number of characters of a name: with its extension it must fit a socket's path.
const NAME_CHARACTERS_MAX: usize = 64;

/// Prefix of the names of `heapr run`'s sessions.
const RUN: &str = "run-";

/// Checked name: 1 to 64 of `A-Z a-z 0-9 . _ - + @`, not beginning with a dot or a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(String);

impl SessionName {
    /// Name of a session without an explicit one.
    pub const DEFAULT: &str = "default";

    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::BadName`] for one that is empty, too long, or has other characters.
    pub fn new(name: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadName { name: name.to_owned(), reason: reason.to_owned() };
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
        if name.is_empty() {
            return Err(bad("it is empty"));
        }
        if name.len() > NAME_CHARACTERS_MAX {
            return Err(bad("it is longer than 64 characters"));
        }
        if name.starts_with(['.', '-']) {
            return Err(bad("it begins with a dot or a dash"));
        }
        if !name.bytes().all(is_harmless) {
            return Err(bad("only letters, digits and . _ - + @ are allowed"));
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name of the session of the `heapr run` with this process id.
    #[must_use]
    pub fn of_run(heapr_pid: u32) -> Self {
        Self(format!("{RUN}{heapr_pid}"))
    }

    /// Whether the name is that of a `heapr run`.
    #[must_use]
    pub fn is_of_run(&self) -> bool {
        self.0.strip_prefix(RUN).is_some_and(|number| number.parse::<u32>().is_ok())
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_a_path_a_line_or_an_option_is_refused() {
        let long = "x".repeat(65);
        for name in
            ["", ".", "..", "../x", "a/b", "a\nb", "a b", "-n", ".hidden", "a\0b", "ä", "\u{1b}[2J", &long]
        {
            assert!(matches!(SessionName::new(name), Err(Error::BadName { .. })), "{name:?} was accepted");
        }
    }

    #[test]
    fn names_of_runs_are_known() {
        assert!(SessionName::of_run(42).is_of_run());
        assert!(!SessionName::new("run-once").unwrap().is_of_run());
        assert_eq!(SessionName::new("run-42").unwrap(), SessionName::of_run(42));
    }

    #[test]
    fn ordinary_names_are_accepted() {
        let long = "x".repeat(64);
        for name in ["default", "web-1", "redis_6379", "a.b", "unit@3", "c++", "7", &long] {
            assert_eq!(SessionName::new(name).unwrap().as_str(), name);
        }
    }
}
