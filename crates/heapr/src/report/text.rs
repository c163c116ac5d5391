//! The report as text: made to be read at a glance, at 80 columns and wider.

use std::io::{self, Write};

use heapr_query::{
    Action, Answer, CallTree, FrameView, Functions, GroupBy, HeapRow, Metric, Owner, Ranking, Report, Section,
};
use heapr_trace::Amounts;

use super::amounts_text::{TOGETHER, amount, cell, column, exact_bytes, sort_amount};
use super::frame_text::frame_line;
use super::histogram_text::histogram_lines;
use crate::plain_text::page_columns;
use crate::style::Style;
use heapr_export::{Subject, group_name};
use heapr_table::SortRows as _;
use heapr_table::quantity::{count, duration, percent, plural, share};
use heapr_table::{Cell, Column, Table, row};

/// Schema of the tables.
const SCHEMA: &str = "heapr.report/1";

/// Options of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextOptions {
    /// Columns of a line.
    pub(crate) width: usize,
    /// Most frames of a stack.
    pub(crate) depth: usize,
    /// Least share of a tree's node, in thousandths of the whole; smaller nodes are left out.
    pub(crate) least_permille: u64,
    /// Style of the output.
    pub(crate) style: Style,
}

/// Heaps listed, the largest first; JSON and CSV have all.
const HEAPS_SHOWN: usize = 10;

/// Writes the whole report.
pub(crate) fn write_text(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    options: TextOptions,
) -> io::Result<()> {
    write_head(out, subject)?;
    write_heaps(out, subject, report, options.width)?;
    write_totals(out, report, subject.sampled.is_some())?;
    for (line, name) in subject.own_memory.iter().zip(["Own memory", ""]) {
        writeln!(out, "{name:12} {line}")?;
    }
    for histogram in &report.histograms {
        write_lines(out, histogram_lines(SCHEMA, histogram, options.width))?;
    }
    for section in &report.sections {
        write_section(out, subject, report, section, options)?;
    }
    Ok(())
}

fn write_head(out: &mut dyn Write, subject: &Subject) -> io::Result<()> {
    let process_count = subject.processes.len();
    writeln!(
        out,
        "{}: {} in {}, {process_count} {}",
        subject.file,
        plural(subject.event_count, "event"),
        duration(subject.duration_ns),
        if process_count == 1 { "process" } else { "processes" },
    )?;
    if let Some(advice) = &subject.advice {
        writeln!(out, "NOTE: {advice}")?;
    }
    if !subject.filters.is_empty() {
        writeln!(out, "Counted: {}", subject.filters)?;
    }
    if let Some(sampled) = &subject.sampled {
        writeln!(out, "Counted: {sampled}")?;
    }
    writeln!(out)
}

fn write_heaps(out: &mut dyn Write, subject: &Subject, report: &Report<'_>, width: usize) -> io::Result<()> {
    let columns = [
        Column::text("process", "Process"),
        Column::text("heap", "Heap"),
        Column::count("alloc_count", "Allocs"),
        Column::bytes("alloc_bytes", "Total"),
        Column::count("realloc_count", "Reallocs"),
        Column::count("outstanding_count", "Live"),
        Column::bytes("outstanding_bytes", "Live bytes"),
        Column::bytes("peak_bytes", if report.is_own_peak { "Peak" } else { "At peak" }),
    ];
    let mut table = Table::new(SCHEMA, &columns);
    let row = |process: String, heap: String, totals: &heapr_trace::Totals| {
        let amounts = totals.amounts();
        let of = |metric: Metric| cell(metric, &amounts);
        row![
            process,
            heap,
            of(Metric::TotalCount),
            of(Metric::TotalBytes),
            of(Metric::ReallocCount),
            of(Metric::OutstandingCount),
            of(Metric::OutstandingBytes),
            of(Metric::PeakBytes),
        ]
    };
    let mut heaps: Vec<&HeapRow> = report.by_heap.iter().collect();
    let left_out = heaps.len().saturating_sub(HEAPS_SHOWN);
    // If a single heap were left out, the line that says so would be as long as the heap's own.
    if left_out > 1 {
        heaps.sort_rows_by_key(|heap| std::cmp::Reverse(heap.totals.peak_bytes));
        heaps.truncate(HEAPS_SHOWN);
    }
    for heap in heaps {
        table.row(row(subject.process(heap.process), subject.heap(heap.process, heap.heap), &heap.totals));
    }
    if left_out > 1 {
        let mut rest = row![format!("({} smaller ones)", count(left_out as u64)), String::new()];
        rest.resize(columns.len(), Cell::Nothing);
        table.row(rest);
    }
    // Each kind of heap is summed by itself: mappings are not part of what malloc allocated.
    let mut kinds: Vec<String> =
        report.by_heap.iter().map(|row| subject.heap(row.process, row.heap)).collect();
    kinds.sort_rows();
    kinds.dedup();
    let processes: std::collections::BTreeSet<_> = report.by_heap.iter().map(|row| row.process).collect();
    for kind in kinds.iter().filter(|_| kinds.len() > 1 && processes.len() > 1) {
        let of_it = report.by_heap.iter().filter(|row| subject.heap(row.process, row.heap) == **kind);
        let mut cells = row("TOTAL".to_owned(), kind.clone(), &sum_of(of_it));
        // Peaks at different moments have no sum.
        if let Some(peak) = cells.last_mut().filter(|_| report.is_own_peak) {
            *peak = Cell::Nothing;
        }
        table.row(cells);
    }
    if report.by_heap.len() != 1 {
        table.row(row("TOTAL".to_owned(), String::new(), &report.totals));
    }
    write_lines(out, table.lines(0, width))
}

