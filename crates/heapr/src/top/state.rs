//! State of the view: what keys, readings and failures make of it. It knows no terminal.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use heapr_filters::{FilterArguments, ShownFrames};
use heapr_table::SortRows as _;

use super::filter_line;
use super::history::{Change, History, Moment, Of};
use super::reader::{News, Query};
use super::reading::{Reading, Row};
use super::stack_view::StackView;

/// Order of the table; all are descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SortBy {
    #[default]
    Live,
    Growth,
    Blocks,
    Allocations,
}

impl SortBy {
    /// Key by which the server sorts; growth is known here alone.
    fn key(self) -> &'static str {
        match self {
            Self::Live | Self::Growth => "so",
            Self::Blocks => "soc",
            Self::Allocations => "stc",
        }
    }
}

/// Part of the view that keys go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Page {
    #[default]
    Table,
    /// Stack of a function, and the first line that is shown.
    Stack {
        name: String,
        view: StackView,
        first: usize,
    },
    Help,
}

/// Work that a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// Asks the present [`State::query`].
    Ask,
    OpenStack(String),
    Snapshot(Vec<u32>),
    Suspend,
    Quit,
}

/// Function of the table with what its history tells.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) row: &'a Row,
    /// Growth in the last minute, or since the mark.
    pub(super) growth: Option<Change>,
    pub(super) allocations: Option<Change>,
}

/// State of the view.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) title: String,
    pub(super) reading: Option<Reading>,
    pub(super) history: History,
    pub(super) mark: Option<Moment>,
    pub(super) page: Page,
    pub(super) sort: SortBy,
    /// True if functions answer for the stacks in which they are the innermost frame.
    pub(super) is_innermost: bool,
    filter: FilterArguments,
    /// Filter as it was typed.
    pub(super) filter_text: String,
    /// Processes chosen by key; `None`: those of the filter.
    pub(super) pid: Option<u32>,
    /// Filter that is being typed.
    pub(super) typed: Option<String>,
    /// Key of the selected function: it stays selected when the order changes.
    selected: Option<String>,
    /// Index of the selected line.
    pub(super) at: usize,
    /// Number of lines of a page, of the last drawing.
    pub(super) page_lines: usize,
    pub(super) message: Option<String>,
    /// True if the message is on a reading that failed.
    is_trouble: bool,
    /// Name of the function whose stack was asked for.
    opening: Option<String>,
}

impl State {
    pub(super) fn new(filter: FilterArguments, title: String) -> Self {
        let filter_text = filter_line::line(&filter.words());
        Self { title, filter, filter_text, page_lines: 10, ..Self::default() }
    }

    /// Question of the table.
    pub(super) fn query(&self) -> Query {
        let mut filter = self.filter.clone();
        if let Some(pid) = self.pid {
            filter.pid = vec![pid.to_string()];
        }
        let of = if self.is_innermost { "innermost" } else { "own" };
        Query { filter, of, sort: self.sort.key() }
    }

    /// Language frames that are shown.
    pub(super) fn shown_frames(&self) -> ShownFrames {
        self.filter.lang_frames.unwrap_or_default()
    }

