//! Drawing of the view into a buffer of cells.

use heapr_table::plain::cut_middle;
use heapr_table::quantity::{bytes, bytes_within, count, plural_within, signed_bytes};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::history::{Change, Of};
use super::reading::{Amount, Reading};
use super::state::{Line, Page, SortBy, State};

/// Nanoseconds of a minute and of a second.
const MINUTE_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Rows of the curve.
const CURVE_ROWS: u16 = 4;
/// Least height of a terminal that shows the curve.
const CURVE_FROM_HEIGHT: u16 = 16;
/// Steps of a bar's last cell.
const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const PLAIN_BARS: [&str; 8] = [".", ".", ":", ":", "|", "|", "#", "#"];
/// Text of an amount that is not known.
const UNKNOWN: &str = "?";

const HELP: &[&str] = &[
    "Up Down PgUp PgDn Home End    select a function",
    "Enter                         its largest stack, with the source; any other key goes back",
    "l g b a                       sort by live, growth, blocks, allocations a second",
    "/                             filter, as of heapr report: render, --size 1M 1G, --thread 'io*'",
    "o                             own functions, or innermost functions",
    "f                             frames of languages: mixed, own, native",
    "p                             the next process, and then all",
    "m, M                          mark: show what has grown since; M: no mark",
    "s                             snapshot; of a single process with its graph",
    "Ctrl-Z                        stop, until fg",
    "q, Ctrl-C                     quit; a process that was attached to is let go",
    "",
    "~ and ±: estimates of a sampled recording, with half of their 95 % interval. ?: unknown.",
];

/// Abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) has_colors: bool,
    pub(super) has_bars: bool,
}

impl Look {
    /// Look of text without a terminal.
    pub(super) fn plain() -> Self {
        Self { has_colors: false, has_bars: is_utf8() }
    }

    /// Look by the environment: `NO_COLOR`, and the locale's characters.
    pub(super) fn of_terminal() -> Self {
        let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { has_colors: !is_off, has_bars: is_utf8() }
    }

    fn color(self, style: Style, color: Color) -> Style {
        if self.has_colors { style.fg(color) } else { style }
    }
}

/// Whether the locale's characters are UTF-8.
fn is_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Buffer with the position of the next line.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    y: u16,
}

impl Pen<'_> {
    fn line(&mut self, text: &str, style: Style) {
        self.line_at(self.y, text, style);
        self.y += 1;
    }

    fn line_at(&mut self, y: u16, text: &str, style: Style) {
        if y < self.area.bottom() {
            self.buffer.set_stringn(self.area.x, y, text, usize::from(self.area.width), style);
        }
    }

    /// Writes a line with a part at the right, which is left out if both do not fit.
    fn line_with_corner(&mut self, text: &str, corner: &str, style: Style) {
        let (width, corner_width) = (usize::from(self.area.width), corner.chars().count());
        let y = self.y;
        if y < self.area.bottom() && text.chars().count() + 2 + corner_width <= width {
            self.line(text, style);
            let x = self.area.right() - corner_width as u16;
            self.buffer.set_stringn(x, y, corner, corner_width, style);
        } else {
            self.line(&cut_middle(text, width), style);
        }
    }
}