/// Adds up the columns that the table of heaps shows.
fn sum_of<'a>(heaps: impl Iterator<Item = &'a HeapRow>) -> heapr_trace::Totals {
    let mut sum = heapr_trace::Totals::default();
    for HeapRow { totals, .. } in heaps {
        sum.alloc_count += totals.alloc_count;
        sum.alloc_bytes = sum.alloc_bytes.saturating_add(totals.alloc_bytes);
        sum.realloc_count += totals.realloc_count;
        sum.outstanding_count += totals.outstanding_count;
        sum.outstanding_bytes = sum.outstanding_bytes.saturating_add(totals.outstanding_bytes);
        sum.peak_bytes = sum.peak_bytes.saturating_add(totals.peak_bytes);
        sum.variances += &totals.variances;
    }
    sum
}

fn write_totals(out: &mut dyn Write, report: &Report<'_>, is_sampled: bool) -> io::Result<()> {
    let totals = &report.totals;
    writeln!(out)?;
    // The counted part may have been higher at another moment.
    let (label, of_all) = if report.is_own_peak { ("Peak", "") } else { ("At peak", " the peak of all, at") };
    let amounts = totals.amounts();
    writeln!(
        out,
        "{label:12} {}{}",
        exact_bytes(Metric::PeakBytes, Metric::PeakCount, &amounts, "block"),
        match Metric::PeakBytes.is_unknown(&amounts) {
            true => String::new(),
            false => format!(", at{of_all} {}", duration(totals.peak_time_ns)),
        }
    )?;
    writeln!(
        out,
        "Outstanding  {}",
        exact_bytes(Metric::OutstandingBytes, Metric::OutstandingCount, &amounts, "block"),
    )?;
    if is_sampled {
        writeln!(
            out,
            "Total        {}",
            exact_bytes(Metric::TotalBytes, Metric::TotalCount, &amounts, "allocation"),
        )?;
        writeln!(out, "Temporary    not known of samples")?;
    } else if Metric::TemporaryCount.is_unknown(&amounts) {
        writeln!(out, "Temporary    unknown")?;
    } else {
        writeln!(
            out,
            "Temporary    {} of {} ({})",
            count(totals.temporary_count),
            plural(totals.alloc_count, "allocation"),
            percent(totals.temporary_count, totals.alloc_count)
        )?;
    }
    let mut odd = Vec::new();
    let mut add = |count_of: u64, what: [&str; 2]| {
        if count_of > 0 {
            odd.push(format!("{} {}", count(count_of), what[usize::from(count_of > 1)]));
        }
    };
    add(totals.failed_count, ["failed"; 2]);
    add(totals.unmatched_frees, ["free of an unknown block", "frees of unknown blocks"]);
    add(totals.inherited_frees, ["free of an inherited block", "frees of inherited blocks"]);
    add(totals.implied_frees, ["free that was not seen", "frees that were not seen"]);
    if !odd.is_empty() {
        writeln!(out, "Also         {}", odd.join(", "))?;
    }
    Ok(())
}

