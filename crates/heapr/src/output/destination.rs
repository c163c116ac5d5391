//! Files that results are written to.

use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use heapr_filters::FilterArguments;

use crate::plain_text::{printed, protected};

/// Refuses to write to the file that is read, by whatever name: the trace would be gone, and
/// nothing have been said.
fn refuse_input(output: Option<&Path>, input: &Path) -> anyhow::Result<()> {
    let Some(output) = output else { return Ok(()) };
    let identity = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let read = identity(input);
    anyhow::ensure!(
        read.is_none() || read != identity(output),
        "-o {}: this is the file that is read; name another",
        output.display()
    );
    Ok(())
}

/// The same for all files that a query reads.
pub(crate) fn refuse_inputs(
    output: Option<&Path>,
    input: &Path,
    filters: &FilterArguments,
) -> anyhow::Result<()> {
    std::iter::once(input).chain(filters.cull_list_files()).try_for_each(|input| refuse_input(output, input))
}

/// Where a command writes: a file, which is new unless `may_overwrite`, or standard output.
pub(crate) fn output(
    path: Option<&Path>,
    may_overwrite: bool,
    is_text: bool,
) -> anyhow::Result<Box<dyn Write>> {
    let Some(path) = path else { return Ok(printed(is_text)) };
    // A pipe or a terminal has no contents that would be lost.
    let keeps_nothing = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    let mut options = OpenOptions::new();
    options.write(true);
    if may_overwrite || keeps_nothing {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => already_exists(path),
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    })?;
    Ok(protected(BufWriter::new(file), is_text))
}

/// What is said of a file that is not to be overwritten.
pub(crate) fn already_exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists: name another file with -o, or overwrite it with -f", path.display())
}
