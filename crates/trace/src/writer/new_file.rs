//! The file that a trace is written to: private, and in the place of what was there.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::{TraceWriter, write_failed};
use crate::chunk::SAMPLED_FORMAT_VERSION;
use crate::error::{Error, Result};

impl TraceWriter<BufWriter<File>> {
    /// Makes a file of mode 0600 and begins it. An existing one is an error unless `overwrite`; a
    /// symbolic link is one always.
    ///
    /// A new file takes the place of a regular one that is there: whoever reads that one keeps what
    /// he has (a page that is cut off under a mapping is a SIGBUS), and whoever may read that
    /// one may not read this. Where a new one cannot be made, as in a directory that is not the
    /// user's, the old one is cut off and written to.
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
    const O_NOFOLLOW: i32 = 0o400_000;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(O_NOFOLLOW);
    if overwrite {
        // (ext4 writes a file that was cut off to the disk when it is closed: 7 ms of clang++'s
        // run.)
        if path.symlink_metadata().is_ok_and(|there| there.is_file()) {
            let _ = std::fs::remove_file(path);
        }
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let file = options.open(path).map_err(|source| Error::Io { action: "making the file", source })?;
    if file.metadata().is_ok_and(|made| made.is_file() && made.permissions().mode() & 0o077 != 0) {
        // (Some file systems have no modes.)
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(BufWriter::with_capacity(1 << 18, file))
}
