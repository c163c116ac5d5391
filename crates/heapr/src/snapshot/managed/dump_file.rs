//! Heap dumps that runtimes write (Java's hprof, Ruby's `ObjectSpace.dump_all`, .NET's gcdump and
//! nettrace), for all commands that read snapshots.

use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context as _;
use heapr_managed::{
    Contents, DumpError, GCDUMP_BEGINNING_BYTES, HPROF_BEGINNING_BYTES, RUBY_BEGINNING_BYTES, is_gcdump,
    is_hprof, is_nettrace, is_ruby_dump, read_gcdump, read_hprof, read_nettrace, read_ruby_dump,
};
use heapr_v8::{Problem, Snapshot, open_unpacked, open_unpacked_at};

use super::scarce_memory;

/// Options of all commands that read heap dumps.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct DumpArguments {
    /// Show the texts of strings, too, of a heap dump of Java (hprof) or Ruby: names alone are read
    /// by default
    #[arg(long, global = true)]
    texts: bool,
}

/// Options of the command line, for all dumps that are opened.
static ASKED: OnceLock<DumpArguments> = OnceLock::new();

impl DumpArguments {
    /// Applies the options to all dumps opened later.
    pub(crate) fn apply(self) {
        ASKED.get_or_init(|| self);
    }
}

/// Format of a heap dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DumpKind {
    Java,
    Ruby,
    Dotnet,
    DotnetEvents,
}

impl DumpKind {
    /// Determines the format of a file, which may be packed, by its beginning. `None` for a pipe,
    /// because the bytes read here would be lost.
    fn of(file: &Path) -> Option<Self> {
        if !file.is_file() {
            return None;
        }
        let most = HPROF_BEGINNING_BYTES.max(RUBY_BEGINNING_BYTES).max(GCDUMP_BEGINNING_BYTES);
        let mut beginning = Vec::with_capacity(most);
        open_unpacked(file).ok()?.take(most as u64).read_to_end(&mut beginning).ok()?;
        match () {
            () if is_hprof(&beginning) => Some(Self::Java),
            () if is_ruby_dump(&beginning) => Some(Self::Ruby),
            () if is_gcdump(&beginning) => Some(Self::Dotnet),
            () if is_nettrace(&beginning) => Some(Self::DotnetEvents),
            () => None,
        }
    }
}

/// Whether the texts of strings are read.
pub(crate) fn reads_texts() -> bool {
    ASKED.get().is_some_and(|asked| asked.texts)
}

/// Whether a file is a heap dump.
pub(crate) fn is_dump(file: &Path) -> bool {
    DumpKind::of(file).is_some()
}

/// Reads a heap dump. What it lacks is among the snapshot's problems, which its index keeps.
/// `None`: the file is no heap dump.
pub(crate) fn read(file: &Path) -> Option<Result<Snapshot, DumpError>> {
    let kind = DumpKind::of(file)?;
    let is_packed = open_unpacked_at(file, 1).is_ok_and(|opened| opened.is_none());
    scarce_memory::prepare(file, is_packed);
    let contents = if reads_texts() { Contents::Strings } else { Contents::Names };
    let heap = match kind {
        DumpKind::Java => read_hprof(&|offset| open_unpacked_at(file, offset), contents),
        DumpKind::Ruby => read_ruby_dump(&|| open_unpacked(file), contents),
        DumpKind::Dotnet => unpacked(file).and_then(read_gcdump),
        DumpKind::DotnetEvents => unpacked(file).and_then(read_nettrace),
    };
    Some(heap.map(|heap| {
        let mut snapshot = heap.snapshot;
        for what in heap.notes {
            snapshot.add_problem(Problem::OfDump { what });
        }
        snapshot
    }))
}

fn unpacked(file: &Path) -> Result<impl std::io::Read + use<>, DumpError> {
    open_unpacked(file).map_err(|source| DumpError::Io { offset: 0, source })
}

/// Reads a heap dump for a command. `None`: the file is no heap dump.
pub(crate) fn read_for_command(file: &Path) -> Option<anyhow::Result<Snapshot>> {
    Some(read(file)?.with_context(|| file.display().to_string()))
}
