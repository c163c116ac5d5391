//! Text of a session's status.

use std::fmt::Write as _;

use heapr_session::{ProcessStatus, SessionState, SessionStatus};

use crate::plain_text::printable;
use heapr_table::quantity::{bytes, bytes_within, count, duration, plural, plural_within};
use heapr_table::{Cell, Column, Table, row};

/// Columns of a line if the terminal's width is unknown.
const WIDTH: usize = 100;
/// Largest number of processes shown of a session.
const PROCESSES_SHOWN: usize = 20;

/// Formats one line for each session.
pub(super) fn list(all: &[&SessionStatus]) -> String {
    if all.is_empty() {
        return "no session is running\n".to_owned();
    }
    let columns = [
        Column::text("name", "session"),
        Column::text("state", "state"),
        Column::text("mode", "mode"),
        Column::ns("duration_ns", "time"),
        Column::count("live_process_count", "processes"),
        Column::count("event_count", "events"),
        Column::count("events_lost", "lost"),
        Column::bytes("live_bytes", "live"),
        Column::bytes("peak_bytes", "peak"),
        Column::bytes("file_bytes", "file"),
    ];
    let mut table = Table::new("heapr.status/1", &columns);
    for status in all {
        let (alive, all) = (status.live_process_count, status.process_count);
        table.row(row![
            status.name.as_str(),
            state(status),
            status.mode.as_str(),
            status.duration_ns,
            Cell::worded(alive, format!("{} of {}", count(alive), count(all))),
            status.event_count,
            status.events_lost,
            Cell::from(status.live_bytes).within(status.live_bytes_plus_minus),
            Cell::from(status.peak_bytes).within(status.peak_bytes_plus_minus),
            status.file_bytes,
        ]);
    }
    lines(&table)
}

/// Formats the sampling rate: `no: all is recorded`, or `auto, every 1.00 MiB now: …`.
fn sampling(status: &SessionStatus) -> String {
    let Some(rate) = &status.sample else { return "no: all is recorded".to_owned() };
    match status.sample_mean_bytes {
        0 => format!("{rate}; all is recorded now"),
        u64::MAX => "off: nothing is recorded".to_owned(),
        mean_bytes => format!("{rate}, every {} now: what is live is an estimate", bytes(mean_bytes)),
    }
}

/// Formats everything known of one session.
pub(super) fn whole(status: &SessionStatus) -> String {
    let mut fields: Vec<(&str, String)> = vec![
        ("session", format!("{} ({})", status.name, state(status))),
        ("mode", status.mode.clone()),
        ("recorder", format!("process {}", status.recorder_pid)),
        ("time", duration(status.duration_ns)),
        ("file", printable(&status.output.to_string_lossy())),
        ("file size", bytes(status.file_bytes)),
        ("events", count(status.event_count)),
        ("events lost", count(status.events_lost)),
        (
            "buffers",
            format!(
                "{} of {}, {} free, {} at most in use, {} written",
                count(status.buffer_count),
                bytes(status.buffer_bytes),
                count(status.buffers_free),
                count(status.buffers_claimed_max),
                count(status.buffers_written)
            ),
        ),
        ("waits", plural(status.wait_count, "wait")),
        ("sampling", sampling(status)),
        (
            "live",
            format!(
                "{} in {}",
                bytes_within(status.live_bytes, status.live_bytes_plus_minus),
                plural_within(status.live_count, status.live_count_plus_minus, "block")
            ),
        ),
        (
            "peak",
            format!(
                "{} at {}",
                bytes_within(status.peak_bytes, status.peak_bytes_plus_minus),
                duration(status.peak_time_ns)
            ),
        ),
        ("stacks", if status.stacks.is_empty() { "none".to_owned() } else { status.stacks.clone() }),
        ("markers", count(status.marker_count)),
    ];
    if status.events_dropped > 0 {
        let dropped = format!("{} (older than the window)", count(status.events_dropped));
        fields.push(("events dropped", dropped));
    }
    for (name, number) in [
        ("stacks lost", status.stacks_lost),
        ("events late", status.events_late),
        ("records invalid", status.records_invalid),
        ("processes refused", status.processes_refused),
    ] {
        if number > 0 {
            fields.push((name, count(number)));
        }
    }
    if let Some(text) = agents(status) {
        fields.push(("heapr's own", text));
    }
    if let Some(error) = &status.write_error {
        fields.push(("WRITE ERROR", printable(error)));
    }
    if let Some(method) = &status.flag_watch {
        fields.push(("flagged programs", printable(method)));
    }
    let mut processes =
        format!("{} of {} alive", count(status.live_process_count), count(status.process_count));
    if has_ended(status) {
        let _ = write!(processes, "; `heapr stop {}` completes the file", status.name);
    }
    fields.push(("processes", processes));
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| format!("  {name:<width$}  {value}\n");
    let mut text: String = fields.iter().map(line).collect();
    text.push_str(&processes_of(status));
    for remark in &status.remarks {
        let _ = writeln!(text, "  {}", printable(remark));
    }
    text
}

