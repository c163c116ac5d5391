//! Comparison of two sampling profiles, for programs that cannot afford a snapshot.

use std::path::Path;
use std::process::ExitCode;

use heapr_table::quantity::{bytes, signed_bytes};
use heapr_table::{Cell, Column, Table, row};
use heapr_v8::compare_profiles;

use super::allocations::{is_profile, place, read};
use crate::output::{Format, print_table};

/// Whether both files are sampling profiles. Fails if only one of them is.
pub(crate) fn are_profiles(before: &Path, after: &Path) -> anyhow::Result<bool> {
    let (one, other) = (is_profile(before), is_profile(after));
    if one == other {
        return Ok(one);
    }
    let (profile, file) = if one { (before, after) } else { (after, before) };
    anyhow::bail!(
        "{} is a sampling profile and {} is none: only two of a kind can be compared",
        profile.display(),
        file.display()
    )
}

/// Prints a line for each function, the largest growth first. `limit` is the total growth above
/// which the exit status is 1.
pub(crate) fn run(
    before: &Path,
    after: &Path,
    format: Format,
    top: usize,
    limit: Option<u64>,
) -> anyhow::Result<ExitCode> {
    let lines = compare_profiles(&read(before)?, &read(after)?);
    let mut sheet = Table::new(
        "heapr.snapshot.profile-diff/1",
        &[
            Column::bytes("growth_bytes", "Growth"),
            Column::bytes("error_bytes", "\u{b1} 95 %"),
            Column::text("certain", "Certain"),
            Column::bytes("before_bytes", "Before"),
            Column::bytes("after_bytes", "After"),
            Column::count("sample_count", "Samples"),
            Column::text("function", "Function"),
            Column::text("place", "Place"),
        ],
    );
    let growth: i128 = lines.iter().map(|line| i128::from(line.growth_bytes())).sum();
    let sum = |side: fn(&heapr_v8::FunctionGrowth) -> u64| lines.iter().map(side).sum::<u64>();
    let (all_before, all_after) = (sum(|line| line.before_bytes), sum(|line| line.after_bytes));
    sheet.fact("before_bytes", all_before);
    sheet.fact("after_bytes", all_after);
    sheet.fact("is_sampled", true);
    sheet.rows(
        top,
        lines.iter().map(|line| {
            row![
                line.growth_bytes(),
                line.error_bytes,
                Cell::worded(line.is_certain(), if line.is_certain() { "yes" } else { "no" }.to_owned()),
                line.before_bytes,
                line.after_bytes,
                line.sample_count,
                line.function.name.clone(),
                place(&line.function),
            ]
        }),
    );
    let title = format!(
        "{} -> {}: {}, from {} to {}, estimated from samples",
        before.display(),
        after.display(),
        signed_bytes(growth),
        bytes(all_before),
        bytes(all_after)
    );
    print_table(&sheet, format, &[title, String::new()])?;
    let is_over = limit.is_some_and(|limit| growth > i128::from(limit));
    Ok(if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