fn write_section(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    section: &Section,
    options: TextOptions,
) -> io::Result<()> {
    writeln!(out)?;
    let (sort, title) = match &section.action {
        Action::Ranking { by, sort } => (*sort, group_title(*by).to_owned()),
        Action::Functions { sort, by_line: false } => (*sort, "FUNCTIONS, with what they call,".to_owned()),
        Action::Functions { sort, by_line: true } => (*sort, "LINES, with what they call,".to_owned()),
        Action::TopDown { sort } => (*sort, "TOP-DOWN TREE".to_owned()),
        Action::Callers { of, sort } => (*sort, format!("CALLERS of {}", of.as_str())),
    };
    write!(out, "{title} by {} ({})", sort.words(), sort.key())?;
    match &section.answer {
        Answer::Ranking(ranking) => {
            write_ranking_extent(out, report, ranking, sort)?;
            match ranking.by {
                GroupBy::Stacks => write_stacks(out, subject, report, ranking, sort, options),
                _ => write_ranking(out, subject, report, ranking, sort, options.width),
            }
        }
        Answer::Functions(functions) => write_functions(out, subject, report, functions, sort, options),
        Answer::Tree(tree) => write_tree(out, report, tree, sort, options),
    }
}

fn write_ranking_extent(
    out: &mut dyn Write,
    report: &Report<'_>,
    ranking: &Ranking,
    sort: Metric,
) -> io::Result<()> {
    let shown = ranking.groups.len();
    if shown < ranking.group_count {
        let whole = sort.of(&report.totals.amounts());
        let rest = sort.of(&ranking.rest);
        let share = percent(whole.saturating_sub(rest), whole);
        writeln!(out, ": top {} of {}, {share}", count(shown as u64), count(ranking.group_count as u64))
    } else {
        writeln!(out, ": {}", count(shown as u64))
    }
}

fn write_stacks(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    ranking: &Ranking,
    sort: Metric,
    options: TextOptions,
) -> io::Result<()> {
    let whole = sort.of(&report.totals.amounts());
    for (at, group) in ranking.groups.iter().enumerate() {
        let amounts = &group.amounts;
        writeln!(out)?;
        let amount = sort_amount(sort, amounts);
        writeln!(out, "#{}  {amount} ({})", at + 1, percent(sort.of(amounts), whole))?;
        let others: Vec<String> = TOGETHER
            .iter()
            .filter(|together| !together.has(sort))
            .filter_map(|together| together.beside(amounts))
            .collect();
        for line in wrapped(&others, 4, page_columns(options.width)) {
            writeln!(out, "{line}")?;
        }
        write_frames(out, subject, &report.frames(group), options)?;
    }
    Ok(())
}

/// Joins parts by commas, in lines of at most `width` columns.
fn wrapped(parts: &[String], indent: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + part.len() <= width => line.extend([", ", part]),
            _ => lines.push(format!("{}{part}", " ".repeat(indent))),
        }
    }
    lines
}

