//! The file that a trace is written to: private, replacing an existing one on request.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapr_files::Existing;

use super::{TraceWriter, write_failed};
use crate::chunk::SAMPLED_FORMAT_VERSION;
use crate::error::{Error, Result};

impl TraceWriter<BufWriter<File>> {
    /// Makes a file of mode 0600 and begins a trace in it. An existing file is an error unless
    /// `overwrite`; a symbolic link always is.
    ///
    /// See [`heapr_files::make`].
    ///
    /// # Errors
    /// Making or writing the file fails.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new(new_file(path, overwrite)?)
    }

    /// Variant of [`TraceWriter::create`] for [`TraceWriter::new_sampled`].
    ///
    /// # Errors
    /// The errors of [`TraceWriter::create`].
    pub fn create_sampled(path: &Path, overwrite: bool) -> Result<Self> {
        Self::new_sampled(new_file(path, overwrite)?)
    }

    /// Turns a trace in which everything is recorded into one of [`TraceWriter::new_sampled`],
    /// because some of its allocations are samples.
    ///
    /// # Errors
    /// Writing the file fails.
    pub fn has_samples(&mut self) -> Result<()> {
        /// Offset of the version, behind the magic.
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

/// Makes only the file, like [`TraceWriter::create`]; for [`TraceWriter::go_on_in`].
///
/// # Errors
/// The errors of [`TraceWriter::create`].
pub fn new_file(path: &Path, overwrite: bool) -> Result<BufWriter<File>> {
    let file = heapr_files::make(path, Existing::replaced_if(overwrite))
        .map_err(|source| Error::Io { action: "making the file", source })?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}
