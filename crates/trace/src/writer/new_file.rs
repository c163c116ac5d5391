//! The file that a trace is written to: private, and in the place of what was there.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapr_files::Existing;

use super::{TraceWriter, write_failed};
use crate::chunk::SAMPLED_FORMAT_VERSION;
use crate::error::{Error, Result};

impl TraceWriter<BufWriter<File>> {
    /// Makes a file of mode 0600 and begins it. An existing one is an error unless `overwrite`; a
    /// symbolic link is one always.
    ///
    /// See [`heapr_files::make`].
    ///
    /// # Errors
    /// The operating system's, for making or writing the file.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new(new_file(path, overwrite)?)
    }

    /// The same for [`TraceWriter::new_sampled`].
    ///
    /// # Errors
    /// As [`TraceWriter::create`].
    pub fn create_sampled(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new_sampled(new_file(path, overwrite)?)
    }

    /// Some of its allocations are samples, although it began as a file in which all is recorded:
    /// it is one of [`TraceWriter::new_sampled`] from now on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn has_samples(&mut self) -> Result<()> {
        /// Behind the magic.
        const VERSION_AT: u64 = 8;
        if self.version == SAMPLED_FORMAT_VERSION {
            return Ok(());
        }
        self.version = SAMPLED_FORMAT_VERSION;
        self.sink.flush().map_err(write_failed)?;
        self.sink
            .get_ref()
            .write_all_at(&SAMPLED_FORMAT_VERSION.to_le_bytes(), VERSION_AT)
            .map_err(write_failed)
    }
}

/// Makes the file alone, as [`TraceWriter::create`] does: for [`TraceWriter::go_on_in`].
///
/// # Errors
/// As [`TraceWriter::create`].
pub fn new_file(path: &Path, overwrite: bool) -> Result<BufWriter<File>> {
    let file = heapr_files::make(path, Existing::replaced_if(overwrite))
        .map_err(|source| Error::Io { action: "making the file", source })?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}
