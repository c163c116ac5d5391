//! `heapr snapshot strings`, `collections`, `shapes`, `fanout`, `detached`, `unreachable`,
//! `closures`, `pending`.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_table::Table;
use heapr_v8::analysis::{CollectionOrder, Listing, collection_owner_table, collection_table};

use crate::output::{OutputArguments, print_table};
use crate::snapshot::v8::heap_file::{Answered, Wanted, answered, open};

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
    /// Add them up by what holds them, a class's field or a variable: collections, slots, used
    /// ones, bytes of the others
    #[arg(long, conflicts_with = "empty")]
    owners: bool,
}

/// Largest number of lines: each line has a name to find, which takes minutes for all objects of a
/// large heap.
const MOST_LINES: usize = 10_000;

pub(super) fn collections(arguments: CollectionsArguments) -> anyhow::Result<ExitCode> {
    print(
        arguments.listing,
        match (arguments.owners, arguments.empty) {
            (true, _) => Listing::CollectionOwners,
            (false, true) => Listing::Collections(CollectionOrder::Emptiest),
            (false, false) => Listing::Collections(CollectionOrder::Largest),
        },
    )
}

pub(super) fn print(arguments: ListingArguments, listing: Listing) -> anyhow::Result<ExitCode> {
    let top = arguments.output.top().min(MOST_LINES);
    if let Some(table) = answered(&arguments.file, |known| kept(known, listing, top)) {
        print_table(&table, arguments.output.format, &[])?;
        return Ok(ExitCode::SUCCESS);
    }
    let heap = open(&arguments.file, Wanted::Everything)?;
    let table = listing.table(&heap, top);
    print_table(&table, arguments.output.format, &[])?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the table of a list that the index has.
fn kept(known: &Answered, listing: Listing, top: usize) -> Option<Table> {
    let (objects, answers) = (&known.objects, &known.answers);
    match listing {
        Listing::Collections(order) => Some(collection_table(objects, answers.collections(order, top)?)),
        Listing::CollectionOwners => Some(collection_owner_table(objects, answers.collection_owners(top)?)),
        _ => None,
    }
}
