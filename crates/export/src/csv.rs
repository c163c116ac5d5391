//! Reports as CSV (RFC 4180): one head line, then a line per group, tree node or histogram bucket.

use std::io::{self, Write};

use heapr_query::{Answer, GroupBy, HistogramOf, Metric, Report};
use heapr_table::csv::quoted;
use heapr_table::interval_key;
use heapr_trace::Amounts;

use crate::frame_text::frame_name;
use crate::json::action_name;
use crate::{Subject, group_name};

/// Columns before the metrics. `name` is the frame, image, thread or heap. For a stack it is all
/// frames, innermost first, joined by ` <- `.
const HEAD: &str = "action,sort,rank,depth,name";

/// Writes the report.
///
/// # Errors
/// Returns the errors of `out`.
pub fn write_csv(out: &mut dyn Write, subject: &Subject, report: &Report<'_>) -> io::Result<()> {
    let is_sampled = subject.sampled.is_some();
    let names = joined(|metric| metric.name().to_owned());
    let intervals = joined(|metric| interval_key(metric.name()));
    if is_sampled {
        writeln!(out, "{HEAD},{names},{intervals}")?;
    } else {
        writeln!(out, "{HEAD},{names}")?;
    }
    let line = |out: &mut dyn Write, action, rank, depth, name: &str, amounts: &Amounts| {
        line(out, action, rank, depth, name, (amounts, is_sampled))
    };
    line(out, ["totals", ""], 1, 0, "TOTAL", &report.totals.amounts())?;
    for (at, row) in report.by_heap.iter().enumerate() {
        let name = format!("{} {}", subject.process(row.process), subject.heap(row.process, row.heap));
        line(out, ["heaps", ""], at + 1, 0, &name, &row.totals.amounts())?;
    }
    for histogram in &report.histograms {
        let (action, unit) = match histogram.of {
            HistogramOf::Size => ("size-histogram", "bytes"),
            HistogramOf::Lifetime => ("lifetime-histogram", "ns"),
        };
        for (at, bucket) in histogram.buckets.iter().enumerate() {
            line(
                out,
                [action, ""],
                at + 1,
                0,
                &format!("{}..={} {unit}", bucket.from, bucket.last),
                &bucket.amounts,
            )?;
        }
    }
    for section in &report.sections {
        let (action, sort) = action_name(&section.action);
        match &section.answer {
            Answer::Ranking(ranking) => {
                for (at, group) in ranking.groups.iter().enumerate() {
                    let name = match ranking.by {
                        GroupBy::Stacks => {
                            report.frames(group).iter().map(frame_name).collect::<Vec<_>>().join(" <- ")
                        }
                        by => group_name(subject, report, group, by),
                    };
                    line(out, [action, sort], at + 1, 0, &name, &group.amounts)?;
                }
            }
            Answer::Functions(functions) => {
                // Only inclusive amounts: self amounts are in the ranking of frames.
                for (at, function) in functions.functions.iter().enumerate() {
                    let name = frame_name(&report.function_frame(function));
                    line(out, [action, sort], at + 1, 0, &name, &function.inclusive)?;
                }
            }
            Answer::Tree(tree) => {
                for (at, node) in tree.nodes.iter().enumerate() {
                    let name = frame_name(&report.tree_frame(node));
                    line(out, [action, sort], at + 1, node.depth, &name, &node.amounts)?;
                }
            }
        }
    }
    Ok(())
}

fn line(
    out: &mut dyn Write,
    [action, sort]: [&str; 2],
    rank: usize,
    depth: usize,
    name: &str,
    (amounts, is_sampled): (&Amounts, bool),
) -> io::Result<()> {
    // An unknown amount is an empty field.
    let values = joined(|metric| metric.known(amounts).map_or_else(String::new, |number| number.to_string()));
    write!(out, "{action},{sort},{rank},{depth},{},{values}", quoted(name))?;
    if is_sampled {
        write!(out, ",{}", joined(|metric| metric.plus_minus(amounts).to_string()))?;
    }
    writeln!(out)
}

/// Joins the fields of all metrics with commas.
fn joined(field: impl Fn(Metric) -> String) -> String {
    Metric::all().map(field).collect::<Vec<_>>().join(",")
}
