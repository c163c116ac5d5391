//! Source of a snapshot's text: a file, a packed file, or a pipe.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::archive::{is_packed, unpacked};
use crate::format::archive_member::BEGINNING_BYTES;

/// Uncompressed text of a snapshot.
pub(crate) struct Input {
    reader: Reader,
    /// Number of bytes read from the file; for a compressed file, of compressed bytes.
    taken: Arc<AtomicU64>,
    length: Option<u64>,
}

enum Reader {
    /// File that can be read from any offset.
    File(File),
    Stream(Box<dyn Read + Send>),
}

/// Reader that counts the bytes read from the file, before decompression.
struct Counting<R> {
    reader: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(into)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Input {
    /// Opens a file; `-` is standard input. The file's beginning shows how it is packed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::stream(heapr_files::standard_input()?, None);
        }
        let file = heapr_files::readable(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Self::stream(file, None);
        }
        let mut beginning = [0; BEGINNING_BYTES];
        let mut first = &file;
        let count = read_full(&mut first, &mut beginning)?;
        let mut file = file;
        file.seek(SeekFrom::Start(0))?;
        if is_packed(&beginning[..count]) {
            return Self::stream(file, Some(metadata.len()));
        }
        Ok(Self { reader: Reader::File(file), taken: Arc::default(), length: Some(metadata.len()) })
    }

    /// Reads text from any reader, which may be compressed; `length` is for the progress.
    pub(crate) fn stream(reader: impl Read + Send + 'static, length: Option<u64>) -> io::Result<Self> {
        let taken = Arc::new(AtomicU64::new(0));
        let reader = unpacked(Counting { reader, taken: Arc::clone(&taken) })?;
        Ok(Self { reader: Reader::Stream(reader), taken, length })
    }

    /// Largest amount of text that can follow, if known.
    pub(crate) fn text_limit(&self) -> Option<u64> {
        match self.reader {
            Reader::File(_) => self.length,
            Reader::Stream(_) => None,
        }
    }

    /// Number of bytes read, and length of the file.
    pub(crate) fn progress(&self) -> (u64, Option<u64>) {
        (self.taken.load(Ordering::Relaxed), self.length)
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.reader {
            Reader::File(file) => {
                let count = read_full(file, into)?;
                self.taken.fetch_add(count as u64, Ordering::Relaxed);
                Ok(count)
            }
            Reader::Stream(reader) => read_full(reader, into),
        }
    }

    pub(crate) fn can_seek(&self) -> bool {
        matches!(self.reader, Reader::File(_))
    }

    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        match &mut self.reader {
            Reader::File(file) => file.seek(SeekFrom::Start(offset)).map(drop),
            Reader::Stream(_) => Err(io::Error::from(io::ErrorKind::NotSeekable)),
        }
    }

    /// Writes `begun` and the rest of the stream to an unnamed file, and continues from that file.
    pub(crate) fn spool(&mut self, begun: &[u8]) -> io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(begun)?;
        if let Reader::Stream(reader) = &mut self.reader {
            io::copy(reader, &mut file)?;
        }
        self.length = Some(file.stream_position()?);
        self.taken = Arc::default();
        file.seek(SeekFrom::Start(0))?;
        self.reader = Reader::File(file);
        Ok(())
    }
}

/// Reads until `into` is full or the text ends.
fn read_full(reader: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match reader.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A truncated compressed file gives the text it has. The text then ends inside an
            // element, which is reported.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
