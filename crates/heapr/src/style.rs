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
        let forced = value("CLICOLOR_FORCE");
        let wish = Wish { is_off: value("NO_COLOR").is_some(), forced: forced.as_deref() };
        Self { is_on: wish.is_on(is_terminal && !is_dumb) }
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

/// Variables of the environment that turn styles on or off.
struct Wish<'a> {
    /// `NO_COLOR` is set.
    is_off: bool,
    /// `CLICOLOR_FORCE`.
    forced: Option<&'a OsStr>,
}

impl Wish<'_> {
    /// Decides on styles: `NO_COLOR` goes before `CLICOLOR_FORCE`, and both before the kind of the
    /// output.
    fn is_on(&self, is_terminal: bool) -> bool {
        !self.is_off && (self.forced.is_some_and(|forced| forced != "0") || is_terminal)
    }
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
        let wish = |is_off: bool, forced| Wish { is_off, forced };
        assert!(wish(false, None).is_on(true) && wish(false, forced).is_on(false));
        assert!(!wish(false, None).is_on(false) && !wish(true, forced).is_on(true));
        assert!(!wish(false, Some(OsStr::new("0"))).is_on(false));
        assert_eq!(Style::default().bold("a"), "a");
        assert_eq!(Style { is_on: true }.bold("a"), "\u{f8f0}a\u{f8f2}");
    }
}