/// Formats the memory of agents in live processes, without code and shared buffers.
fn agents(status: &SessionStatus) -> Option<String> {
    let sum = |of: fn(&ProcessStatus) -> Option<u64>| -> Option<u64> {
        let known: Vec<u64> = status.processes.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    };
    let (mapping_count, mapped_bytes) =
        (sum(|process| process.agent_mapping_count)?, sum(|process| process.agent_mapped_bytes)?);
    let resident = sum(|process| process.agent_resident_bytes)
        .map_or("what is in memory unknown".to_owned(), |resident| format!("{} in memory", bytes(resident)));
    Some(format!(
        "{resident}, {} mapped in {} of the programs",
        bytes(mapped_bytes),
        plural(mapping_count, "mapping")
    ))
}

/// Formats the share of a process's own memory that is in recorded live blocks.
fn in_blocks(process: &ProcessStatus) -> String {
    if process.own_bytes == 0 {
        return "unknown".to_owned();
    }
    let seen_bytes = process.live_bytes.min(process.own_bytes);
    format!("{} %", u128::from(seen_bytes) * 100 / u128::from(process.own_bytes))
}

fn processes_of(status: &SessionStatus) -> String {
    // Processes that have ended are in the trace; here they would hide the others.
    let alive: Vec<_> = status.processes.iter().filter(|process| process.is_alive).collect();
    if alive.is_empty() {
        return String::new();
    }
    let columns = [
        Column::number("pid", "pid"),
        Column::text("state", "state"),
        Column::bytes("live_bytes", "live"),
        Column::count("live_count", "blocks"),
        Column::bytes("own_bytes", "own memory"),
        Column::text("in_blocks", "in blocks"),
        Column::text("program", "program"),
    ];
    let mut table = Table::new("heapr.status/1", &columns);
    for process in alive.iter().take(PROCESSES_SHOWN) {
        let state = match &process.disabled {
            Some(reason) => format!("untraced: {reason}"),
            None => "traced".to_owned(),
        };
        table.row(row![
            process.pid,
            state,
            Cell::from(process.live_bytes).within(process.live_bytes_plus_minus),
            Cell::from(process.live_count).within(process.live_count_plus_minus),
            process.own_bytes,
            in_blocks(process),
            program(process)
        ]);
    }
    let mut text = lines(&table);
    if let Some(left_out @ 1..) = (status.live_process_count as usize).checked_sub(PROCESSES_SHOWN) {
        let _ = writeln!(text, "  … and {} more", count(left_out as u64));
    }
    text
}

/// Formats the program's path, after the name by which it was started if that differs.
fn program(process: &ProcessStatus) -> String {
    let path = printable(&process.executable);
    let is_own = process.name.is_empty() || process.executable.rsplit('/').next() == Some(&process.name);
    if is_own { path } else { format!("{} ({path})", printable(&process.name)) }
}

fn state(status: &SessionStatus) -> &'static str {
    match status.state {
        SessionState::Recording if has_ended(status) => "its processes have ended",
        SessionState::Recording => "recording",
        SessionState::Full => "full: recording has ended",
        _ => "unknown",
    }
}

/// True if all recorded processes have ended and no flag can add another one.
fn has_ended(status: &SessionStatus) -> bool {
    status.process_count > 0 && status.live_process_count == 0 && status.flag_watch.is_none()
}

fn lines(table: &Table) -> String {
    table.lines(2, WIDTH).into_iter().fold(String::new(), |text, line| text + &line + "\n")
}