/// Writes the frames of a stack, with a mark before the own frame.
fn write_frames(
    out: &mut dyn Write,
    subject: &Subject,
    frames: &[FrameView<'_>],
    options: TextOptions,
) -> io::Result<()> {
    const INDENT: &str = "      ";
    const OWN: &str = "    > ";
    if frames.is_empty() {
        return writeln!(out, "{INDENT}(no stack was taken)");
    }
    let own = subject.own.place(frames);
    // The own frame is shown, and the outermost one, which says what the thread was started with.
    let depth = options.depth.max(2).max(own.map_or(0, |own| own + 2));
    let shown = if frames.len() > depth { depth - 1 } else { frames.len() };
    let width = options.width.saturating_sub(INDENT.len());
    for (place, frame) in frames[..shown].iter().enumerate() {
        let line = frame_line(frame, width);
        match own {
            Some(own) if own == place => writeln!(out, "{OWN}{}", options.style.bold(&line))?,
            _ => writeln!(out, "{INDENT}{line}")?,
        }
    }
    let left_out = frames.len() - shown;
    if let Some(outermost) = frames.last().filter(|_| left_out > 0) {
        if left_out > 1 {
            writeln!(out, "{INDENT}… {} more", left_out - 1)?;
        }
        writeln!(out, "{INDENT}{}", frame_line(outermost, width))?;
    }
    Ok(())
}

fn write_ranking(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    ranking: &Ranking,
    sort: Metric,
    width: usize,
) -> io::Result<()> {
    let whole = sort.of(&report.totals.amounts());
    let page = page_columns(width);
    let shown: Vec<Metric> =
        Metric::all().filter(|&metric| page >= metric.least_columns() || sort == metric).collect();
    let mut columns = vec![Column::percent("percent", "%")];
    columns.extend(shown.iter().map(|&metric| column(metric)));
    columns.push(Column::text("name", item_title(ranking.by)));
    let mut table = Table::new(SCHEMA, &columns);
    let mut add = |amounts: &Amounts, name: String| {
        let mut cells = row![share(sort.of(amounts), whole)];
        cells.extend(shown.iter().map(|&metric| cell(metric, amounts)));
        cells.push(name.into());
        table.row(cells);
    };
    for group in &ranking.groups {
        add(&group.amounts, group_name(subject, report, group, ranking.by));
    }
    if ranking.groups.len() < ranking.group_count {
        let left_out = ranking.group_count - ranking.groups.len();
        add(&ranking.rest, format!("({} more)", count(left_out as u64)));
    }
    write_lines(out, table.lines(0, width))
}

/// Writes a line for each function: share, inclusive amount, self amount. User code is marked.
fn write_functions(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    functions: &Functions,
    sort: Metric,
    options: TextOptions,
) -> io::Result<()> {
    let shown = functions.functions.len() as u64;
    let all = functions.function_count as u64;
    writeln!(
        out,
        ": {}{}",
        count(shown),
        if shown < all { format!(" of {}", count(all)) } else { String::new() }
    )?;
    let whole = sort.of(&report.totals.amounts());
    let texts: Vec<[String; 2]> = functions
        .functions
        .iter()
        .map(|function| [amount(sort, &function.inclusive), amount(sort, &function.own)])
        .collect();
    let [wide, own_wide] = [0, 1].map(|place| widest(texts.iter().map(|texts| &texts[place])));
    writeln!(out, "{:>7}  {:>wide$}  {:>own_wide$}    Function", "%", "Inclusive", "Own")?;
    for (function, [inclusive, own]) in functions.functions.iter().zip(&texts) {
        let frame = report.function_frame(function);
        let is_own = subject.own.owner(frame.module, frame.symbol, frame.file) == Owner::Program;
        let line = frame_line(&frame, options.width.saturating_sub(13 + wide + own_wide));
        let lead = format!(
            "{:>7}  {inclusive:>wide$}  {own:>own_wide$}  {} ",
            percent(sort.of(&function.inclusive), whole).trim_end_matches(" %"),
            if is_own { ">" } else { " " },
        );
        writeln!(out, "{lead}{}", if is_own { options.style.bold(&line) } else { line })?;
    }
    Ok(())
}

fn write_tree(
    out: &mut dyn Write,
    report: &Report<'_>,
    tree: &CallTree,
    sort: Metric,
    options: TextOptions,
) -> io::Result<()> {
    let whole = sort.of(&tree.amounts);
    let is_large = |amounts: &Amounts| {
        u128::from(sort.of(amounts)) * 1000 >= u128::from(whole) * u128::from(options.least_permille)
    };
    let shown: Vec<bool> = tree.nodes.iter().map(|node| is_large(&node.amounts)).collect();
    let shown_count = shown.iter().filter(|&&is_shown| is_shown).count();
    writeln!(out, ": {} of {} nodes", count(shown_count as u64), count(tree.node_count as u64))?;
    let mut child_counts = vec![0_usize; tree.nodes.len()];
    for (node, _) in tree.nodes.iter().zip(&shown).filter(|(_, is_shown)| **is_shown) {
        if let Some(parent) = node.parent {
            child_counts[parent] += 1;
        }
    }
    let amounts: Vec<String> = tree.nodes.iter().map(|node| amount(sort, &node.amounts)).collect();
    let wide = widest(amounts.iter().zip(&shown).filter(|(_, is_shown)| **is_shown).map(|(text, _)| text));
    // A chain of only children is not indented: deep stacks would exceed the line.
    let mut levels = vec![0_usize; tree.nodes.len()];
    let deepest = page_columns(options.width).saturating_sub(60) / 2 + 12;
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            levels[at] = levels[parent] + usize::from(child_counts[parent] > 1);
        }
        if !shown[at] {
            continue;
        }
        let amount = &amounts[at];
        let level = levels[at];
        let indent = " ".repeat(level.min(deepest));
        let mark = if child_counts.get(node.parent.unwrap_or(usize::MAX)).is_some_and(|&count| count == 1) {
            "└"
        } else {
            ""
        };
        let lead = format!("{:>7}  {amount:>wide$}  {indent}{mark}", percent(sort.of(&node.amounts), whole));
        let room = options.width.saturating_sub(13 + wide + level.min(deepest));
        writeln!(out, "{lead}{}", frame_line(&report.tree_frame(node), room))?;
    }
    Ok(())
}

/// Returns the width of a column of amounts.
fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).max(10)
}

fn write_lines(out: &mut dyn Write, lines: Vec<String>) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn group_title(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Stacks => "STACKS",
        GroupBy::Frames => "FRAMES",
        GroupBy::Lines => "LINES",
        GroupBy::Images => "IMAGES",
        GroupBy::Threads => "THREADS",
    }
}

fn item_title(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Stacks => "Stack",
        GroupBy::Frames => "Frame",
        GroupBy::Lines => "Line",
        GroupBy::Images => "Image",
        GroupBy::Threads => "Thread",
    }
}