    /// Lines of the table in their order.
    pub(super) fn lines(&self) -> Vec<Line<'_>> {
        let Some(reading) = &self.reading else { return Vec::new() };
        let rows = reading.rows.iter().map(|row| {
            let of = Of::Function(row.key.as_str());
            let growth = match &self.mark {
                Some(mark) => self.history.growth_since(mark, of),
                None => self.history.growth(of),
            };
            Line { row, growth, allocations: self.history.allocations(of) }
        });
        let mut lines: Vec<Line<'_>> = rows.collect();
        let live = |line: &Line<'_>| line.row.figures.live_bytes.map(|amount| amount.value);
        let changed = |change: Option<Change>| change.map(|change| change.per(60_000_000_000));
        lines.sort_rows_by_key(|line| {
            let first = match self.sort {
                SortBy::Live => live(line).map(i128::from),
                SortBy::Growth if self.mark.is_some() => line.growth.map(|growth| growth.amount),
                SortBy::Growth => changed(line.growth),
                SortBy::Blocks => line.row.figures.live_count.map(|amount| i128::from(amount.value)),
                SortBy::Allocations => changed(line.allocations),
            };
            (std::cmp::Reverse((first, live(line))), line.row.name.clone())
        });
        lines
    }

    /// Takes news of the reader.
    pub(super) fn take(&mut self, news: News) {
        match news {
            // An answer to a question that has changed meanwhile.
            News::Reading(query, _) if query != self.query() => {}
            News::Reading(_, reading) => {
                if std::mem::take(&mut self.is_trouble) || reading.trouble.is_some() {
                    (self.message, self.is_trouble) = (reading.trouble.clone(), reading.trouble.is_some());
                }
                self.history.add(&reading);
                self.reading = Some(*reading);
                if self.has_ended() {
                    self.message = self.reading.as_ref().map(|reading| match reading.stage.as_str() {
                        "cancelled" => "the session was cancelled: its recording is removed".to_owned(),
                        "lost" => "the recorder was killed: what it had written is shown".to_owned(),
                        _ => "the session has ended: its last state is shown".to_owned(),
                    });
                }
                self.follow_selection();
            }
            News::Stack(view) => {
                if let Some(name) = self.opening.take() {
                    self.page = Page::Stack { name, view, first: 0 };
                }
            }
            News::Snapshot(text) | News::SnapshotFailed(text) => {
                (self.message, self.is_trouble) = (Some(text), false);
            }
            News::Trouble(text) => (self.message, self.is_trouble) = (Some(text), true),
        }
    }

    /// Whether the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| !matches!(reading.stage.as_str(), "recording" | "full"))
    }

    /// Whether the rate of allocations is known.
    pub(super) fn has_rates(&self) -> bool {
        self.history.allocations(Of::All).is_some()
    }

    /// Adds to the message that is shown.
    pub(super) fn add_to_message(&mut self, text: &str) {
        self.message.get_or_insert_default().push_str(text);
    }

    fn follow_selection(&mut self) {
        let lines = self.lines();
        let place =
            self.selected.as_ref().and_then(|name| lines.iter().position(|line| line.row.key == *name));
        self.at = place.unwrap_or(self.at).min(lines.len().saturating_sub(1));
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') if self.typed.is_some() => {
                    self.typed = None;
                    Effect::Nothing
                }
                KeyCode::Char('c') => Effect::Quit,
                KeyCode::Char('z') => Effect::Suspend,
                _ => Effect::Nothing,
            };
        }
        if self.typed.is_some() {
            return self.press_typing(key.code);
        }
        self.message = None;
        match &mut self.page {
            Page::Help => {
                self.page = Page::Table;
                if key.code == KeyCode::Char('q') { Effect::Quit } else { Effect::Nothing }
            }
            Page::Stack { view, first, .. } => {
                let last = view.lines.len().saturating_sub(1);
                match key.code {
                    KeyCode::Char('q') => return Effect::Quit,
                    KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => *first = (*first + 1).min(last),
                    KeyCode::PageUp => *first = first.saturating_sub(self.page_lines),
                    KeyCode::PageDown => *first = (*first + self.page_lines).min(last),
                    _ => self.page = Page::Table,
                }
                Effect::Nothing
            }
            Page::Table => self.press_in_table(key.code),
        }
    }

    fn press_in_table(&mut self, code: KeyCode) -> Effect {
        match code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.page = Page::Help,
            KeyCode::Up | KeyCode::Char('k') => self.select(self.at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.at + 1),
            KeyCode::PageUp => self.select(self.at.saturating_sub(self.page_lines)),
            KeyCode::PageDown => self.select(self.at + self.page_lines),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            KeyCode::Char('l') => return self.sort_by(SortBy::Live),
            KeyCode::Char('g') => return self.sort_by(SortBy::Growth),
            KeyCode::Char('b') => return self.sort_by(SortBy::Blocks),
            KeyCode::Char('a') => return self.sort_by(SortBy::Allocations),
            KeyCode::Char('m') => self.mark = self.reading.as_ref().map(Moment::of),
            KeyCode::Char('M') => self.mark = None,
            KeyCode::Char('o') => {
                self.is_innermost = !self.is_innermost;
                return self.ask_anew();
            }
            KeyCode::Char('f') => {
                self.filter.lang_frames = Some(match self.shown_frames() {
                    ShownFrames::Mixed => ShownFrames::Own,
                    ShownFrames::Own => ShownFrames::Native,
                    ShownFrames::Native => ShownFrames::Mixed,
                });
                return self.ask_anew();
            }
            KeyCode::Char('p') => {
                self.pid = self.next_process();
                return self.ask_anew();
            }
            KeyCode::Char('/') => self.typed = Some(self.filter_text.clone()),
            KeyCode::Char('s') => return self.snapshot(),
            KeyCode::Enter => return self.open(),
            _ => {}
        }
        Effect::Nothing
    }

    fn press_typing(&mut self, code: KeyCode) -> Effect {
        let Some(text) = &mut self.typed else { return Effect::Nothing };
        match code {
            KeyCode::Char(character) => text.push(character),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => match filter_line::parse(text) {
                Ok(filter) => {
                    let shown = self.filter.lang_frames;
                    self.filter_text = text.trim().to_owned();
                    self.filter = FilterArguments { lang_frames: filter.lang_frames.or(shown), ..filter };
                    self.typed = None;
                    self.message = None;
                    return self.ask_anew();
                }
                Err(error) => self.message = Some(error),
            },
            _ => {}
        }
        Effect::Nothing
    }

    /// Forgets figures of another question, and asks the present one.
    fn ask_anew(&mut self) -> Effect {
        self.history = History::default();
        self.mark = None;
        self.reading = self.reading.take().map(|reading| Reading { rows: Vec::new(), ..reading });
        Effect::Ask
    }

    fn sort_by(&mut self, sort: SortBy) -> Effect {
        let before = self.query();
        self.sort = sort;
        self.follow_selection();
        if self.query() == before { Effect::Nothing } else { Effect::Ask }
    }

    fn select(&mut self, at: usize) {
        let lines = self.lines();
        let at = at.min(lines.len().saturating_sub(1));
        let name = lines.get(at).map(|line| line.row.key.clone());
        self.at = at;
        self.selected = name;
    }

    /// Processes that are traced.
    fn traced(&self) -> Vec<u32> {
        let processes = self.reading.iter().flat_map(|reading| &reading.processes);
        let mut pids: Vec<u32> =
            processes.filter(|process| process.is_traced).map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// The process after the chosen one, then all of them.
    fn next_process(&self) -> Option<u32> {
        self.traced().into_iter().find(|&pid| self.pid.is_none_or(|chosen| pid > chosen))
    }

    fn snapshot(&mut self) -> Effect {
        let pids = match self.pid {
            Some(pid) => vec![pid],
            None => self.traced(),
        };
        if pids.is_empty() {
            self.message = Some("no process is traced that a snapshot could be taken of".to_owned());
            return Effect::Nothing;
        }
        self.message = Some("taking a snapshot".to_owned());
        Effect::Snapshot(pids)
    }

    fn open(&mut self) -> Effect {
        let lines = self.lines();
        let Some(line) = lines.get(self.at) else { return Effect::Nothing };
        let (name, stack) = (line.row.name.clone(), line.row.stack.clone());
        match stack {
            Some(stack) => {
                self.opening = Some(name);
                Effect::OpenStack(stack)
            }
            None => {
                self.page = Page::Stack { name, view: StackView::of(&serde_json::Value::Null), first: 0 };
                Effect::Nothing
            }
        }
    }
}
