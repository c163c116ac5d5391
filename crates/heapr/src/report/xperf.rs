//! Report in the layout of xperf's heap action, for scripts that read that.
//!
//! Sizes are in KB of 1024 bytes with one decimal. Amounts that Linux does not have (heap extents)
//! are 0.0.

use std::io::{self, Write};

use heapr_query::{Answer, GroupBy, Metric, Ranking, Report};
use heapr_table::SortRows as _;
use heapr_trace::Amounts;

use super::frame_text::frame_name;
use heapr_export::Subject;
use heapr_export::group_name;

/// Rule between the blocks.
const RULE: &str = "---------------------------------------------------------------------";

/// Writes the totals alone if there is no action, else each action. `is_default`: no action was
/// given, and the table of heaps comes first.
pub(crate) fn write_xperf(
    out: &mut dyn Write,
    subject: &Subject,
    report: &Report<'_>,
    is_default: bool,
) -> io::Result<()> {
    let whole = report.totals.amounts();
    let rankings: Vec<&Ranking> = report
        .sections
        .iter()
        .filter_map(|section| match &section.answer {
            Answer::Ranking(ranking) => Some(ranking),
            Answer::Functions(_) | Answer::Tree(_) => None,
        })
        .collect();
    if let Some(sampled) = &subject.sampled {
        writeln!(out, "{sampled}")?;
    }
    if rankings.is_empty() {
        return write_block(out, "GLOBAL ALLOCATIONS:", &whole);
    }
    if is_default {
        write_heaps(out, subject, report)?;
    }
    for ranking in rankings {
        write_block(out, "GLOBAL ALLOCATIONS:", &whole)?;
        let mut shown = Amounts::default();
        ranking.groups.iter().for_each(|group| shown += &group.amounts);
        write_block(out, &format!("TOP {}:", ranking.groups.len()), &shown)?;
        for group in &ranking.groups {
            writeln!(out, "{RULE}")?;
            if ranking.by == GroupBy::Stacks {
                let frames = report.frames(group);
                if frames.is_empty() {
                    writeln!(out, "<no stack>")?;
                }
                for frame in &frames {
                    writeln!(out, "{}", frame_name(frame))?;
                }
            } else {
                writeln!(out, "{}", group_name(subject, report, group, ranking.by))?;
            }
            writeln!(out)?;
            write_amounts(out, &group.amounts)?;
        }
    }
    writeln!(out, "{RULE}")
}

fn write_block(out: &mut dyn Write, title: &str, amounts: &Amounts) -> io::Result<()> {
    writeln!(out, "{RULE}")?;
    writeln!(out, "{title}")?;
    write_amounts(out, amounts)
}

fn write_amounts(out: &mut dyn Write, amounts: &Amounts) -> io::Result<()> {
    writeln!(out, "Alloc       : {:>12},{:>14} KB", amounts.total_count, kilobytes(amounts.total_bytes))?;
    writeln!(out, "Realloc     : {:>12}", amounts.realloc_count)?;
    let (outstanding, blocks) = (kilobytes(amounts.outstanding_bytes), amounts.outstanding_count);
    writeln!(out, "Outstanding : {blocks:>12},{outstanding:>14} KB")?;
    // Half of the 95 % intervals of estimates have lines of their own, so that the other lines stay
    // the same.
    let half = halves(amounts);
    if half == Amounts::default() {
        return Ok(());
    }
    writeln!(out, "Alloc +-    : {:>12},{:>14} KB", half.total_count, kilobytes(half.total_bytes))?;
    writeln!(out, "Realloc +-  : {:>12}", half.realloc_count)?;
    let (outstanding, blocks) = (kilobytes(half.outstanding_bytes), half.outstanding_count);
    writeln!(out, "Outst. +-   : {blocks:>12},{outstanding:>14} KB")
}

/// Returns half of the 95 % interval of each amount.
fn halves(amounts: &Amounts) -> Amounts {
    Amounts {
        total_count: Metric::TotalCount.plus_minus(amounts),
        total_bytes: Metric::TotalBytes.plus_minus(amounts),
        realloc_count: Metric::ReallocCount.plus_minus(amounts),
        outstanding_count: Metric::OutstandingCount.plus_minus(amounts),
        outstanding_bytes: Metric::OutstandingBytes.plus_minus(amounts),
        ..Amounts::default()
    }
}

fn write_heaps(out: &mut dyn Write, subject: &Subject, report: &Report<'_>) -> io::Result<()> {
    writeln!(
        out,
        "   Alloc#,  Alloc KB,     Out#,    Out KB, Realloc#, Extents KB, Out Ext KB, Heap Handle"
    )?;
    let mut row = |amounts: &Amounts, handle: &str| {
        writeln!(
            out,
            "{:>9},{:>10},{:>9},{:>10},{:>9},{:>11},{:>11}, {handle}",
            amounts.total_count,
            kilobytes(amounts.total_bytes),
            amounts.outstanding_count,
            kilobytes(amounts.outstanding_bytes),
            amounts.realloc_count,
            "0.0",
            "0.0",
        )
    };
    let mut line = |totals: &heapr_trace::Totals, handle: &str| {
        let amounts = totals.amounts();
        row(&amounts, handle)?;
        match halves(&amounts) {
            half if half == Amounts::default() => Ok(()),
            half => row(&half, &format!("+- of {handle}")),
        }
    };
    line(&report.totals, "TOTAL")?;
    let mut heaps = report.by_heap.clone();
    heaps.sort_rows_by_key(|heap| std::cmp::Reverse(heap.totals.outstanding_bytes));
    for heap in &heaps {
        let handle = match subject.processes.len() {
            0 | 1 => format!("{:#x}", heap.heap.0),
            _ => format!("{:#x} {}", heap.heap.0, subject.process(heap.process)),
        };
        line(&heap.totals, &handle)?;
    }
    Ok(())
}

/// Formats KB with one decimal, rounded half up, exactly.
fn kilobytes(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + 512) / 1024;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_are_those_of_xperf_to_the_column() {
        let amounts = Amounts {
            total_count: 840_875,
            total_bytes: 373_399 * 1024 + 410,
            realloc_count: 795,
            outstanding_count: 24_569,
            outstanding_bytes: 8877 * 1024 + 614,
            ..Amounts::default()
        };
        let mut out = Vec::new();
        write_block(&mut out, "GLOBAL ALLOCATIONS:", &amounts).unwrap();
        let expected = "\
---------------------------------------------------------------------
GLOBAL ALLOCATIONS:
Alloc       :       840875,      373399.4 KB
Realloc     :          795
Outstanding :        24569,        8877.6 KB
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
