//! `heapr symbolize`: embeds the symbols in a trace.

use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use heapr_files::Existing;
use heapr_query::{Action, CullList, GroupBy, Metric, Query, Report};
use heapr_session::{HeldMadeCode, HeldModule};
use heapr_symbols::{SymbolTable, encode_bundle};
use heapr_trace::{Error, SymbolEmbedder, Trace};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::report::names::{NameArguments, TraceNames, is_module};
use crate::trace_file::{open, other_builds};
use heapr_table::quantity::{bytes, count, plural};

/// Arguments of `heapr symbolize`.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolizeArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    names: NameArguments,
    /// Leave FILE as it is and write a copy with the symbols
    #[arg(short, long, value_name = "OUT", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: SymbolizeArguments) -> anyhow::Result<ExitCode> {
    let SymbolizeArguments { file, names, output } = arguments;
    let _busy = crate::busy_line::begin(format!("naming the code in {}", file.display()));
    let Some(output) = output else {
        embed(&file, &file, &file, &names)?;
        return Ok(ExitCode::SUCCESS);
    };
    if !open(&file)?.is_complete() {
        return Err(refusal(&file, &Error::Unfinished));
    }
    if let Some(copy) = NamelessFile::beside(&output)? {
        copy_to(&file, &copy.file, &output)?;
        embed(&file, &copy.path(), &output, &names)?;
        copy.give_name(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let target = heapr_files::make(&output, Existing::Kept);
    let target = target.map_err(|error| cannot_write(&output, error))?;
    let outcome = copy_to(&file, &target, &output).and_then(|()| embed(&file, &output, &output, &names));
    if outcome.is_err() {
        // Half a copy is useless.
        let _ = std::fs::remove_file(&output);
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

/// File without a name until it is whole: if heapr is ended before, no file is left.
struct NamelessFile {
    file: File,
}

impl NamelessFile {
    /// Creates the file in the folder of `path`, which must not exist. Returns `None` if the file
    /// system has no unnamed files.
    fn beside(path: &Path) -> anyhow::Result<Option<Self>> {
        if path.symlink_metadata().is_ok() {
            return Err(cannot_write(path, ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => Ok(Some(Self { file: descriptor.into() })),
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => Ok(None),
            Err(error) => Err(cannot_write(path, error.into())),
        }
    }

    /// Path of the file under /proc.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    fn give_name(&self, name: &Path) -> anyhow::Result<()> {
        let outcome = rustix::fs::linkat(CWD, self.path(), CWD, name, AtFlags::SYMLINK_FOLLOW);
        outcome.map_err(|error| cannot_write(name, error.into()))
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => anyhow::anyhow!("{path} exists: name another file"),
        _ => anyhow::Error::new(error).context(format!("cannot write {path}")),
    }
}

/// Copies the contents and the mode of `from` to a new file, which is to be called `name`.
fn copy_to(from: &Path, mut target: &File, name: &Path) -> anyhow::Result<()> {
    let mut source = heapr_files::regular(from).with_context(|| format!("cannot read {}", from.display()))?;
    let outcome = std::io::copy(&mut source, &mut target).and_then(|_| {
        let mode = source.metadata()?.permissions().mode();
        // The owner must be able to write for the symbols to be written.
        target.set_permissions(Permissions::from_mode(mode & 0o777 | 0o200))
    });
    outcome.with_context(|| format!("cannot copy {} to {}", from.display(), name.display()))
}

/// Embeds names of modules whose paths lead elsewhere by now, and of JIT code, while the recorder
/// still holds both open.
pub(crate) fn embed_held(file: &Path, held: &[HeldModule], made: &[HeldMadeCode]) -> anyhow::Result<()> {
    if held.is_empty() && made.is_empty() {
        return Ok(());
    }
    let embedder = SymbolEmbedder::open(file)?;
    let mut names = TraceNames::of_held(embedder.trace(), held, made).keep_tables();
    name_all(embedder.trace(), &mut names)?;
    if names.tables.values().any(|table| table.named_count() > 0) {
        embedder.embed(&encode_bundle(&names.tables))?;
    }
    Ok(())
}

/// Looks up the names of all stacks.
fn name_all<'t>(trace: &'t Trace, names: &mut TraceNames) -> heapr_query::Result<Report<'t>> {
    // A query for all stacks without culling looks up every name.
    let query = Query {
        cull: CullList::empty(),
        actions: vec![Action::Ranking { by: GroupBy::Stacks, sort: Metric::default() }],
        top: 1,
        ..Query::default()
    };
    heapr_query::run(trace, &query, names)
}

/// Embeds the symbols in `target`, which is `file` itself or its copy; messages call it `name`.
fn embed(file: &Path, target: &Path, name: &Path, arguments: &NameArguments) -> anyhow::Result<()> {
    let embedder = SymbolEmbedder::open(target).map_err(|error| refusal(file, &error))?;
    let mut names = TraceNames::new(embedder.trace(), arguments).keep_tables();
    let report = name_all(embedder.trace(), &mut names)?;
    if let Some(damage) = report.damage.first() {
        return Err(refusal(file, &Error::Damaged { offset: damage.offset, what: damage.what }));
    }
    if let Some(others) = other_builds(embedder.trace()) {
        warn!("{}: {others}", file.display());
    }
    let bundle = encode_bundle(&names.tables);
    let is_new = embedder.embed(&bundle).map_err(|error| anyhow::anyhow!("{}: {error}", name.display()))?;
    let addresses: usize = names.tables.values().map(SymbolTable::named_count).sum();
    let modules = names.tables.keys().filter(|key| is_module(key)).count();
    say!(
        "{}: {} address{} in {}{}, {} of symbols{}",
        name.display(),
        count(addresses as u64),
        if addresses == 1 { "" } else { "es" },
        plural(modules as u64, "module"),
        if modules == names.tables.len() { "" } else { " and code made at run time" },
        bytes(bundle.len() as u64),
        if is_new { "" } else { ": they were there already" },
    );
    Ok(())
}

/// Returns the error that says why no symbols are embedded, and what the file is good for as it is.
fn refusal(file: &Path, error: &Error) -> anyhow::Error {
    let file = file.display();
    match error {
        Error::Unfinished => anyhow::anyhow!(
            "{file}: {error}: symbols are embedded only in a whole file (heapr report reads this one up to its last \
             flush, and finds names itself)"
        ),
        Error::Damaged { .. } => anyhow::anyhow!(
            "{file}: {error}: symbols are embedded only in a sound file (heapr report reads what is sound in this one, \
             and finds names itself)"
        ),
        _ => anyhow::anyhow!("{file}: {error}"),
    }
}
