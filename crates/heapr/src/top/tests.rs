//! The view on made readings, drawn into cells.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::draw::{Look, draw};
use super::reader::News;
use super::reading::{Amount, Figures, Process, Reading, Row};
use super::recorder_share::RecorderShare;
use super::stack_view::{StackLine, StackView};
use super::state::{Effect, Page, State};

const LOOK: Look = Look { has_colors: false, has_bars: true };

fn amount(value: u64) -> Option<Amount> {
    Some(Amount { value, plus_minus: 0 })
}

fn row(name: &str, live: u64, blocks: u64, made: u64) -> Row {
    let figures = Figures {
        live_bytes: amount(live),
        live_count: amount(blocks),
        alloc_count: amount(made),
        alloc_bytes: amount(made * 10),
    };
    let (name, place) = (name.to_owned(), "a.c:7".to_owned());
    Row { key: name.clone(), name, place, stack: Some(format!("s{blocks}.0")), figures }
}

fn reading(seconds: u64, rows: Vec<Row>) -> Reading {
    let sum = |of: fn(&Figures) -> Option<Amount>| {
        amount(rows.iter().map(|row| of(&row.figures).map_or(0, |amount| amount.value)).sum())
    };
    Reading {
        time_ns: seconds * 1_000_000_000,
        stage: "recording".to_owned(),
        totals: Figures {
            live_bytes: sum(|figures| figures.live_bytes),
            live_count: sum(|figures| figures.live_count),
            alloc_count: sum(|figures| figures.alloc_count),
            alloc_bytes: sum(|figures| figures.alloc_bytes),
        },
        rows,
        curve: vec![0, 10, 20, 40, 80],
        curve_ns: 5_000_000_000,
        resident_bytes: Some(3 << 20),
        recorder: RecorderShare { resident_bytes: Some(9 << 20), processor_percent: Some(1.25) },
        processes: vec![
            Process { pid: 7, name: "one".to_owned(), is_traced: true },
            Process { pid: 9, name: "two".to_owned(), is_traced: true },
        ],
        finding: Some("grow keeps 9.77 KiB more each minute.".to_owned()),
        ..Reading::default()
    }
}

/// State after two readings, ten seconds apart: `grow` has grown, `rest` has not.
fn state() -> State {
    let mut state = State::new(heapr_filters::FilterArguments::default(), "one (7)".to_owned());
    let first = reading(10, vec![row("rest [a]", 50_000, 5, 50), row("grow [a]", 1_000, 1, 10)]);
    let then = reading(20, vec![row("rest [a]", 50_000, 5, 70), row("grow [a]", 11_000, 11, 510)]);
    for reading in [first, then] {
        state.take(News::Reading(state.query(), Box::new(reading)));
    }
    state
}

fn screen(state: &mut State, columns: u16, lines: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(state, frame.area(), frame.buffer_mut(), LOOK)).unwrap();
    let buffer = terminal.backend().buffer();
    (0..lines)
        .map(|y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let press = |character| {
        let code = match character {
            '\n' => KeyCode::Enter,
            '\u{8}' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            other => KeyCode::Char(other),
        };
        state.press(KeyEvent::new(code, KeyModifiers::NONE))
    };
    keys.chars().map(press).collect()
}

fn names(state: &State) -> Vec<&str> {
    state.lines().into_iter().map(|line| line.row.name.as_str()).collect()
}

#[test]
fn a_small_terminal_shows_finding_totals_curve_and_functions() {
    let lines = screen(&mut state(), 80, 24);
    let whole = lines.join("\n");
    assert_eq!(lines[0], "grow keeps 9.77 KiB more each minute.");
    assert!(lines[1].starts_with("one (7)") && lines[1].ends_with("recorder 9.00 MiB, 1.2 %"), "{whole}");
    assert_eq!(lines[2], "live 59.6 KiB in 16 blocks  resident 3.00 MiB  52 allocations/s, 520 B/s");
    assert!(lines[3].starts_with("80 B") && lines[3].ends_with('█'), "{whole}");
    assert!(lines[7].contains("LIVE* GROWTH/MIN BLOCKS ALLOCS/S  OWN FUNCTION"), "{whole}");
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells(&lines[8]), ["48.8", "KiB", "0", "B", "5", "2.0", "rest", "[a]", "a.c:7"]);
    assert_eq!(cells(&lines[9]), ["10.7", "KiB", "+58.6", "KiB", "11", "50", "grow", "[a]", "a.c:7"]);
    assert!(lines[23].starts_with("q quit"), "{whole}");
}

#[test]
fn every_size_is_drawn() {
    for (columns, lines) in [(1, 1), (2, 40), (20, 3), (80, 10), (300, 100)] {
        let mut state = state();
        for keys in ["", "?", "?↓\n", "/--such\n"] {
            press(&mut state, keys);
            assert_eq!(screen(&mut state, columns, lines).len(), usize::from(lines));
        }
    }
    let mut empty = State::new(heapr_filters::FilterArguments::default(), "x".to_owned());
    assert!(screen(&mut empty, 80, 24)[0].contains("waiting for the first reading"));
}

