//! Summary that `heapr run` prints on standard error when the program has ended.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use heapr_export::Subject;
use heapr_findings::{Judged, quoted};
use heapr_query::{Action, Answer, FrameView, GroupBy, Metric, Query, Report, Suppressions};
use heapr_session::SessionSummary;
use heapr_trace::{Amounts, HeapId, ProcessIndex, Totals, Trace};

use crate::finding_text;
use crate::own_arguments::OwnArguments;
use crate::plain_text::{PlainText, error_line_width, page_columns};
use crate::report::amounts_text::{amount, things};
use crate::report::frame_text::frame_line;
use crate::report::names::{NameArguments, TraceNames};
use crate::run::recorded_processes;
use crate::style::Style;
use crate::trace_file::open;
use heapr_table::quantity::{count, duration, plural};

/// Stacks shown of each ranking.
const STACKS_SHOWN: usize = 5;
/// Frames shown of a stack.
const FRAMES_SHOWN: usize = 4;
/// Columns of a frame in a line of the summary.
const OWN_COLUMNS: usize = 60;

/// Facts on a recording that has ended, beside its file.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) event_count: u64,
    pub(crate) wall_ns: u64,
    pub(crate) process_count: u64,
    pub(crate) events_lost: u64,
    /// Status of the program that was started with the session, if it has ended.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) totals: Totals,
}

impl Ending {
    /// Returns the facts on a session of this process.
    pub(crate) fn of(ended: &SessionSummary, status: ExitStatus) -> Self {
        Self {
            event_count: ended.summary.event_count,
            wall_ns: u64::try_from(ended.wall.as_nanos()).unwrap_or(u64::MAX),
            process_count: ended.process_count as u64,
            events_lost: ended.statistics.loss.missing_events(),
            status: Some(status),
            totals: ended.summary.totals,
        }
    }
}

/// Prints the summary.
///
/// # Errors
/// The file cannot be read back.
pub(crate) fn print(ending: &Ending, output: &Path) -> anyhow::Result<()> {
    let mut text = PlainText(Vec::new());
    let busy = crate::busy_line::begin(format!("reading {}", output.display()));
    let trace = open(output)?;
    let file = output.display().to_string();
    let mut names = TraceNames::new(&trace, &NameArguments::default());
    let mut subject = Subject::new(output, &trace, &[], String::new());
    // If the user's list cannot be read, the summary is printed without it.
    if let Ok(own) = OwnArguments::default().code(&trace) {
        subject.own = own;
    }
    let ranking = |sort| Action::Ranking { by: GroupBy::Stacks, sort };
    let query = Query {
        actions: vec![ranking(Metric::default()), ranking(Metric::PeakBytes)],
        top: STACKS_SHOWN,
        // Naming all other stacks would take as long as the rest of the summary.
        only_held: true,
        ..Query::default()
    };
    let report = heapr_query::run(&trace, &query, &mut names)?;
    // A file without totals ends before the program did. The session's totals then cover more than
    // the file.
    let summary = trace.summary_totals().ok().flatten();
    let is_cut = summary.is_none();
    let mut totals = ending.totals;
    let mut by_heap = summary.map(|summary| summary.by_heap).unwrap_or_default();
    if trace.is_sampled() && !is_cut {
        totals.variances = report.totals.variances;
        by_heap = report.by_heap.iter().map(|row| (row.process, row.heap, row.totals)).collect();
    }
    let lived = Lived::of(&trace, &by_heap);
    let processes = recorded_processes::told(&trace, &by_heap);
    let whose = processes.as_ref().map_or_else(|| process_count(ending), |told| told.short.clone());
    write_totals(&mut text, (ending, &whose), &totals, &lived)?;
    write_field(&mut text, "processes", &processes.map(|told| told.line).unwrap_or_default())?;
    if let Some(sampled) = &subject.sampled {
        writeln!(text, "  {sampled}")?;
    }
    write_heaps(&mut text, &subject, &by_heap)?;
    let most = largest_at_peak(&trace, &subject, &report);
    let most = most.as_ref().map(|(process, most)| (*process, most.as_str()));
    let resident = heapr_export::resident_line(&trace, &subject.own, &mut names, most);
    write_field(&mut text, "resident", &resident.unwrap_or_default())?;
    // If judging fails, the summary has numbers only.
    let left_out = Suppressions::known();
    let judged = Judged {
        own: &subject.own,
        packages: &heapr_symbols::Packages::default(),
        left_out: &left_out,
        file: &file,
    };
    if let Ok(found) = heapr_findings::of_reported_recording(&trace, judged, report.names(), &mut names) {
        finding_text::write(&mut text, &found.verdict, &found.findings, Style::of_stderr(), false)?;
    }
    write_stacks(&mut text, &subject, &report, (is_cut, &lived))?;
    for warning in &subject.warnings {
        writeln!(text, "heapr: warning: {}: {warning}", subject.file)?;
    }
    if let Some(advice) = names.advice() {
        writeln!(text, "heapr: {advice}")?;
    }
    write_next_commands(&mut text, &file, trace.snapshots().len() as u64)?;
    drop(busy);
    // Errors are ignored: standard error may be closed.
    let _ = std::io::stderr().write_all(&text.0);
    Ok(())
}

