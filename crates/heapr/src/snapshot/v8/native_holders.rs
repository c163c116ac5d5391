//! `heapr snapshot holders` of a heap of objects: the native memory below each variable of a
//! module, class or frame. The functions that allocated most of it are told where they were
//! recorded.

use std::path::Path;
use std::process::ExitCode;

use heapr_table::quantity::{bytes, percent};
use heapr_table::{Column, Table, row};
use heapr_v8::CallFunction;
use heapr_v8::analysis::{Naming, NativeAnswer, NativeHolder};

use super::heap_file::{answered, open_with_stacks};
use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;

/// Most functions of a stack that are printed.
const MOST_FUNCTIONS: usize = 4;
/// Part of a holder's bytes from which on the functions that allocated them are told.
const LEAST_SHARE: u64 = 4;

/// Runs the command.
pub(crate) fn run(file: &Path, output: &OutputArguments) -> anyhow::Result<ExitCode> {
    let found = match answered(file, |known| known.answers.native_holders(output.top()).cloned()) {
        Some(found) => found,
        None => {
            let heap = open_with_stacks(file)?;
            NativeAnswer::of(&heap, &Naming::of(&*heap))
        }
    };
    let mut table = Table::new(
        "heapr.holders/1",
        &[
            Column::bytes("retained_bytes", "Native"),
            Column::count("retained_count", "Blocks"),
            Column::bytes("with_objects_bytes", "With objects"),
            Column::text("holder", "Holder"),
            Column::text("allocated_by", "Allocated by"),
        ],
    );
    table.call_rows("holders");
    table.fact("heap", "objects");
    table.fact("file", file.to_string_lossy());
    table.fact("block_bytes", found.native_bytes);
    let shown = found.holders.len() as u64;
    let lines = found.holders.into_iter().map(|holder| {
        let allocated_by = allocated_by(&holder);
        row![
            holder.native_bytes,
            holder.block_count,
            holder.retained_bytes,
            one_line(&holder.name),
            allocated_by
        ]
    });
    table.rows(output.top(), lines);
    // Those that the index does not keep.
    table.left_off(found.holder_count.saturating_sub(shown));
    let title = format!(
        "{}: {} of native memory in {} blocks, by what would free it",
        file.display(),
        bytes(found.native_bytes),
        heapr_table::quantity::count(found.block_count)
    );
    print_table(&table, output.format, &[title, String::new()])?;
    Ok(ExitCode::SUCCESS)
}

/// Functions that allocated most of a holder's blocks, with their share if others allocated some.
/// `None` if they are unknown, or no functions allocated much of it.
pub(crate) fn allocated_by(holder: &NativeHolder) -> Option<String> {
    if holder.allocated_by.is_empty() || holder.allocated_by_bytes < holder.native_bytes / LEAST_SHARE {
        return None;
    }
    let share = match holder.allocated_by_bytes == holder.native_bytes {
        true => String::new(),
        false => format!("{} by ", percent(holder.allocated_by_bytes, holder.native_bytes)),
    };
    // Functions with a line are the program's, or those of a library with sources.
    let shown = holder.allocated_by.iter().filter(|function| function.line > 0).take(MOST_FUNCTIONS);
    let mut functions: Vec<String> = shown.map(short).collect();
    if functions.is_empty() {
        functions = holder.allocated_by.iter().take(MOST_FUNCTIONS).map(short).collect();
    }
    Some(one_line(&format!("{share}{}", functions.join(" <- "))))
}

/// Name of a function, with the name of its file.
fn short(function: &CallFunction) -> String {
    let file = function.script.rsplit('/').next().unwrap_or_default();
    match (file, function.line) {
        ("", _) => function.name.clone(),
        (file, 0) => format!("{} ({file})", function.name),
        (file, line) => format!("{} ({file}:{line})", function.name),
    }
}