#[test]
fn keys_sort_and_the_selection_follows_its_function() {
    let mut state = state();
    assert_eq!(names(&state), ["rest [a]", "grow [a]"]);
    press(&mut state, "↓");
    assert_eq!(press(&mut state, "g"), [Effect::Nothing], "growth needs no other question");
    assert_eq!((names(&state), state.at), (vec!["grow [a]", "rest [a]"], 0));
    assert_eq!(press(&mut state, "a"), [Effect::Ask]);
    assert_eq!(state.query().sort, "stc");
    assert_eq!(press(&mut state, "l"), [Effect::Ask]);
    assert_eq!((names(&state), state.at), (vec!["rest [a]", "grow [a]"], 1));
    assert_eq!(press(&mut state, "\n"), [Effect::OpenStack("s11.0".to_owned())]);
}

#[test]
fn a_mark_shows_what_has_grown_since() {
    let mut state = state();
    press(&mut state, "mg");
    let next = reading(25, vec![row("rest [a]", 50_100, 6, 70), row("grow [a]", 11_000, 11, 510)]);
    state.take(News::Reading(state.query(), Box::new(next)));
    assert_eq!(names(&state), ["rest [a]", "grow [a]"]);
    let whole = screen(&mut state, 100, 30).join("\n");
    assert!(whole.contains("SINCE MARK*") && whole.contains("+100 B"), "{whole}");
    press(&mut state, "M");
    assert_eq!(names(&state)[0], "grow [a]");
}

#[test]
fn a_filter_is_asked_and_a_wrong_one_is_corrected() {
    let mut state = state();
    assert_eq!(press(&mut state, "/--siz 1\n").last(), Some(&Effect::Nothing));
    assert!(state.typed.is_some() && state.message.as_ref().unwrap().contains("--siz"), "{state:?}");
    press(&mut state, "\u{8}\u{8}e 1 2K q");
    assert_eq!(press(&mut state, "\n"), [Effect::Ask]);
    let filter = state.query().filter;
    assert_eq!(filter.size, Some(vec!["1".to_owned(), "2K".to_owned()]));
    assert_eq!(filter.require_frames, ["q"], "a key of the table is text in a filter");
    // Answers to the earlier question are not shown.
    let earlier = State::default().query();
    state.take(News::Reading(earlier, Box::new(reading(30, vec![row("old", 1, 1, 1)]))));
    assert!(names(&state).is_empty());
    press(&mut state, "/\u{1b}");
    assert_eq!(state.query().filter, filter);
}

#[test]
fn processes_frames_and_functions_are_chosen_by_keys() {
    let mut state = state();
    for pid in [Some("7"), Some("9"), None] {
        assert_eq!(press(&mut state, "p"), [Effect::Ask]);
        assert_eq!(state.query().filter.pid.first().map(String::as_str), pid);
    }
    assert_eq!(press(&mut state, "o"), [Effect::Ask]);
    assert_eq!(state.query().of, "innermost");
    let shown: Vec<_> = (0..3)
        .map(|_| {
            press(&mut state, "f");
            state.query().filter.lang_frames.unwrap().word()
        })
        .collect();
    assert_eq!(shown, ["own", "native", "mixed"]);
}

#[test]
fn a_stack_is_opened_and_closed() {
    let mut state = state();
    press(&mut state, "\n");
    let line = |text: &str, is_own| StackLine { text: text.to_owned(), is_own };
    let view = StackView { lines: vec![line("#0 malloc", false), line("#1 grow", true)] };
    state.take(News::Stack(view));
    assert!(screen(&mut state, 80, 24).join("\n").contains("#1 grow"));
    press(&mut state, "\u{1b}");
    assert_eq!(state.page, Page::Table);
}

#[test]
fn the_view_ends_by_keys_alone_where_they_mean_that() {
    assert_eq!(press(&mut state(), "q"), [Effect::Quit]);
    let mut typing = state();
    assert_eq!(press(&mut typing, "/q"), [Effect::Nothing, Effect::Nothing]);
    let control = |character| KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL);
    assert_eq!(typing.press(control('c')), Effect::Nothing, "it ends the typing");
    assert_eq!(typing.press(control('c')), Effect::Quit);
    assert_eq!(typing.press(control('z')), Effect::Suspend);
    assert_eq!(press(&mut typing, "s"), [Effect::Snapshot(vec![7, 9])]);
}

#[test]
fn an_ended_session_stays_on_the_screen() {
    let mut state = state();
    let last = Reading { stage: "ended".to_owned(), ..reading(30, vec![row("last [a]", 1, 1, 1)]) };
    state.take(News::Reading(state.query(), Box::new(last)));
    let whole = screen(&mut state, 80, 24).join("\n");
    assert!(whole.contains("last [a]") && whole.contains("the session has ended"), "{whole}");
}
