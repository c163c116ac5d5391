//! The report as text: made to be read at a glance, at 80 columns and wider.

use std::io::{self, Write};

use heapr_query::{
    Action, Answer, CallTree, FrameView, Group, GroupBy, Histogram, HistogramOf, Metrics, Ranking, Report,
    Section, SortKey,
};

use super::frame_text::{frame_line, frame_name, image_name};
use super::quantity::{bytes, count, duration, percent, plural};
use super::subject::Subject;
use super::table::{Align, Table};
use crate::plain_text::page_columns;

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextOptions {
    /// Columns of a line.
    pub(crate) width: usize,
    /// Most frames of a stack.
    pub(crate) depth: usize,
    /// Nodes of a tree with less than this many thousandths of the whole are left out.
    pub(crate) least_permille: u64,
}

/// Prints it all.
pub(crate) fn write_text(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    options: TextOptions,
) -> io::Result<()> {
    write_head(out, subject)?;
    write_heaps(out, subject, report, options.width)?;
    write_totals(out, report)?;
    for histogram in &report.histograms {
        write_histogram(out, histogram, options.width)?;
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
    for warning in subject.warnings() {
        writeln!(out, "WARNING: {warning}")?;
    }
    if let Some(advice) = &subject.advice {
        writeln!(out, "NOTE: {advice}")?;
    }
    if !subject.filters.is_empty() {
        writeln!(out, "Counted: {}", subject.filters)?;
    }
    writeln!(out)
}

fn write_heaps(out: &mut dyn Write, subject: &Subject, report: &Report<'_>, width: usize) -> io::Result<()> {
    let mut table = Table::new(
        &[
            ("Process", Align::Left),
            ("Heap", Align::Left),
            ("Allocs", Align::Right),
            ("Total", Align::Right),
            ("Reallocs", Align::Right),
            ("Live", Align::Right),
            ("Live bytes", Align::Right),
            (if report.is_own_peak { "Peak" } else { "At peak" }, Align::Right),
        ],
        0,
    );
    let row = |process: String, heap: String, totals: &heapr_trace::Totals| {
        vec![
            process,
            heap,
            count(totals.alloc_count),
            bytes(totals.alloc_bytes),
            count(totals.realloc_count),
            count(totals.outstanding_count),
            bytes(totals.outstanding_bytes),
            bytes(totals.peak_bytes),
        ]
    };
    for heap in &report.by_heap {
        table.row(row(subject.process(heap.process), subject.heap(heap.process, heap.heap), &heap.totals));
    }
    // Each kind of heap by itself: what is mapped is no part of what malloc has given.
    let mut kinds: Vec<String> =
        report.by_heap.iter().map(|row| subject.heap(row.process, row.heap)).collect();
    kinds.sort();
    kinds.dedup();
    let processes: std::collections::BTreeSet<_> = report.by_heap.iter().map(|row| row.process).collect();
    for kind in kinds.iter().filter(|_| kinds.len() > 1 && processes.len() > 1) {
        let of_it = report.by_heap.iter().filter(|row| subject.heap(row.process, row.heap) == **kind);
        let mut sum = heapr_trace::Totals::default();
        for heapr_trace::Totals {
            alloc_count,
            alloc_bytes,
            realloc_count,
            outstanding_count,
            outstanding_bytes,
            peak_bytes,
            ..
        } in of_it.map(|row| row.totals)
        {
            sum.alloc_count += alloc_count;
            sum.alloc_bytes = sum.alloc_bytes.saturating_add(alloc_bytes);
            sum.realloc_count += realloc_count;
            sum.outstanding_count += outstanding_count;
            sum.outstanding_bytes = sum.outstanding_bytes.saturating_add(outstanding_bytes);
            sum.peak_bytes = sum.peak_bytes.saturating_add(peak_bytes);
        }
        let mut cells = row("TOTAL".to_owned(), kind.clone(), &sum);
        // Peaks of different moments have no sum.
        if let Some(peak) = cells.last_mut().filter(|_| report.is_own_peak) {
            peak.clear();
        }
        table.row(cells);
    }
    if report.by_heap.len() != 1 {
        table.row(row("TOTAL".to_owned(), String::new(), &report.totals));
    }
    write_lines(out, table.lines(0, width))
}

fn write_totals(out: &mut dyn Write, report: &Report<'_>) -> io::Result<()> {
    let totals = &report.totals;
    writeln!(out)?;
    // What is counted may have been higher at another moment.
    let (label, of_all) = if report.is_own_peak { ("Peak", "") } else { ("At peak", " the peak of all, at") };
    writeln!(
        out,
        "{label:12} {} bytes in {}, at{of_all} {}",
        count(totals.peak_bytes),
        plural(totals.peak_count, "block"),
        duration(totals.peak_time_ns)
    )?;
    writeln!(
        out,
        "Outstanding  {} bytes in {}",
        count(totals.outstanding_bytes),
        plural(totals.outstanding_count, "block")
    )?;
    writeln!(
        out,
        "Temporary    {} of {} ({})",
        count(totals.temporary_count),
        plural(totals.alloc_count, "allocation"),
        percent(totals.temporary_count, totals.alloc_count)
    )?;
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
        Action::TopDown { sort } => (*sort, "TOP-DOWN TREE".to_owned()),
        Action::Callers { of, sort } => (*sort, format!("CALLERS of {}", of.as_str())),
    };
    write!(out, "{title} by {} ({})", sort_title(sort), sort.name())?;
    match &section.answer {
        Answer::Ranking(ranking) => {
            write_ranking_extent(out, report, ranking, sort)?;
            match ranking.by {
                GroupBy::Stacks => write_stacks(out, report, ranking, sort, options),
                _ => write_ranking(out, subject, report, ranking, sort, options.width),
            }
        }
        Answer::Tree(tree) => write_tree(out, report, tree, sort, options),
    }
}

