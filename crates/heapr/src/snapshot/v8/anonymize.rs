//! `heapr snapshot anonymize`: a snapshot that can be given away.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use heapr_v8::Secrecy;

use crate::output::OutputFile;
use crate::snapshot::v8::heap_file::read_and_tell;

/// Arguments of `heapr snapshot anonymize`.
#[derive(Debug, clap::Args)]
pub(crate) struct AnonymizeArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new snapshot
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    output: PathBuf,
    /// Replace the names of properties, variables, functions, classes and scripts, too
    #[arg(long)]
    names: bool,
    /// Overwrite the new file if it exists
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: AnonymizeArguments) -> anyhow::Result<ExitCode> {
    let snapshot = read_and_tell(&arguments.file)?;
    // Names of classes and scripts of other languages are among the facts on the heap, too.
    if let Some(dialect) = snapshot.meta().dialect.as_ref().filter(|_| arguments.names) {
        let (file, runtime) = (arguments.file.display(), &dialect.runtime);
        bail!("--names replaces names of JavaScript alone, and {file} is a heap of {runtime}");
    }
    let secrecy = if arguments.names { Secrecy::TextsAndNames } else { Secrecy::Texts };
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    snapshot.write_anonymous(secrecy, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}
