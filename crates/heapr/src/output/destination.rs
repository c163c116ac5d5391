//! Files that results are written to.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use heapr_files::{Existing, NewFile};
use heapr_filters::FilterArguments;

use super::output_file::{OutputFile, refusal};
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

/// Where a command writes: a private file, which has its name from [`Output::end`] on, or standard
/// output.
pub(crate) struct Output {
    out: Box<dyn Write>,
    file: Option<OutputFile>,
}

/// Opens a file, which is new unless `may_overwrite`, or standard output.
pub(crate) fn output(path: Option<&Path>, may_overwrite: bool, is_text: bool) -> anyhow::Result<Output> {
    let Some(path) = path else { return Ok(Output { out: printed(is_text), file: None }) };
    let named = |file| Output { out: protected(BufWriter::new(file), is_text), file: None };
    let refused = |error| refusal(path, error);
    // A pipe or a terminal has no contents that would be lost.
    if heapr_files::is_stream(path) {
        return Ok(named(heapr_files::stream(path).map_err(refused)?));
    }
    match NewFile::create(path, Existing::replaced_if(may_overwrite)) {
        Ok(file) => {
            let out = protected(BufWriter::new(file.try_clone().map_err(refused)?), is_text);
            Ok(Output { out, file: Some(OutputFile::of(file, path)) })
        }
        // In a folder where nothing can be made, what is there can still be written to.
        Err(error)
            if may_overwrite
                && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(named(heapr_files::make(path, Existing::Replaced).map_err(|_| refused(error))?))
        }
        Err(error) => Err(refused(error)),
    }
}

/// The same for what others read as it grows: it has its name at once.
pub(crate) fn growing_output(path: Option<&Path>, may_overwrite: bool) -> anyhow::Result<Output> {
    let Some(path) = path.filter(|path| !heapr_files::is_stream(path)) else {
        return output(path, may_overwrite, false);
    };
    let file = heapr_files::make(path, Existing::replaced_if(may_overwrite));
    let file = file.map_err(|error| refusal(path, error))?;
    Ok(Output { out: protected(BufWriter::new(file), false), file: None })
}

impl Output {
    /// All is written: the file gets its name.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        self.file.map_or(Ok(()), |file| file.keep().map(drop))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    // What protects text takes a line as a whole.
    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        self.out.write_fmt(arguments)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
