//! Snapshots whose texts never reach the disk: they are replaced on their way to the file.

use std::io::{self, BufWriter, Write};

use anyhow::Context as _;
use heapr_v8::{ReadOptions, Secrecy, Snapshot};

/// Texts that are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Redaction {
    /// Texts and keys that are data
    Texts,
    /// And the names of properties, variables, functions, classes and scripts
    Names,
}

impl Redaction {
    fn secrecy(self) -> Secrecy {
        match self {
            Self::Texts => Secrecy::Texts,
            Self::Names => Secrecy::TextsAndNames,
        }
    }
}

/// Calls `take` to write a snapshot, and writes it to `out` with other texts of the same lengths.
/// Returns the result of `take`, and the number of bytes written.
///
/// The snapshot is in the memory of this process alone until it is whole.
pub(crate) fn redacted<T>(
    redaction: Redaction,
    out: &mut (dyn Write + Send),
    take: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, heapr_inspector::Error>,
) -> anyhow::Result<(Result<T, heapr_inspector::Error>, u64)> {
    let (reader, mut writer) = io::pipe().context("cannot make a pipe")?;
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || Snapshot::read(reader, &ReadOptions::default()));
        let taken = take(&mut writer);
        // Closing the pipe shows the reader the end.
        drop(writer);
        let snapshot = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if taken.is_err() {
            return Ok((taken, 0));
        }
        let mut counted = Counted { out: BufWriter::with_capacity(1 << 20, out), bytes: 0 };
        snapshot?.write_anonymous(redaction.secrecy(), &mut counted)?;
        counted.flush()?;
        Ok((taken, counted.bytes))
    })
}

struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
