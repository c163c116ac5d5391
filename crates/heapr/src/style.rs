//! Bold and faint text, for terminals that can show it.

use std::ffi::OsStr;
use std::io::IsTerminal as _;

/// Marks of styles: characters of the private use area that [`crate::plain_text::PlainText`] turns
/// into escape sequences. No name can hold them, because [`heapr_export::frame_text::harmless`]
/// replaces them there.
pub(crate) const BOLD: char = '\u{f8f0}';
pub(crate) const FAINT: char = '\u{f8f1}';
pub(crate) const END: char = '\u{f8f2}';

/// Whether text of some output has styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    is_on: bool,
}

impl Style {
    /// Returns the style of standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// Returns the style of standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_dumb = value("TERM").is_some_and(|term| term == "dumb");
        Self {
            is_on: decide(
                value("NO_COLOR").is_some(),
                value("CLICOLOR_FORCE").as_deref(),
                is_terminal && !is_dumb,
            ),
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.styled(BOLD, text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.styled(FAINT, text)
    }

    fn styled(self, begin: char, text: &str) -> String {
        if self.is_on { format!("{begin}{text}{END}") } else { text.to_owned() }
    }
}

/// Decides on styles: `NO_COLOR` goes before `CLICOLOR_FORCE`, and both before the kind of the
/// output.
fn decide(no_color: bool, forced: Option<&OsStr>, is_terminal: bool) -> bool {
    !no_color && (forced.is_some_and(|forced| forced != "0") || is_terminal)
}

/// Returns the escape sequence of a mark.
pub(crate) fn sequence(mark: char) -> Option<&'static str> {
    match mark {
        BOLD => Some("\u{1b}[1m"),
        FAINT => Some("\u{1b}[2m"),
        END => Some("\u{1b}[0m"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_for_terminals_unless_the_user_says_otherwise() {
        let forced = Some(OsStr::new("1"));
        assert!(decide(false, None, true) && decide(false, forced, false));
        assert!(!decide(false, None, false) && !decide(true, forced, true));
        assert!(!decide(false, Some(OsStr::new("0")), false));
        assert_eq!(Style::default().bold("a"), "a");
        assert_eq!(Style { is_on: true }.bold("a"), "\u{f8f0}a\u{f8f2}");
    }
}
