//! The terminal: raw mode, keys, size, stops; given back however the view ends.

use std::io::{self, Write as _};
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;

use super::draw::{Look, draw};
use super::reader::{News, Order, Reader};
use super::signals::{self, Told};
use super::state::{Effect, State};
use super::target::Target;

/// Interval at which news and signals are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// Terminal in raw mode with its second screen; dropped, it is as before.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All), cursor::Hide);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        Ok(Self { terminal: terminal.inspect_err(|_| leave())? })
    }

    fn draw(&mut self, state: &mut State, look: Look) -> io::Result<()> {
        self.terminal
            .draw(|frame| {
                let area = frame.area();
                draw(state, area, frame.buffer_mut(), look);
            })
            .map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back. A lost terminal takes nothing.
fn leave() {
    let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

/// Shows the session until a key, a signal or the loss of the terminal ends it.
pub(super) fn run(mut state: State, reader: &Reader, target: &mut Target) -> anyhow::Result<()> {
    let told = signals::watch()?;
    let look = Look::of_terminal();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave();
        hook(panic);
    }));
    let mut screen = Screen::enter()?;
    let mut is_stale = true;
    loop {
        for news in reader.news.try_iter() {
            take(&mut state, news, target);
            is_stale = true;
        }
        if is_stale && screen.draw(&mut state, look).is_err() {
            // The terminal is lost.
            return Ok(());
        }
        is_stale = false;
        let mut effect = Effect::Nothing;
        for told in told.try_iter() {
            match told {
                Told::End => return Ok(()),
                Told::Suspend => effect = Effect::Suspend,
                Told::Resumed => {
                    drop(screen);
                    screen = Screen::enter()?;
                    is_stale = true;
                }
            }
        }
        match next_key(&mut state, &mut is_stale) {
            Ok(Effect::Nothing) => {}
            Ok(asked) => effect = asked,
            Err(_) => return Ok(()),
        }
        match effect {
            Effect::Nothing => {}
            Effect::Ask => reader.order(Order::Query(state.query())),
            Effect::OpenStack(id) => reader.order(Order::Stack(id)),
            // The recording of a session that ends with this view would be removed.
            Effect::Snapshot(pids) => match target.keep() {
                Ok(_) => reader.order(Order::Snapshot(pids)),
                Err(error) => state.message = Some(format!("no snapshot: {error:#}")),
            },
            Effect::Quit => return Ok(()),
            Effect::Suspend => {
                drop(screen);
                // The signal's own effect; it returns when the program goes on.
                signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
                screen = Screen::enter()?;
                is_stale = true;
            }
        }
    }
}

fn take(state: &mut State, news: News, target: &mut Target) {
    let is_snapshot = matches!(news, News::Snapshot(_));
    state.take(news);
    if is_snapshot {
        let kept = match target.keep() {
            Ok(Some(path)) => format!("; kept in {}", path.display()),
            Ok(None) => String::new(),
            Err(error) => format!("; it is not kept: {error:#}"),
        };
        state.add_to_message(&kept);
    }
}

/// Waits for a key for a moment, and takes all that have arrived. Any event makes the screen stale.
fn next_key(state: &mut State, is_stale: &mut bool) -> io::Result<Effect> {
    let mut wait = PATIENCE;
    while poll(wait)? {
        wait = Duration::ZERO;
        *is_stale = true;
        if let Event::Key(key) = read()?
            && key.kind != KeyEventKind::Release
        {
            let effect = state.press(key);
            if effect != Effect::Nothing {
                return Ok(effect);
            }
        }
    }
    Ok(Effect::Nothing)
}
