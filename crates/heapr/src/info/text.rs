//! `heapr info` as text. Long lists are cut to their first lines; JSON has them whole.

use std::collections::BTreeMap;
use std::io::{self, Write};

use heapr_export::OwnMemoryIntervals;
use heapr_trace::{Damage, Process, ProcessOrigin, SamplingPeriod, Trace};

use super::{End, end_of, hexadecimal, kind_name};
use crate::snapshot::native::why;
use heapr_table::SortRows as _;
use heapr_table::plain::cut_middle;
use heapr_table::quantity::{bytes, count, duration, plural};
use heapr_table::{Cell, Column, Table, row};

/// Lines of a list before it is cut: a shell that starts thousands of programs must not hide the
/// rest.
const LIST_LINES_MAX: usize = 40;
/// Schema of the tables of which the lists are made.
const SCHEMA: &str = "heapr.info/1";
/// Column in which values begin.
const VALUE_COLUMN: usize = 14;

/// Writes everything in lines of at most `width` columns. `damaged`: all damage in the file.
pub(crate) fn write_text(
    out: &mut dyn Write,
    trace: &Trace,
    file: &str,
    file_bytes: u64,
    damaged: &[Damage],
    width: usize,
) -> io::Result<()> {
    let mut page = Page { out, width };
    page.head(trace, file, file_bytes)?;
    page.damage(damaged)?;
    page.system(trace)?;
    page.session(trace)?;
    page.sampling(trace)?;
    page.markers(trace)?;
    page.processes(trace)?;
    page.threads(trace)?;
    page.own_memory(trace)?;
    page.modules(trace)?;
    page.snapshots(trace)?;
    page.chunks(trace)?;
    page.loss(trace)?;
    page.statistics(trace)
}

struct Page<'a> {
    out: &'a mut dyn Write,
    width: usize,
}