/// Words for the stack with the most bytes at the peak, and its process.
fn largest_at_peak(trace: &Trace, subject: &Subject, report: &Report<'_>) -> Option<(ProcessIndex, String)> {
    let Answer::Ranking(ranking) = &report.sections.get(1)?.answer else { return None };
    let group = ranking.groups.first().filter(|group| group.amounts.peak_bytes > 0)?;
    let process = trace.stacks().node(group.representative)?.process;
    let frames = report.frames(group);
    let own = frames.get(subject.own.place(&frames)?)?;
    Some((process, format!("largest stack: {}", frame_line(own, OWN_COLUMNS))))
}

/// Writes a field whose text may take several lines; nothing without a text.
fn write_field(text: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    let columns = page_columns(error_line_width()).max(60) - 16;
    for (number, line) in finding_text::wrapped(value, columns).iter().enumerate() {
        let name = if number == 0 { name } else { "" };
        writeln!(text, "  {name:<13} {line}")?;
    }
    Ok(())
}

/// Writes commands that show more of the file, as a shell reads them.
fn write_next_commands(text: &mut impl Write, file: &str, snapshot_count: u64) -> io::Result<()> {
    let file = quoted(file);
    writeln!(text, "heapr: wrote {file}; more with")?;
    writeln!(text, "  heapr report {file}")?;
    writeln!(text, "  heapr explain {file}")?;
    writeln!(text, "  heapr view {file}")?;
    if snapshot_count > 0 {
        let taken = plural(snapshot_count, "snapshot");
        writeln!(text, "  heapr snapshot summary {file}   ({taken})")?;
    }
    Ok(())
}

/// Owners of the outstanding blocks: processes that live when the recording ends, and processes
/// that ended before, each as it was then.
struct Lived {
    living_count: usize,
    ended_count: usize,
    /// Outstanding blocks of processes that live.
    living: Amounts,
}

impl Lived {
    fn of(trace: &Trace, by_heap: &[(ProcessIndex, HeapId, Totals)]) -> Self {
        let lives = |process: ProcessIndex| {
            trace.processes().get(process.0 as usize).is_some_and(|process| process.end_ns.is_none())
        };
        let living_count = trace.processes().iter().filter(|process| process.end_ns.is_none()).count();
        let of_living = by_heap.iter().filter(|(process, ..)| lives(*process));
        let mut living = Amounts::default();
        of_living.for_each(|(_, _, totals)| living += &totals.amounts());
        Self { living_count, ended_count: trace.processes().len() - living_count, living }
    }

    /// Returns words that qualify the outstanding amount.
    fn whose(&self) -> String {
        match (self.living_count, self.ended_count) {
            (_, 0) | (0, 1) => String::new(),
            (0, _) => ", each process as it was when it ended".to_owned(),
            (living, _) => format!(
                ", of it {} in {} of {} {}; the others as they were when they ended",
                amount(Metric::OutstandingBytes, &self.living),
                things(Metric::OutstandingCount, &self.living, "block"),
                count(living as u64),
                if living == 1 { "process that lives" } else { "processes that live" }
            ),
        }
    }

    /// Returns the title of the stacks with the largest outstanding amounts.
    fn title(&self) -> &'static str {
        match (self.living_count, self.ended_count) {
            (_, 0) | (0, 1) => "largest outstanding",
            (0, _) => "largest outstanding, each process as it was when it ended",
            _ => "largest outstanding, of processes that live and of others as they were when they ended",
        }
    }
}

/// Number of processes, with the noun.
fn process_count(ending: &Ending) -> String {
    let noun = if ending.process_count == 1 { "process" } else { "processes" };
    format!("{} {noun}", count(ending.process_count))
}