fn write_ranking_extent(
    out: &mut dyn Write,
    report: &Report<'_>,
    ranking: &Ranking,
    sort: SortKey,
) -> io::Result<()> {
    let shown = ranking.groups.len();
    if shown < ranking.group_count {
        let whole = sort.of(&Metrics::of_totals(&report.totals));
        let rest = sort.of(&ranking.rest);
        let share = percent(whole.saturating_sub(rest), whole);
        writeln!(out, ": top {} of {}, {share}", count(shown as u64), count(ranking.group_count as u64))
    } else {
        writeln!(out, ": {}", count(shown as u64))
    }
}

fn write_stacks(
    out: &mut dyn Write,
    report: &Report<'_>,
    ranking: &Ranking,
    sort: SortKey,
    options: TextOptions,
) -> io::Result<()> {
    let whole = sort.of(&Metrics::of_totals(&report.totals));
    for (at, group) in ranking.groups.iter().enumerate() {
        let metrics = &group.metrics;
        writeln!(out)?;
        let amount = sort_amount(sort, metrics);
        writeln!(out, "#{}  {amount} ({})", at + 1, percent(sort.of(metrics), whole))?;
        let mut others = Vec::new();
        if !matches!(sort, SortKey::OutstandingBytes | SortKey::OutstandingCount) {
            let (live, blocks) = (bytes(metrics.outstanding_bytes), count(metrics.outstanding_count));
            others.push(format!("outstanding {live} in {blocks}"));
        }
        if !matches!(sort, SortKey::TotalBytes | SortKey::TotalCount) {
            others.push(format!("total {} in {}", bytes(metrics.total_bytes), count(metrics.total_count)));
        }
        if sort != SortKey::PeakBytes {
            others.push(format!("at peak {}", bytes(metrics.peak_bytes)));
        }
        if sort != SortKey::ReallocCount && metrics.realloc_count > 0 {
            others.push(format!("reallocs {}", count(metrics.realloc_count)));
        }
        if sort != SortKey::TemporaryCount && metrics.temporary_count > 0 {
            others.push(format!("temporary {}", count(metrics.temporary_count)));
        }
        for line in wrapped(&others, 4, page_columns(options.width)) {
            writeln!(out, "{line}")?;
        }
        write_frames(out, &report.frames(group), options)?;
    }
    Ok(())
}

/// Parts joined by commas, in lines of at most `width` columns.
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