impl Page<'_> {
    fn title(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out)?;
        writeln!(self.out, "{title}")
    }

    fn field(&mut self, name: &str, value: &str) -> io::Result<()> {
        let value = cut_middle(value, self.width.saturating_sub(VALUE_COLUMN + 2));
        writeln!(self.out, "  {name:<VALUE_COLUMN$}{value}")
    }

    /// Writes a table of `row_count` rows, the first lines of which are shown, below its head.
    fn list(&mut self, table: &Table, row_count: usize) -> io::Result<()> {
        for line in table.lines(2, self.width) {
            writeln!(self.out, "{line}")?;
        }
        if let Some(left_out @ 1..) = row_count.checked_sub(LIST_LINES_MAX) {
            writeln!(self.out, "  … and {} more: --format json has them all", count(left_out as u64))?;
        }
        Ok(())
    }

    /// Writes how allocations were sampled, over time.
    fn sampling(&mut self, trace: &Trace) -> io::Result<()> {
        let Some(sampled) = heapr_export::sampled_text(trace.sampling()) else { return Ok(()) };
        self.title("SAMPLING")?;
        self.field("malloc", &sampled)?;
        let periods = trace.sampling().periods();
        for period in periods.iter().take(LIST_LINES_MAX) {
            let mean = match period.mean_bytes {
                SamplingPeriod::ALL_BYTES => "all".to_owned(),
                SamplingPeriod::NOTHING_BYTES => "nothing".to_owned(),
                mean_bytes => format!("every {}", bytes(mean_bytes)),
            };
            let of_runtime = period.runtime_of();
            let whose = trace.processes().get(of_runtime.unwrap_or(period.process).0 as usize);
            let whose = whose.map_or("the session".to_owned(), |process| format!("process {}", process.pid));
            let by = if of_runtime.is_some() { " by its runtime" } else { "" };
            self.field(&format!("from {}", duration(period.from_ns)), &format!("{mean}, {whose}{by}"))?;
        }
        match periods.len().checked_sub(LIST_LINES_MAX) {
            None | Some(0) => Ok(()),
            Some(more) => self.field("", &format!("… and {} more", count(more as u64))),
        }
    }

    fn head(&mut self, trace: &Trace, file: &str, file_bytes: u64) -> io::Result<()> {
        let event_count = trace.event_count();
        let head = format!(
            "{}: {} in {}, {}",
            file,
            plural(event_count, "event"),
            duration(trace.duration_ns()),
            bytes(file_bytes)
        );
        writeln!(self.out, "{head}")?;
        if event_count > 0 {
            writeln!(self.out, "{:.2} bytes per event", file_bytes as f64 / event_count as f64)?;
        }
        if !trace.is_complete() {
            warn!("{file}: the recording goes on, or did not end in order: complete up to its last flush");
        }
        Ok(())
    }

    fn damage(&mut self, damaged: &[Damage]) -> io::Result<()> {
        for damage in damaged.iter().take(LIST_LINES_MAX) {
            let size = plural(damage.bytes, "byte");
            writeln!(self.out, "DAMAGE: {size} at offset {}: {}", damage.offset, damage.what)?;
        }
        if let Some(left_out @ 1..) = damaged.len().checked_sub(LIST_LINES_MAX) {
            writeln!(self.out, "DAMAGE: … at {}", plural(left_out as u64, "more place"))?;
        }
        Ok(())
    }

    fn system(&mut self, trace: &Trace) -> io::Result<()> {
        let system = trace.system();
        self.title("System")?;
        self.field("kernel", &system.kernel)?;
        self.field("machine", &system.machine)?;
        self.field("distribution", &system.distribution)?;
        self.field("processors", &system.cpu_count.to_string())?;
        self.field(
            "memory",
            &format!("{}, pages of {}", bytes(system.memory_bytes), bytes(system.page_bytes)),
        )
    }

    fn session(&mut self, trace: &Trace) -> io::Result<()> {
        let session = trace.session();
        self.title("Session")?;
        self.field("name", &format!("{} (heapr {})", session.name, session.heapr_version))?;
        self.field("command", &session.command_line.join(" "))?;
        self.field("start", &wall_clock(session.start_unix_ns))?;
        self.field("clock", &session.clock)?;
        let buffers = format!(
            "{} to {} of {}, on full: {}",
            session.min_buffers,
            session.max_buffers,
            bytes(u64::from(session.buffer_bytes)),
            session.on_full
        );
        self.field("buffers", &buffers)?;
        self.field("flush timer", &duration(u64::from(session.flush_timer_ms) * 1_000_000))?;
        let frames = if session.max_frames == 0 { "all".to_owned() } else { session.max_frames.to_string() };
        let stacks = if session.stacks.is_empty() { "none" } else { &session.stacks };
        self.field("stacks", &format!("of {stacks}; frames: {frames}"))
    }

    fn processes(&mut self, trace: &Trace) -> io::Result<()> {
        self.title(&format!("Processes ({})", count(trace.processes().len() as u64)))?;
        let columns = [
            Column::number("pid", "Pid"),
            Column::number("parent_pid", "Parent"),
            Column::text("origin", "By"),
            Column::ns("start_ns", "Start"),
            Column::ns("lived_ns", "Lived"),
            Column::text("end", "Ended"),
            Column::text("command_line", "Command"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for process in trace.processes().iter().take(LIST_LINES_MAX) {
            table.row(row![
                process.pid,
                process.parent_pid,
                if process.origin == ProcessOrigin::Exec { "exec" } else { "fork" },
                process.start_ns,
                process.end_ns.map(|end_ns| end_ns.saturating_sub(process.start_ns)),
                ended(process),
                command(process),
            ]);
        }
        self.list(&table, trace.processes().len())
    }

    fn threads(&mut self, trace: &Trace) -> io::Result<()> {
        self.title(&format!("Threads ({})", count(trace.threads().len() as u64)))?;
        let columns = [
            Column::number("tid", "Tid"),
            Column::number("pid", "Pid"),
            Column::ns("start_ns", "Start"),
            Column::ns("lived_ns", "Lived"),
            Column::text("name", "Name"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for thread in trace.threads().iter().take(LIST_LINES_MAX) {
            let process = trace.processes().get(thread.process.0 as usize);
            // A thread whose end was not recorded ends with its process.
            let end_ns = thread.end_ns.or_else(|| process?.end_ns);
            table.row(row![
                thread.tid,
                process.map(|process| process.pid),
                thread.start_ns,
                end_ns.map(|end_ns| end_ns.saturating_sub(thread.start_ns)),
                thread.name.as_str(),
            ]);
        }
        self.list(&table, trace.threads().len())
    }

    fn modules(&mut self, trace: &Trace) -> io::Result<()> {
        self.title(&format!("Modules ({})", count(trace.modules().len() as u64)))?;
        let mut mapped = vec![0_u64; trace.modules().len()];
        for mapping in trace.mappings() {
            if let Some(times) = mapped.get_mut(mapping.module.0 as usize) {
                *times += 1;
            }
        }
        let columns = [
            Column::text("path", "Path"),
            Column::count("mapping_count", "Mapped"),
            Column::text("build_id", "Build-id"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for (module, times) in trace.modules().iter().zip(mapped).take(LIST_LINES_MAX) {
            let path = if module.path.is_empty() { "(unknown)" } else { module.path.as_str() };
            // The first digits distinguish builds; JSON has all.
            let build_id = hexadecimal(module.build_id.get(..8).unwrap_or(&module.build_id));
            table.row(row![path, times, build_id]);
        }
        self.list(&table, trace.modules().len())
    }

    /// Writes the most memory that each process held, and how much of it no recorded block
    /// explains.
    fn own_memory(&mut self, trace: &Trace) -> io::Result<()> {
        let mut accounts: Vec<_> = trace.memory_accounts().iter().collect();
        if accounts.is_empty() {
            return Ok(());
        }
        accounts.sort_rows_by_key(|account| std::cmp::Reverse(account.anonymous_bytes));
        let intervals = OwnMemoryIntervals::of(trace);
        self.title("Own memory, when it was most")?;
        let columns = [
            Column::text("process", "Process"),
            Column::bytes("bytes", "Bytes"),
            Column::text("share", "Share"),
            Column::text("seen", "In blocks"),
            Column::text("what", "What"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for account in accounts.iter().take(LIST_LINES_MAX) {
            let all = account.anonymous_bytes;
            let share = |part: u64| format!("{} %", u128::from(part) * 100 / u128::from(all.max(1)));
            let process = trace.processes().get(account.process.0 as usize);
            let name = process.map_or(String::new(), |process| format!("{} {}", process.pid, process.name()));
            let seen = share(all.saturating_sub(account.unseen_bytes()));
            table.row(row![name, all, share(account.explained_bytes()), seen, "explained, all in all"]);
            let mut parts: Vec<_> = account.parts.iter().collect();
            parts.sort_rows_by_key(|part| std::cmp::Reverse(part.bytes));
            for part in parts {
                let seen = if part.is_unseen { "no" } else { "yes" };
                let bytes = Cell::from(part.bytes).within(intervals.plus_minus(account, part));
                table.row(row!["", bytes, share(part.bytes), seen, part.kind.to_string()]);
            }
            let rest = all.saturating_sub(account.explained_bytes());
            if rest > 0 {
                table.row(row!["", rest, share(rest), "no", "not explained"]);
            }
        }
        self.list(&table, accounts.len())
    }

    fn snapshots(&mut self, trace: &Trace) -> io::Result<()> {
        let snapshots = trace.snapshots();
        if snapshots.is_empty() {
            return Ok(());
        }
        self.title(&format!("Snapshots of live blocks ({})", count(snapshots.len() as u64)))?;
        let columns = [
            Column::number("number", "#"),
            Column::ns("time_ns", "Time"),
            Column::text("trigger", "Why"),
            Column::count("process_count", "Processes"),
            Column::count("block_count", "Blocks"),
            Column::bytes("block_bytes", "Bytes"),
            Column::ns("export_ns", "Written in"),
            Column::text("name", "Name"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for snapshot in snapshots.iter().take(LIST_LINES_MAX) {
            let amount = trace.snapshot_estimate(snapshot);
            table.row(row![
                snapshot.number,
                snapshot.time_ns,
                why(snapshot.trigger),
                snapshot.processes.len(),
                amount.count_cell(),
                amount.bytes_cell(),
                snapshot.export_ns,
                snapshot.name.as_str(),
            ]);
        }
        self.list(&table, snapshots.len())
    }

    fn chunks(&mut self, trace: &Trace) -> io::Result<()> {
        self.title(&format!("Chunks ({})", count(trace.chunks().len() as u64)))?;
        let mut by_kind: BTreeMap<(u64, String), [u64; 4]> = BTreeMap::new();
        for chunk in trace.chunks() {
            // Ordered by the kinds' numbers, unknown ones last.
            let place = chunk.kind.map_or(u64::MAX, |kind| kind as u64);
            let sums = by_kind.entry((place, kind_name(chunk.kind))).or_default();
            let amounts = [1, chunk.item_count, chunk.stored_bytes, chunk.raw_bytes];
            for (sum, amount) in sums.iter_mut().zip(amounts) {
                *sum += u64::from(amount);
            }
        }
        let columns = [
            Column::text("kind", "Kind"),
            Column::count("chunk_count", "Chunks"),
            Column::count("item_count", "Items"),
            Column::bytes("stored_bytes", "Stored"),
            Column::bytes("raw_bytes", "Unpacked"),
        ];
        let mut table = Table::new(SCHEMA, &columns);
        for ((_, name), [chunk_count, item_count, stored_bytes, raw_bytes]) in &by_kind {
            table.row(row![name.as_str(), *chunk_count, *item_count, *stored_bytes, *raw_bytes]);
        }
        self.list(&table, by_kind.len())
    }

    fn loss(&mut self, trace: &Trace) -> io::Result<()> {
        let loss = trace.whole_loss();
        self.title("Loss")?;
        let counts = [
            (loss.events_lost, "events lost (buffers full)"),
            (loss.stacks_lost, "stacks cut or lost"),
            (loss.events_late, "events whose time was corrected"),
            (loss.records_invalid, "events lost, at least (records that made no sense)"),
            (loss.processes_refused, "processes not traced"),
        ];
        let notices = heapr_query::notice_lines(trace, duration);
        if counts.iter().all(|&(number, _)| number == 0) && notices.is_empty() {
            let is_whole = trace.is_complete() && trace.damage().is_empty();
            return writeln!(self.out, "  none{}", if is_whole { "" } else { " in the part that was read" });
        }
        for (number, what) in counts.into_iter().filter(|&(number, _)| number > 0) {
            writeln!(self.out, "  {:>VALUE_COLUMN$} {what}", count(number))?;
        }
        for line in notices {
            writeln!(self.out, "  {}", line)?;
        }
        Ok(())
    }

    fn markers(&mut self, trace: &Trace) -> io::Result<()> {
        if trace.markers().is_empty() {
            return Ok(());
        }
        self.title("Markers")?;
        let mut table = Table::new(SCHEMA, &[Column::ns("time_ns", "Time"), Column::text("text", "Text")]);
        for marker in trace.markers().iter().take(LIST_LINES_MAX) {
            table.row(row![marker.time_ns, marker.text.as_str()]);
        }
        self.list(&table, trace.markers().len())
    }

    fn statistics(&mut self, trace: &Trace) -> io::Result<()> {
        if trace.statistics().is_empty() {
            return Ok(());
        }
        self.title("Statistics")?;
        let mut table = Table::new(SCHEMA, &[Column::text("name", "Name"), Column::count("value", "Value")]);
        for statistic in trace.statistics().iter().take(LIST_LINES_MAX) {
            table.row(row![statistic.name.as_str(), statistic.value]);
        }
        self.list(&table, trace.statistics().len())
    }
}

fn ended(process: &Process) -> String {
    match process.exit_status.map(end_of) {
        Some(End::Exited(code)) => format!("exit {code}"),
        Some(End::Killed(signal)) => format!("signal {signal}"),
        None => String::new(),
    }
}

fn command(process: &Process) -> String {
    let line = process.command_line.join(" ");
    if line.is_empty() { process.name().to_owned() } else { line }
}

/// Formats local time with the offset from UTC, to the millisecond.
fn wall_clock(unix_ns: u64) -> String {
    let Ok(timestamp) = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) else {
        return "unknown".to_owned();
    };
    timestamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S%.3f %z").to_string()
}