/// Writes the amounts over all processes. `whose`: the processes.
fn write_totals(
    text: &mut impl Write,
    (ending, whose): (&Ending, &str),
    totals: &Totals,
    lived: &Lived,
) -> io::Result<()> {
    let amounts = totals.amounts();
    let killed = ending.status.and_then(|status| status.signal());
    let killed = killed.map(|signal| format!(", killed by signal {signal}")).unwrap_or_default();
    writeln!(
        text,
        "heapr: {} in {}, {whose}{killed}",
        plural(ending.event_count, "event"),
        duration(ending.wall_ns),
    )?;
    writeln!(text, "  events lost   {}", count(ending.events_lost))?;
    writeln!(
        text,
        "  allocations   {} ({} by realloc), {} in all",
        amount(Metric::TotalCount, &amounts),
        amount(Metric::ReallocCount, &amounts),
        amount(Metric::TotalBytes, &amounts)
    )?;
    writeln!(
        text,
        "  peak          {} in {}, at {}",
        amount(Metric::PeakBytes, &amounts),
        things(Metric::PeakCount, &amounts, "block"),
        duration(totals.peak_time_ns)
    )?;
    writeln!(
        text,
        "  outstanding   {} in {}{}",
        amount(Metric::OutstandingBytes, &amounts),
        things(Metric::OutstandingCount, &amounts, "block"),
        lived.whose()
    )
}

/// Writes each heap if there are several: the sums above are of all.
fn write_heaps(
    text: &mut impl Write,
    subject: &Subject,
    by_heap: &[(ProcessIndex, HeapId, Totals)],
) -> io::Result<()> {
    let named =
        |&(process, heap, totals): &(ProcessIndex, HeapId, Totals)| (subject.heap(process, heap), totals);
    let named: Vec<(String, Totals)> = by_heap.iter().map(named).collect();
    let mut names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names.iter().filter(|_| names.len() > 1) {
        let of_it: Vec<&Totals> =
            named.iter().filter(|(other, _)| other == name).map(|(_, totals)| totals).collect();
        let sum: Amounts = of_it.iter().fold(Amounts::default(), |mut sum, totals| {
            sum += &totals.amounts();
            sum
        });
        // Processes have their peaks at different moments.
        let at_most = if of_it.len() > 1 { "at most " } else { "" };
        writeln!(
            text,
            "  of {name:<11}peak {at_most}{}, outstanding {} in {}",
            amount(Metric::PeakBytes, &sum),
            amount(Metric::OutstandingBytes, &sum),
            things(Metric::OutstandingCount, &sum, "block")
        )?;
    }
    Ok(())
}

fn write_stacks(
    text: &mut impl Write,
    subject: &Subject,
    report: &Report<'_>,
    (is_cut, lived): (bool, &Lived),
) -> io::Result<()> {
    let width = error_line_width();
    let until = if is_cut { " where the file ends" } else { "" };
    for (section, (title, is_peak)) in
        report.sections.iter().zip([(lived.title(), false), ("largest at the peak", true)])
    {
        let Answer::Ranking(ranking) = &section.answer else { continue };
        let (bytes, blocks) = match is_peak {
            true => (Metric::PeakBytes, Metric::PeakCount),
            false => (Metric::OutstandingBytes, Metric::OutstandingCount),
        };
        let groups: Vec<_> = ranking.groups.iter().filter(|group| bytes.of(&group.amounts) > 0).collect();
        if groups.is_empty() {
            continue;
        }
        writeln!(text, "  {title}{until}:")?;
        for group in groups {
            let [held, count] = [bytes, blocks].map(|metric| amount(metric, &group.amounts));
            let head = format!("{held:>12} in {count:<9}");
            let room = width.saturating_sub(head.len() + 3);
            for (number, line) in stack_lines(&report.frames(group), subject, room).iter().enumerate() {
                let left = if number == 0 { head.as_str() } else { "" };
                writeln!(text, "  {left:columns$} {line}", columns = head.len())?;
            }
        }
    }
    Ok(())
}

/// Formats the own frame and its callers, with the innermost frame of all after the own one.
fn stack_lines(frames: &[FrameView<'_>], subject: &Subject, room: usize) -> Vec<String> {
    let style = Style::of_stderr();
    let own = subject.own.place(frames).unwrap_or(0);
    let mut lines: Vec<String> =
        frames.iter().skip(own).take(FRAMES_SHOWN).map(|frame| frame_line(frame, room)).collect();
    if let Some(first) = lines.first_mut() {
        *first = style.bold(first);
    }
    if own > 0 {
        lines.truncate(FRAMES_SHOWN - 1);
        lines.insert(1, style.faint(&format!("through {}", frame_line(&frames[0], room.saturating_sub(8)))));
    }
    lines
}
