//! The view as text, where no terminal can be drawn on: one screen after the other.

use std::io::Write as _;
use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use super::draw::{Look, draw};
use super::reader::{News, Reader};
use super::signals::{self, Told};
use super::state::State;
use crate::plain_text::{line_width, page_columns, printed};

/// Largest number of readings for a single screen.
const SINGLE_READINGS_MAX: usize = 3;
/// Lines of a screen.
const LINES: u16 = 40;
/// Interval at which signals are looked for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Prints readings until a signal, or a single one.
pub(super) fn run(mut state: State, reader: &Reader, look: Look, is_single: bool) -> anyhow::Result<()> {
    let told = signals::watch()?;
    let mut readings = 0;
    loop {
        for told in told.try_iter() {
            match told {
                Told::End => return Ok(()),
                Told::Suspend => emulate_default_handler(SIGTSTP)?,
                Told::Resumed => {}
            }
        }
        let news = match reader.news.recv_timeout(PATIENCE) {
            Ok(news) => news,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => anyhow::bail!("the reader has ended"),
        };
        let is_reading = matches!(news, News::Reading(..));
        if let News::Trouble(text) = news {
            anyhow::bail!("no reading: {text}");
        }
        state.take(news);
        if !is_reading {
            continue;
        }
        readings += 1;
        // Rates need a second reading; a session without events has no later one.
        if is_single && !state.has_rates() && readings < SINGLE_READINGS_MAX {
            continue;
        }
        print(&mut state, look)?;
        if is_single || state.has_ended() {
            return Ok(());
        }
    }
}

fn print(state: &mut State, look: Look) -> anyhow::Result<()> {
    let columns = page_columns(line_width()).min(400) as u16;
    let area = Rect::new(0, 0, columns, LINES);
    let mut buffer = Buffer::empty(area);
    draw(state, area, &mut buffer, look);
    let mut out = printed(true);
    // The last line names keys.
    for y in 0..LINES - 1 {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        let line = line.trim_end();
        if !line.is_empty() {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
