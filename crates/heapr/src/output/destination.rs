//! Destinations of results: files and standard output.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use heapr_files::{Existing, NewFile};
use heapr_filters::FilterArguments;

use super::output_file::{OutputFile, refusal};
use crate::plain_text::{printed, protected};

/// Refuses to write to the file that is read, under any name: the trace would be lost silently.
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

/// Refuses to write to any file that a query reads.
pub(crate) fn refuse_inputs(
    output: Option<&Path>,
    input: &Path,
    filters: &FilterArguments,
) -> anyhow::Result<()> {
    std::iter::once(input).chain(filters.cull_list_files()).try_for_each(|input| refuse_input(output, input))
}

/// Destination of a command: standard output, or a private file that gets its name in
/// [`Output::end`].
pub(crate) struct Output {
    out: Box<dyn Write>,
    file: Option<OutputFile>,
}

/// Name of standard output as a file.
const STDOUT: &str = "-";

/// Returns the parser of the name of a file that is written in place, which standard output cannot
/// be.
pub(crate) fn file_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == STDOUT {
        true => Err("standard output cannot hold it: name a file (./- for one of that name)"),
        false => Ok(path),
    })
}

/// Refuses to write bytes that are no text to a terminal.
pub(crate) fn refuse_binary_on_terminal(path: Option<&Path>, what: &str) -> anyhow::Result<()> {
    let is_terminal = match path.filter(|path| *path != Path::new(STDOUT)) {
        None => io::stdout().is_terminal(),
        Some(path) => {
            heapr_files::is_stream(path) && heapr_files::stream(path).is_ok_and(|stream| stream.is_terminal())
        }
    };
    anyhow::ensure!(!is_terminal, "{what} is no text, and a terminal shows none of it: name a file with -o");
    Ok(())
}

/// Opens standard output (`-`, or no name), or a file.
pub(crate) fn output(path: Option<&Path>, existing: Existing, is_text: bool) -> anyhow::Result<Output> {
    let path = path.filter(|path| *path != Path::new(STDOUT));
    let Some(path) = path else { return Ok(Output { out: printed(is_text), file: None }) };
    let named = |file| Output { out: protected(BufWriter::new(file), is_text), file: None };
    let refused = |error| refusal(path, error);
    // A pipe or a terminal has no contents to lose.
    if heapr_files::is_stream(path) {
        return Ok(named(heapr_files::stream(path).map_err(refused)?));
    }
    match NewFile::create(path, existing) {
        Ok(file) => {
            let out = protected(BufWriter::new(file.try_clone().map_err(refused)?), is_text);
            Ok(Output { out, file: Some(OutputFile::of(file, path)) })
        }
        // In a folder where no file can be created, an existing file can still be overwritten.
        Err(error)
            if existing == Existing::Replaced
                && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(named(heapr_files::make(path, Existing::Replaced).map_err(|_| refused(error))?))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Opens a destination for results that are read while they grow: a file has its name at once.
pub(crate) fn growing_output(path: Option<&Path>, existing: Existing) -> anyhow::Result<Output> {
    let Some(path) = path.filter(|path| *path != Path::new(STDOUT) && !heapr_files::is_stream(path)) else {
        return output(path, existing, false);
    };
    let file = heapr_files::make(path, existing);
    let file = file.map_err(|error| refusal(path, error))?;
    Ok(Output { out: protected(BufWriter::new(file), false), file: None })
}

impl Output {
    /// Flushes, and gives the file its name.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        self.file.map_or(Ok(()), |file| file.keep().map(drop))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    // [`PlainText`](crate::plain_text::PlainText) needs a line as a whole.
    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        self.out.write_fmt(arguments)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
