//! `heapr snapshot strings`, `collections`, `shapes`, `fanout`, `detached`, `unreachable`,
//! `closures`, `pending`.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{CollectionOrder, Listing};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::v8::heap_file::{Wanted, open};

/// Arguments of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListingArguments {
    /// The snapshot; - for standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) output: OutputArguments,
}

/// Arguments of `heapr snapshot collections`.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionsArguments {
    #[command(flatten)]
    listing: ListingArguments,
    /// Order by room for entries that do not exist
    #[arg(long)]
    empty: bool,
}

/// Largest number of lines: each line has a name to find, which takes minutes for all objects of a
/// large heap.
const MOST_LINES: usize = 10_000;

pub(super) fn collections(arguments: CollectionsArguments) -> anyhow::Result<ExitCode> {
    let order = if arguments.empty { CollectionOrder::Emptiest } else { CollectionOrder::Largest };
    print(arguments.listing, Listing::Collections(order))
}

pub(super) fn print(arguments: ListingArguments, listing: Listing) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let table = listing.table(&heap, arguments.output.top().min(MOST_LINES));
    print_table(&table, arguments.output.format, &[])?;
    Ok(ExitCode::SUCCESS)
}
