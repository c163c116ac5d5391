//! `heapr snapshot check`: reports damage of a file.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::output::{Format, print_table};
use crate::snapshot::v8::heap_file::read;
use heapr_table::quantity::plural;
use heapr_table::{Column, Table, row};

/// Arguments of `heapr snapshot check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: CheckArguments) -> anyhow::Result<ExitCode> {
    let file = arguments.file.display();
    let mut sheet = Table::new("heapr.snapshot.check/1", &[Column::text("problem", "Problem")]);
    let mut title = Vec::new();
    let problems: Vec<String> = match read(&arguments.file) {
        Ok(snapshot) => {
            let nodes = plural(u64::from(snapshot.node_count()), "node");
            title.push(format!("{file}: {nodes}, {}", plural(u64::from(snapshot.edge_count()), "edge")));
            sheet.fact("is_readable", true);
            snapshot.check().iter().map(ToString::to_string).collect()
        }
        Err(error) => {
            // A file that cannot be read is an error of the command, not a finding on the file.
            let is_io =
                |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<std::io::Error>().is_some();
            if error.chain().any(is_io) {
                return Err(error);
            }
            sheet.fact("is_readable", false);
            vec![format!("{error:#}")]
        }
    };
    let is_good = problems.is_empty();
    if is_good && arguments.format == Format::Text {
        say!("{}", title.join(", "));
        say!("no problem found");
        return Ok(ExitCode::SUCCESS);
    }
    sheet.rows(usize::MAX, problems.into_iter().map(|problem| row![problem]));
    print_table(&sheet, arguments.format, &title)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