/// Draws the view. Notes in the state how many lines a page has.
pub(super) fn draw(state: &mut State, area: Rect, buffer: &mut Buffer, look: Look) {
    let mut pen = Pen { buffer, area, y: area.y };
    let width = usize::from(area.width);
    draw_head(state, &mut pen, look);
    let rest = area.bottom().saturating_sub(pen.y + 2);
    state.page_lines = usize::from(rest).max(1);
    match &state.page {
        Page::Table => draw_table(state, &mut pen, look),
        Page::Help => {
            pen.line("Keys", Style::new().add_modifier(Modifier::BOLD));
            HELP.iter().for_each(|text| pen.line(text, Style::new()));
        }
        Page::Stack { name, view, first } => {
            pen.line(&cut_middle(name, width), Style::new().add_modifier(Modifier::BOLD));
            for line in view.lines.iter().skip(*first).take(usize::from(rest)) {
                let style =
                    if line.is_own { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
                pen.line(&line.text, style);
            }
        }
    }
    draw_foot(state, &mut pen, look);
}

fn draw_head(state: &State, pen: &mut Pen<'_>, look: Look) {
    let width = usize::from(pen.area.width);
    let Some(reading) = &state.reading else {
        pen.line(&format!("{}: waiting for the first reading", state.title), Style::new());
        return;
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let finding = reading.finding.as_deref().unwrap_or("nothing stands out so far");
    pen.line(&cut_end(finding, width), look.color(bold, Color::Yellow));
    let sampling = match &reading.sample {
        Some(rate) => format!(", sampled ({rate})"),
        None => String::new(),
    };
    let stage = if reading.stage == "recording" { String::new() } else { format!(", {}", reading.stage) };
    let pid = state.pid.map(|pid| format!(", process {pid} alone")).unwrap_or_default();
    pen.line_with_corner(&format!("{}{sampling}{stage}{pid}", state.title), &corner(reading), Style::new());
    pen.line(&cut_end(&totals(state, reading), width), Style::new());
    if pen.area.height >= CURVE_FROM_HEIGHT {
        draw_curve(reading, pen, look);
    }
}

/// Share of the recorder, for the corner.
fn corner(reading: &Reading) -> String {
    let share = reading.recorder;
    let memory = share.resident_bytes.map_or(UNKNOWN.to_owned(), bytes);
    let processor = share.processor_percent.map_or(UNKNOWN.to_owned(), |share| format!("{share:.1}"));
    format!("recorder {memory}, {processor} %")
}

fn totals(state: &State, reading: &Reading) -> String {
    let totals = reading.totals;
    let live = totals.live_bytes.map_or(UNKNOWN.to_owned(), |live| bytes_within(live.value, live.plus_minus));
    let blocks = totals
        .live_count
        .map_or(format!("{UNKNOWN} blocks"), |live| plural_within(live.value, live.plus_minus, "block"));
    let resident = reading.resident_bytes.map_or("unknown".to_owned(), bytes);
    let made = state.history.allocations(Of::All).map_or(UNKNOWN.to_owned(), rate);
    let made_bytes = state.history.allocated_bytes(Of::All);
    let made_bytes = made_bytes.map_or(UNKNOWN.to_owned(), |change| bytes(positive(change.per(SECOND_NS))));
    let lost = match reading.events_lost {
        0 => String::new(),
        lost => format!("  LOST {} events", count(lost)),
    };
    format!("live {live} in {blocks}  resident {resident}  {made} allocations/s, {made_bytes}/s{lost}")
}

/// Draws the curve of the live bytes: the newest moment is at the right.
fn draw_curve(reading: &Reading, pen: &mut Pen<'_>, look: Look) {
    let most = reading.curve.iter().copied().max().unwrap_or(0);
    let label = bytes(most);
    let minutes = format!("{} s", reading.curve_ns.div_ceil(SECOND_NS));
    let left = label.chars().count().max(minutes.chars().count()) + 1;
    let columns = usize::from(pen.area.width).saturating_sub(left);
    let bars = if look.has_bars { BARS } else { PLAIN_BARS };
    let levels = u64::from(CURVE_ROWS) * 8;
    let heights: Vec<u64> = columns_of(&reading.curve, columns)
        .into_iter()
        .map(|value| (u128::from(value) * u128::from(levels)).div_ceil(u128::from(most.max(1))) as u64)
        .collect();
    let style = look.color(Style::new(), Color::Cyan);
    for row in (0..CURVE_ROWS).rev() {
        let (y, base) = (pen.y, u64::from(row) * 8);
        let text: String = heights
            .iter()
            .map(|height| match height.saturating_sub(base) {
                0 => " ",
                part => bars[(part.min(8) - 1) as usize],
            })
            .collect();
        let name = match row {
            0 => minutes.as_str(),
            row if row + 1 == CURVE_ROWS => label.as_str(),
            _ => "",
        };
        pen.line(name, Style::new());
        if y < pen.area.bottom() {
            pen.buffer.set_stringn(pen.area.x + left as u16, y, text, columns, style);
        }
    }
}

/// Largest value of each of `columns` equal parts.
fn columns_of(values: &[u64], columns: usize) -> Vec<u64> {
    let part = |column: usize| {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let to = to.max(from + 1).min(values.len());
        values[from.min(to)..to].iter().copied().max().unwrap_or(0)
    };
    (0..if values.is_empty() { 0 } else { columns }).map(part).collect()
}

/// Cells of a line of the table, without the name.
fn cells(line: &Line<'_>, has_mark: bool) -> [String; 4] {
    let figures = line.row.figures;
    let live = |amount: Amount| format!("{}{}", tilde(amount), bytes(amount.value));
    let blocks = |amount: Amount| format!("{}{}", tilde(amount), count(amount.value));
    let growth = |growth: Change| signed_bytes(if has_mark { growth.amount } else { growth.per(MINUTE_NS) });
    [
        figures.live_bytes.map_or(UNKNOWN.to_owned(), live),
        line.growth.map_or(UNKNOWN.to_owned(), growth),
        figures.live_count.map_or(UNKNOWN.to_owned(), blocks),
        line.allocations.map_or(UNKNOWN.to_owned(), rate),
    ]
}

/// Mark of an estimate.
fn tilde(amount: Amount) -> &'static str {
    if amount.plus_minus > 0 { "~" } else { "" }
}

fn positive(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

fn rate(change: Change) -> String {
    let tenths = positive(change.per(10 * SECOND_NS));
    if tenths < 100 { format!("{}.{}", tenths / 10, tenths % 10) } else { count(tenths / 10) }
}

fn draw_table(state: &State, pen: &mut Pen<'_>, look: Look) {
    let width = usize::from(pen.area.width);
    let lines = state.lines();
    let visible = usize::from(pen.area.bottom().saturating_sub(pen.y + 2));
    let first = (state.at + 1).saturating_sub(visible.max(1));
    let heads = [
        ("LIVE", SortBy::Live),
        (if state.mark.is_some() { "SINCE MARK" } else { "GROWTH/MIN" }, SortBy::Growth),
        ("BLOCKS", SortBy::Blocks),
        ("ALLOCS/S", SortBy::Allocations),
    ];
    let head = heads.map(|(text, by)| format!("{text}{}", if by == state.sort { "*" } else { "" }));
    let shown: Vec<([String; 4], &Line<'_>)> = lines
        .iter()
        .skip(first)
        .take(visible)
        .map(|line| (cells(line, state.mark.is_some()), line))
        .collect();
    let mut widths = head.each_ref().map(|text| text.chars().count());
    for (cells, _) in &shown {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let row = |cells: &[String; 4]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$} "));
        cells.collect::<String>()
    };
    let title = if state.is_innermost { "INNERMOST FUNCTION" } else { "OWN FUNCTION" };
    let reverse = Style::new().add_modifier(Modifier::REVERSED);
    pen.line(&format!("{:width$}", format!("{} {title}", row(&head))), reverse);
    for (number, (cells, line)) in shown.iter().enumerate() {
        let start = row(cells);
        let left = width.saturating_sub(start.chars().count() + 1);
        let name = match line.row.place.as_str() {
            "" => line.row.name.clone(),
            place => format!("{}  {place}", line.row.name),
        };
        let text = format!("{start} {}", cut_middle(&name, left));
        let is_selected = first + number == state.at;
        let grows = line.growth.is_some_and(|growth| growth.amount > 0);
        let style = match (is_selected, grows) {
            (true, _) => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (false, true) => look.color(Style::new(), Color::Red),
            (false, false) => Style::new(),
        };
        pen.line(&text, style);
    }
}

fn draw_foot(state: &State, pen: &mut Pen<'_>, look: Look) {
    let y = pen.area.bottom().saturating_sub(1);
    let width = usize::from(pen.area.width);
    let text = match (&state.typed, &state.message) {
        (Some(typed), Some(message)) => format!("/{typed}_   {message}"),
        (Some(typed), None) => format!("/{typed}_"),
        (None, Some(message)) => message.clone(),
        (None, None) => {
            let filter = match state.filter_text.as_str() {
                "" => String::new(),
                filter => format!("   filter: {filter}"),
            };
            format!("q quit  ? keys  / filter  Enter stack  m mark  s snapshot{filter}")
        }
    };
    let text = heapr_table::plain::printable(&text);
    let blank = " ".repeat(width);
    pen.line_at(y, &blank, Style::new());
    let style = if state.message.is_some() { look.color(Style::new(), Color::Yellow) } else { Style::new() };
    pen.line_at(y, &cut_end(&text, width), style);
}

/// Cuts a text at its end.
fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
