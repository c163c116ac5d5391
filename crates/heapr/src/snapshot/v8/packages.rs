//! `heapr snapshot packages`: size and growth of the heap by package or source file.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_table::SortRows as _;
use heapr_table::quantity::signed_bytes;
use heapr_table::{Column, Table, row};
use heapr_v8::analysis::{CodeShare, CodeUnit, Listing, Naming, code_shares};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::v8::heap_file::{Wanted, open};

/// Arguments of `heapr snapshot packages`.
#[derive(Debug, clap::Args)]
pub(crate) struct PackagesArguments {
    /// A snapshot; of several, the oldest first, the growth from the first to the last is listed
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Grouping of code
    #[arg(long, value_enum, default_value_t = By::Package)]
    by: By,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// npm packages, workspaces of a monorepo, the rest of the program
    Package,
    /// Source files
    File,
}

/// Runs the command.
pub(super) fn run(arguments: &PackagesArguments) -> anyhow::Result<ExitCode> {
    let unit = match arguments.by {
        By::Package => CodeUnit::Package,
        By::File => CodeUnit::File,
    };
    // Only one heap is in memory at a time.
    let shares = |file: &PathBuf| -> anyhow::Result<Vec<CodeShare>> {
        let heap = open(file, Wanted::Dominators)?;
        Ok(code_shares(&*heap, &Naming::of(&*heap), unit))
    };
    let [first, .., last] = &arguments.files[..] else {
        let heap = open(&arguments.files[0], Wanted::Dominators)?;
        let table = Listing::Packages(unit).table(&heap, arguments.output.top());
        print_table(&table, arguments.output.format, &[])?;
        return Ok(ExitCode::SUCCESS);
    };
    let heading = if unit == CodeUnit::Package { "Package" } else { "File" };
    let (before, after) = (shares(first)?, shares(last)?);
    print_growth(arguments, heading, before, after)
}

fn print_growth(
    arguments: &PackagesArguments,
    heading: &'static str,
    before: Vec<CodeShare>,
    after: Vec<CodeShare>,
) -> anyhow::Result<ExitCode> {
    let none =
        |name: &str| CodeShare { name: name.to_owned(), object_count: 0, own_bytes: 0, retained_bytes: 0 };
    let mut pairs: HashMap<String, (CodeShare, CodeShare)> = HashMap::new();
    for share in before {
        let name = share.name.clone();
        pairs.entry(name).or_insert_with_key(|name| (none(name), none(name))).0 = share;
    }
    for share in after {
        let name = share.name.clone();
        pairs.entry(name).or_insert_with_key(|name| (none(name), none(name))).1 = share;
    }
    let growth = |before: u64, after: u64| i128::from(after) - i128::from(before);
    let mut lines: Vec<(CodeShare, CodeShare)> = pairs.into_values().collect();
    lines.sort_rows_by(|(before, after), (other_before, other_after)| {
        let key = |before: &CodeShare, after: &CodeShare| growth(before.own_bytes, after.own_bytes);
        key(other_before, other_after)
            .cmp(&key(before, after))
            .then_with(|| before.name.cmp(&other_before.name))
    });
    let all: i128 = lines.iter().map(|(before, after)| growth(before.own_bytes, after.own_bytes)).sum();
    let mut sheet = Table::new(
        "heapr.snapshot.packages-growth/1",
        &[
            Column::bytes("own_bytes_delta", "Own growth"),
            Column::bytes("retained_bytes_delta", "Retained growth"),
            Column::count("object_count_delta", "Objects"),
            Column::bytes("own_bytes", "Own"),
            Column::bytes("retained_bytes", "Retained"),
            Column::text("name", heading),
        ],
    );
    let delta = |before: u64, after: u64| i64::try_from(growth(before, after)).unwrap_or(i64::MAX);
    sheet.fact("growth_bytes", i64::try_from(all).unwrap_or(i64::MAX));
    sheet.rows(
        arguments.output.top(),
        lines.iter().map(|(before, after)| {
            row![
                delta(before.own_bytes, after.own_bytes),
                delta(before.retained_bytes, after.retained_bytes),
                delta(before.object_count, after.object_count),
                after.own_bytes,
                after.retained_bytes,
                after.name.clone(),
            ]
        }),
    );
    let title = format!("{} from the first snapshot to the last", signed_bytes(all));
    print_table(&sheet, arguments.output.format, &[title, String::new()])?;
    Ok(ExitCode::SUCCESS)
}
