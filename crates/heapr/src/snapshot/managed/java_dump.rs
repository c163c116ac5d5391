//! Heap dumps of Java (hprof), for all commands that read snapshots.

use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context as _;
use heapr_managed::{Contents, HPROF_BEGINNING_BYTES, is_hprof, read_hprof};
use heapr_v8::{Snapshot, open_unpacked};

/// Options of all commands that read heap dumps of Java.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct JavaDumpArguments {
    /// Show the texts of strings, too, of a heap dump of Java (hprof): names alone are read by
    /// default
    #[arg(long, global = true)]
    texts: bool,
}

/// Options of the command line, for all dumps that are opened.
static ASKED: OnceLock<JavaDumpArguments> = OnceLock::new();

impl JavaDumpArguments {
    /// Applies the options to all dumps opened later.
    pub(crate) fn apply(self) {
        ASKED.get_or_init(|| self);
    }
}

/// Whether the texts of strings are read.
pub(crate) fn reads_texts() -> bool {
    ASKED.get().is_some_and(|asked| asked.texts)
}

/// Whether a file is a heap dump of Java, which may be packed. `false` for a pipe, because the
/// bytes read here would be lost.
pub(crate) fn is_dump(file: &Path) -> bool {
    if !file.is_file() {
        return false;
    }
    let mut beginning = Vec::with_capacity(HPROF_BEGINNING_BYTES);
    let Ok(reader) = open_unpacked(file) else { return false };
    let read = reader.take(HPROF_BEGINNING_BYTES as u64).read_to_end(&mut beginning);
    read.is_ok() && is_hprof(&beginning)
}

/// Reads a heap dump.
pub(crate) fn read(file: &Path) -> anyhow::Result<Snapshot> {
    let contents = if reads_texts() { Contents::Strings } else { Contents::Names };
    let heap = read_hprof(&|| open_unpacked(file), contents).with_context(|| file.display().to_string())?;
    for note in &heap.notes {
        warn!("{}: {note}", file.display());
    }
    Ok(heap.snapshot)
}
