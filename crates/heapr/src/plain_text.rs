//! Prints text.
//! Names come from programs and files that may be hostile, so all text passes through here and no
//! byte of it reaches a terminal raw. JSON and CSV are for programs and are printed exactly.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heapr_table::json_text::json_lines;
pub(crate) use heapr_table::plain::printable;
use heapr_table::plain::{NO_LIMIT, harmless};

use crate::busy_line;
use crate::style::sequence;

/// Prints a line on standard error.
macro_rules! tell {
    ($($arguments:tt)*) => { $crate::plain_text::tell(format_args!($($arguments)*)) };
}

/// Prints a warning on standard error, in the one form that all warnings have.
macro_rules! warn {
    ($($arguments:tt)*) => { tell!("heapr: warning: {}", format_args!($($arguments)*)) };
}

/// Prints a line on standard output.
macro_rules! say {
    ($($arguments:tt)*) => { $crate::plain_text::say(format_args!($($arguments)*)) };
}

/// Columns of a page where the width is unlimited, and fewest columns assumed of a terminal.
const COLUMNS: usize = 80;

/// Whether `--wide` was given.
static IS_WIDE: AtomicBool = AtomicBool::new(false);

/// Writer of text that replaces characters that move the cursor, change colors or reverse the order
/// of others. One call of `writeln!` makes one line, whatever its arguments hold.
#[derive(Debug)]
pub(crate) struct PlainText<W>(pub(crate) W);

impl<W: Write> Write for PlainText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(plain(&String::from_utf8_lossy(bytes), true).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        let text = fmt::format(arguments);
        let (text, end) = text.strip_suffix('\n').map_or((text.as_str(), ""), |text| (text, "\n"));
        // A leading newline is the caller's: it makes an empty line.
        let (start, text) = text.strip_prefix('\n').map_or(("", text), |text| ("\n", text));
        self.0.write_all([start, &plain(text, false), end].concat().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn plain(text: &str, keeps_lines: bool) -> String {
    let is_kept = |character: char| keeps_lines && character == '\n' || character == '\t';
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match sequence(character) {
            Some(sequence) => plain.push_str(sequence),
            None => plain.push(if is_kept(character) { character } else { harmless(character) }),
        }
    }
    plain
}

/// Standard output, for text or for something else.
pub(crate) fn printed(is_text: bool) -> Box<dyn Write> {
    protected(BufWriter::new(Printed(io::stdout().lock())), is_text)
}

/// Standard output, for results: the first of them ends the line of [`busy_line`].
struct Printed<W>(W);

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        busy_line::end();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Wraps `out` in [`PlainText`] if text is written to it.
pub(crate) fn protected(out: impl Write + 'static, is_text: bool) -> Box<dyn Write> {
    if is_text { Box::new(PlainText(out)) } else { Box::new(out) }
}

/// Implements [`tell!`]. Errors are ignored: standard error may be closed.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _erased = busy_line::erased();
    let _ = writeln!(PlainText(io::stderr().lock()), "{line}");
}

/// Implements [`say!`].
pub(crate) fn say(line: fmt::Arguments<'_>) {
    // Standard output is locked first, as by a thread that writes to [`Printed`].
    let out = io::stdout().lock();
    let _erased = busy_line::erased();
    let _ = writeln!(PlainText(out), "{line}");
}

/// Prints a JSON value on standard output, unchanged.
pub(crate) fn say_json(value: &serde_json::Value) {
    let mut out = io::stdout().lock();
    let _erased = busy_line::erased();
    let _ = writeln!(out, "{}", json_lines(value));
}

/// Removes the limit on the width of lines from here on (`--wide`).
pub(crate) fn set_wide() {
    IS_WIDE.store(true, Relaxed);
}

/// Returns the largest number of columns of a line on standard output: that of `COLUMNS`, or of the
/// terminal. There is no limit if the output is not a terminal, so that a search finds every name.
pub(crate) fn line_width() -> usize {
    let stdout = io::stdout();
    width(stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(stdout).ok()).flatten())
}

/// Returns the largest number of columns of a line on standard error, by the rules of
/// [`line_width`].
pub(crate) fn error_line_width() -> usize {
    let stderr = io::stderr();
    width(stderr.is_terminal().then(|| rustix::termios::tcgetwinsize(stderr).ok()).flatten())
}

fn width(terminal: Option<rustix::termios::Winsize>) -> usize {
    const LEAST: usize = 40;
    if IS_WIDE.load(Relaxed) {
        return NO_LIMIT;
    }
    let wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    match (wanted.filter(|&columns: &usize| columns > 0), terminal) {
        (Some(columns), _) => columns.clamp(LEAST, NO_LIMIT),
        (None, Some(size)) => usize::from(size.ws_col).max(COLUMNS),
        (None, None) => NO_LIMIT,
    }
}

/// Returns the columns for which a page with lines of `width` is laid out.
pub(crate) fn page_columns(width: usize) -> usize {
    if width >= NO_LIMIT { COLUMNS } else { width }
}

/// Shortens a name to one line of standard output.
pub(crate) fn one_line(text: &str) -> String {
    heapr_table::plain::one_line(text, line_width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_does_something_passes_the_writer() {
        let mut out = PlainText(Vec::new());
        let name = "a\u{1b}[2J\u{7f}\u{9b}31m\r\nb\u{202e}c\u{2066}\u{200f}";
        writeln!(out, "{name}: é").unwrap();
        let lines = "one\ntwo\u{1b}[m\n";
        out.write_all(lines.as_bytes()).unwrap();
        let text = String::from_utf8(out.0).unwrap();
        assert_eq!(
            text,
            "a\u{fffd}[2J\u{fffd}\u{fffd}31m\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}: é\none\ntwo\u{fffd}[m\n"
        );
    }

    #[test]
    fn a_line_through_a_box_is_protected_too() {
        let name = "a\nb";
        let mut boxed: Box<dyn Write> = Box::new(PlainText(Vec::new()));
        writeln!(boxed, "{name}").unwrap();
        let mut lines = Vec::new();
        let borrowed: &mut dyn Write = &mut PlainText(&mut lines);
        writeln!(borrowed, "{name}").unwrap();
        assert_eq!(lines, "a\u{fffd}b\n".as_bytes());
    }
}
