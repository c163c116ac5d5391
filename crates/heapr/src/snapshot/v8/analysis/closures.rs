//! `heapr snapshot closures`: variables that functions keep alive.

use std::process::ExitCode;

use heapr_v8::SourceMaps;
use heapr_v8::analysis::{Listing, Naming, UnusedVariables, unused_variable_table, unused_variables};

use super::listings::{self, ListingArguments};
use crate::output::{Format, print_table};
use crate::snapshot::v8::heap_file::{Wanted, open};

/// Arguments of `heapr snapshot closures`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClosuresArguments {
    #[command(flatten)]
    listing: ListingArguments,
    /// Variables that no function uses which can reach them. The functions' texts are the scripts
    /// saved beside the snapshot, and files that have not changed since
    #[arg(long)]
    unused: bool,
}

/// Runs the command.
pub(super) fn run(arguments: ClosuresArguments) -> anyhow::Result<ExitCode> {
    if !arguments.unused {
        return listings::print(arguments.listing, Listing::Closures);
    }
    let ListingArguments { file, output } = &arguments.listing;
    let heap = open(file, Wanted::Everything)?;
    let scripts = SourceMaps::of_file(&[], file);
    let found = unused_variables(&*heap, &Naming::of(&*heap), &|id, path| scripts.text_of(id, path));
    let table = unused_variable_table(&heap, &found, output.top());
    print_table(&table, output.format, &[])?;
    if output.format == Format::Text && found.variables.is_empty() {
        say!("no variable that functions keep alive is without use, as far as the scripts tell");
    }
    tell_unknown(&found);
    Ok(ExitCode::SUCCESS)
}

/// Prints the functions whose variables could not be found.
fn tell_unknown(found: &UnusedVariables) {
    /// Most functions named: a few are enough to recognise the kind of scripts.
    const NAMED_MAX: usize = 3;
    let UnusedVariables { unknown_function_count, unknown_scripts, .. } = found;
    if let Some(first) =
        unknown_scripts.get(..NAMED_MAX.min(unknown_scripts.len())).filter(|it| !it.is_empty())
    {
        let more = if unknown_scripts.len() > NAMED_MAX { ", …" } else { "" };
        warn!(
            "functions whose text is not here as it ran count as using all they can reach: {unknown_function_count} of {}{more} \
             (`heapr snapshot take` keeps texts beside the snapshot)",
            first.join(", ")
        );
    }
}
