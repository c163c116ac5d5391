//! `heapr snapshot native-contexts`: whose objects fill the heap, where several pages or vm
//! contexts share it.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::NativeContexts;

use crate::output::sheet::{Cell, OutputArguments, Sheet};
use crate::snapshot::v8::heap_file::{Wanted, open};

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
    let mut sheet = Sheet::new(
        "heapr.snapshot.native-contexts/1",
        &[
            ("id", "Id"),
            ("name", "Context"),
            ("attributed_bytes", "Its objects"),
            ("shallow_bytes", "Shallow"),
            ("retained_bytes", "Retained"),
        ],
    );
    sheet.fact("shared_bytes", sizes.shared_bytes);
    sheet.fact("unowned_bytes", sizes.unowned_bytes);
    let mut contexts = sizes.contexts;
    contexts.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let of_context = contexts.iter().map(|&(node, bytes)| {
        vec![
            Cell::Id(heap.snapshot().id(node)),
            Cell::Text(heap.display_text(node)),
            Cell::Bytes(bytes),
            Cell::Bytes(heap.snapshot().self_bytes(node)),
            Cell::Bytes(heap.retained()[node as usize]),
        ]
    });
    let of_none =
        [("(of several)", sizes.shared_bytes), ("(of none)", sizes.unowned_bytes)].map(|(name, bytes)| {
            vec![Cell::Nothing, Cell::Text(name.to_owned()), Cell::Bytes(bytes), Cell::Nothing, Cell::Nothing]
        });
    sheet.rows(arguments.output.top(), of_context.chain(of_none));
    sheet.print(arguments.output.format, &[])?;
    Ok(ExitCode::SUCCESS)
}
