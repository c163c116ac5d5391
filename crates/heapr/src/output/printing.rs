//! Prints tables.

use heapr_table::json_text::write_json;
use std::io::Write as _;

use heapr_table::Table;

use super::{Format, top};
use crate::plain_text::{line_width, printed};

/// Form of printed results.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArguments {
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Most lines [default: 20; all as json and csv]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl OutputArguments {
    pub(crate) fn top(&self) -> usize {
        top(self.top, self.format, false)
    }
}

/// Prints a table on standard output; as text, below the lines of `title`.
pub(crate) fn print_table(table: &Table, format: Format, title: &[String]) -> anyhow::Result<()> {
    let mut out = printed(format == Format::Text);
    match format {
        Format::Text => {
            title.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            table.write_text(&mut out, line_width())?;
        }
        Format::Json => {
            write_json(&mut out, table, true)?;
            writeln!(out)?;
        }
        Format::Csv => table.write_csv(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Ends standard output, so that its reader need not wait for the work after that.
pub(crate) fn end_output() {
    let _ = std::io::stdout().flush();
    if let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