fn write_frames(out: &mut dyn Write, frames: &[FrameView<'_>], options: TextOptions) -> io::Result<()> {
    const INDENT: &str = "      ";
    if frames.is_empty() {
        return writeln!(out, "{INDENT}(no stack was taken)");
    }
    // The outermost frame tells the thread's start: it is shown even if what lies before it is not.
    let (shown, outermost) = if frames.len() > options.depth.max(2) {
        (options.depth.max(2) - 1, frames.last())
    } else {
        (frames.len(), None)
    };
    let width = options.width.saturating_sub(INDENT.len());
    for frame in &frames[..shown] {
        writeln!(out, "{INDENT}{}", frame_line(frame, width))?;
    }
    if let Some(outermost) = outermost {
        let left_out = frames.len() - shown - 1;
        if left_out > 0 {
            writeln!(out, "{INDENT}… {left_out} more")?;
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
    sort: SortKey,
    width: usize,
) -> io::Result<()> {
    let whole = sort.of(&Metrics::of_totals(&report.totals));
    let page = page_columns(width);
    let is_wide = page >= 100;
    let mut columns = vec![
        ("%", Align::Right),
        ("Live bytes", Align::Right),
        ("Live", Align::Right),
        ("Total", Align::Right),
        ("Allocs", Align::Right),
    ];
    let optional = [
        ("Peak", is_wide || sort == SortKey::PeakBytes),
        ("Reallocs", is_wide || sort == SortKey::ReallocCount),
        ("Temporary", page >= 120 || sort == SortKey::TemporaryCount),
    ];
    columns.extend(optional.iter().filter(|(_, is_shown)| *is_shown).map(|&(name, _)| (name, Align::Right)));
    columns.push((item_title(ranking.by), Align::Left));
    let flexible = columns.len() - 1;
    let mut table = Table::new(&columns, flexible);
    let mut add = |metrics: &Metrics, name: String| {
        let mut cells = vec![
            percent(sort.of(metrics), whole).trim_end_matches(" %").to_owned(),
            bytes(metrics.outstanding_bytes),
            count(metrics.outstanding_count),
            bytes(metrics.total_bytes),
            count(metrics.total_count),
        ];
        let values =
            [bytes(metrics.peak_bytes), count(metrics.realloc_count), count(metrics.temporary_count)];
        cells.extend(
            optional.iter().zip(values).filter(|((_, is_shown), _)| *is_shown).map(|(_, value)| value),
        );
        cells.push(name);
        table.row(cells);
    };
    for group in &ranking.groups {
        add(&group.metrics, group_name(subject, report, group, ranking.by));
    }
    if ranking.groups.len() < ranking.group_count {
        let left_out = ranking.group_count - ranking.groups.len();
        add(&ranking.rest, format!("({} more)", count(left_out as u64)));
    }
    write_lines(out, table.lines(0, width))
}

/// What a group of frames, images or threads is called.
pub(crate) fn group_name(subject: &Subject, report: &Report<'_>, group: &Group, by: GroupBy) -> String {
    let frames = report.frames(group);
    match by {
        GroupBy::Images => image_name(&frames),
        GroupBy::Threads => group.thread().map_or_else(String::new, |thread| subject.thread(thread)),
        GroupBy::Stacks | GroupBy::Frames => {
            frames.first().map_or_else(|| "(no stack was taken)".to_owned(), frame_name)
        }
        GroupBy::Lines => frames
            .first()
            .map_or_else(|| "(no stack was taken)".to_owned(), |frame| frame_line(frame, usize::MAX)),
    }
}

fn write_tree(
    out: &mut dyn Write,
    report: &Report<'_>,
    tree: &CallTree,
    sort: SortKey,
    options: TextOptions,
) -> io::Result<()> {
    let whole = sort.of(&tree.metrics);
    let is_large = |metrics: &Metrics| {
        u128::from(sort.of(metrics)) * 1000 >= u128::from(whole) * u128::from(options.least_permille)
    };
    let shown: Vec<bool> = tree.nodes.iter().map(|node| is_large(&node.metrics)).collect();
    let shown_count = shown.iter().filter(|&&is_shown| is_shown).count();
    writeln!(out, ": {} of {} nodes", count(shown_count as u64), count(tree.node_count as u64))?;
    let mut child_counts = vec![0_usize; tree.nodes.len()];
    for (node, _) in tree.nodes.iter().zip(&shown).filter(|(_, is_shown)| **is_shown) {
        if let Some(parent) = node.parent {
            child_counts[parent] += 1;
        }
    }
    // A chain of only children is not indented: deep stacks would run out of the line.
    let mut levels = vec![0_usize; tree.nodes.len()];
    let widest = page_columns(options.width).saturating_sub(60) / 2 + 12;
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            levels[at] = levels[parent] + usize::from(child_counts[parent] > 1);
        }
        if !shown[at] {
            continue;
        }
        let amount =
            if sort.is_bytes() { bytes(sort.of(&node.metrics)) } else { count(sort.of(&node.metrics)) };
        let level = levels[at];
        let indent = " ".repeat(level.min(widest));
        let mark = if child_counts.get(node.parent.unwrap_or(usize::MAX)).is_some_and(|&count| count == 1) {
            "└"
        } else {
            ""
        };
        let lead = format!("{:>7}  {amount:>10}  {indent}{mark}", percent(sort.of(&node.metrics), whole));
        let room = options.width.saturating_sub(23 + level.min(widest));
        writeln!(out, "{lead}{}", frame_line(&report.tree_frame(node), room))?;
    }
    Ok(())
}

fn write_histogram(out: &mut dyn Write, histogram: &Histogram, width: usize) -> io::Result<()> {
    writeln!(out)?;
    let (title, value): (&str, fn(u64) -> String) = match histogram.of {
        HistogramOf::Size => ("SIZES", bytes),
        HistogramOf::Lifetime => ("LIFETIMES", duration),
    };
    let all: u64 = histogram.buckets.iter().map(|bucket| bucket.total_count).sum();
    let largest = histogram.buckets.iter().map(|bucket| bucket.total_count).max().unwrap_or(0).max(1);
    writeln!(out, "{title} of {}", plural(all, "allocation"))?;
    let mut table = Table::new(
        &[
            ("From", Align::Right),
            ("Below", Align::Right),
            ("Allocs", Align::Right),
            ("Total", Align::Right),
            ("Live", Align::Right),
            ("Live bytes", Align::Right),
            ("", Align::Left),
        ],
        6,
    );
    let bar_columns = page_columns(width).saturating_sub(66).clamp(12, 40);
    for bucket in &histogram.buckets {
        let bar =
            (u128::from(bucket.total_count) * bar_columns as u128).div_ceil(u128::from(largest)) as usize;
        table.row(vec![
            value(bucket.from),
            value(bucket.last.saturating_add(1)),
            count(bucket.total_count),
            bytes(bucket.total_bytes),
            count(bucket.outstanding_count),
            bytes(bucket.outstanding_bytes),
            "#".repeat(bar),
        ]);
    }
    write_lines(out, table.lines(0, width))
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

/// What a key sorts by, in words.
pub(crate) fn sort_title(sort: SortKey) -> &'static str {
    match sort {
        SortKey::OutstandingBytes => "outstanding size",
        SortKey::OutstandingCount => "outstanding count",
        SortKey::TotalBytes => "total size",
        SortKey::TotalCount => "total count",
        SortKey::ReallocCount => "realloc count",
        SortKey::PeakBytes => "size at the peak",
        SortKey::TemporaryCount => "temporary count",
    }
}

fn sort_amount(sort: SortKey, metrics: &Metrics) -> String {
    match sort {
        SortKey::OutstandingBytes | SortKey::OutstandingCount => format!(
            "{} outstanding in {}",
            bytes(metrics.outstanding_bytes),
            plural(metrics.outstanding_count, "block")
        ),
        SortKey::TotalBytes | SortKey::TotalCount => {
            format!("{} in {}", bytes(metrics.total_bytes), plural(metrics.total_count, "allocation"))
        }
        SortKey::ReallocCount => plural(metrics.realloc_count, "realloc"),
        SortKey::PeakBytes => {
            format!("{} at the peak in {}", bytes(metrics.peak_bytes), plural(metrics.peak_count, "block"))
        }
        SortKey::TemporaryCount => plural(metrics.temporary_count, "temporary allocation"),
    }
}
