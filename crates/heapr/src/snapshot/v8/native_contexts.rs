//! `heapr snapshot native-contexts`: the share of each page or vm context in a heap.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::NativeContexts;

use crate::output::{OutputArguments, print_table};
use crate::snapshot::v8::heap_file::{Wanted, open};
use heapr_table::SortRows as _;
use heapr_table::{Column, Table, row};

/// Arguments of `heapr snapshot native-contexts`.
#[derive(Debug, clap::Args)]
pub(crate) struct NativeContextsArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: NativeContextsArguments) -> anyhow::Result<ExitCode> {
    let heap = open(&arguments.file, Wanted::Everything)?;
    let sizes = NativeContexts::of(&heap).sizes(&heap);
    let mut sheet = Table::new(
        "heapr.snapshot.native-contexts/1",
        &[
            Column::id("id", "Id"),
            Column::text("name", "Context"),
            Column::bytes("attributed_bytes", "Its objects"),
            Column::bytes("shallow_bytes", "Shallow"),
            Column::bytes("retained_bytes", "Retained"),
        ],
    );
    sheet.fact("shared_bytes", sizes.shared_bytes);
    sheet.fact("unowned_bytes", sizes.unowned_bytes);
    let mut contexts = sizes.contexts;
    contexts.sort_rows_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let of_context = contexts.iter().map(|&(node, bytes)| {
        row![
            heap.snapshot().id(node),
            heap.display_text(node),
            bytes,
            heap.snapshot().self_bytes(node),
            heap.retained()[node as usize],
        ]
    });
    let of_none = [("(of several)", sizes.shared_bytes), ("(of none)", sizes.unowned_bytes)]
        .map(|(name, bytes)| row![None::<u64>, name, bytes, None::<u64>, None::<u64>]);
    sheet.rows(arguments.output.top(), of_context.chain(of_none));
    print_table(&sheet, arguments.output.format, &[])?;
    Ok(ExitCode::SUCCESS)
}
