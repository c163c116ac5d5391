//! Line on standard error that says what heapr is busy with, while a command takes long.
//!
//! It is shown after [`PATIENCE`], if standard error is a terminal whose foreground process this
//! is. All other output erases it first.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heapr_table::plain::printable;

/// Time after which the line appears.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two drawings.
const PERIOD: Duration = Duration::from_millis(500);
/// Columns of a terminal that does not tell them.
const COLUMNS: u16 = 80;
/// Fewest columns in which the line is drawn.
const COLUMNS_MIN: u16 = 30;

/// State of the line.
#[derive(Debug)]
struct Line {
    /// Work in words; `None`: no work that takes long.
    what: Option<String>,
    begun: Option<Instant>,
    /// True while the terminal shows the line.
    is_drawn: bool,
    /// Number of progress bars in its place.
    bars: usize,
}

static LINE: Mutex<Line> = Mutex::new(Line { what: None, begun: None, is_drawn: false, bars: 0 });
static CHANGED: Condvar = Condvar::new();
/// Fast test of whether a line may be drawn.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Work that takes long; its line goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(());

/// Begins work, in words such as `reading a.heapr`.
pub(crate) fn begin(what: impl Into<String>) -> Busy {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if !io::stderr().is_terminal() || is_dumb {
        return Busy(());
    }
    let mut line = line();
    line.what = Some(what.into());
    line.begun = Some(Instant::now());
    CHANGED.notify_all();
    if !IS_USED.swap(true, Relaxed) {
        // Without a thread there is no line.
        let _ = std::thread::Builder::new().name("heapr-busy".to_owned()).spawn(draw_always);
    }
    Busy(())
}

impl Busy {
    /// Says what the work has come to.
    pub(crate) fn say(&self, what: &str) {
        let mut line = line();
        if line.what.is_some() {
            line.what = Some(what.to_owned());
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        end();
    }
}

/// Ends the line: a result is printed from here on.
pub(crate) fn end() {
    if IS_USED.load(Relaxed) {
        let mut line = line();
        line.what = None;
        line.erase();
    }
}

/// Erases the line until the returned guard is dropped, for a line of text.
pub(crate) fn erased() -> Option<impl Drop> {
    if !IS_USED.load(Relaxed) {
        return None;
    }
    let mut line = line();
    line.erase();
    Some(Erased(line))
}

/// Leaves the place to a progress bar, or takes it back.
pub(crate) fn give_way(to_bar: bool) {
    let mut line = line();
    if to_bar {
        line.erase();
        line.bars += 1;
    } else {
        line.bars = line.bars.saturating_sub(1);
    }
}

/// Lock under which nothing is drawn.
struct Erased(#[expect(dead_code, reason = "it is held until it is dropped")] MutexGuard<'static, Line>);

impl Drop for Erased {
    fn drop(&mut self) {}
}

impl Line {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Draws the line if it is due.
    fn draw(&mut self) {
        let (Some(what), Some(begun)) = (&self.what, self.begun) else { return };
        let elapsed = begun.elapsed();
        if elapsed < PATIENCE || self.bars > 0 || !is_in_foreground() {
            return;
        }
        let columns = columns();
        if columns < COLUMNS_MIN {
            return;
        }
        let _ = write!(io::stderr(), "\r\x1b[K{}", text(what, elapsed, usize::from(columns)));
        let _ = io::stderr().flush();
        self.is_drawn = true;
    }
}

/// Returns the line, cut so that it does not go on in a second one, which could not be erased.
fn text(what: &str, elapsed: Duration, columns: usize) -> String {
    let mut line = String::from("heapr: ");
    let end = format!(" … {} s", elapsed.as_secs());
    let mut room = columns.saturating_sub(line.len() + end.len());
    for letter in printable(what).chars() {
        // Letters outside of ASCII may take two columns.
        let taken = if letter.is_ascii() { 1 } else { 2 };
        if taken > room {
            break;
        }
        room -= taken;
        line.push(letter);
    }
    line + &end
}

fn columns() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.map(|size| size.ws_col).ok().filter(|&columns| columns > 0).unwrap_or(COLUMNS)
}

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws the line again and again, and sleeps without work.
fn draw_always() {
    let mut held = line();
    loop {
        held = match held.what {
            Some(_) => {
                CHANGED.wait_timeout(held, PERIOD).map_or_else(|error| error.into_inner().0, |(held, _)| held)
            }
            None => CHANGED.wait(held).unwrap_or_else(PoisonError::into_inner),
        };
        held.draw();
    }
}

/// True if this process may write on the terminal without disturbing another one's text.
fn is_in_foreground() -> bool {
    let own = rustix::process::getpgrp();
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_takes_how_long() {
        assert_eq!(
            text("reading a\u{1b}.heapr", Duration::from_millis(2400), 80),
            "heapr: reading a\u{fffd}.heapr … 2 s"
        );
        assert!(text(&"a".repeat(200), PATIENCE, 80).chars().count() < 80);
        assert!(text(&"\u{6f22}".repeat(200), PATIENCE, 80).chars().count() < 50);
        assert_eq!(text("a", PATIENCE, 0), "heapr:  … 2 s");
    }
}
