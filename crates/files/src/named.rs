//! Files that have their name before they are complete: those that others read while they grow, and
//! pipes or devices.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::Existing;

/// Makes a file of mode 0600 under its final name, for readers that follow its growth. A symbolic
/// link is an error.
///
/// The new file replaces a regular file. Readers of the old file keep its contents (truncating a
/// mapped file would raise SIGBUS). The old file's permissions do not apply to the new one. If the
/// old file cannot be removed, as in a directory of another user, it is truncated and reused.
///
/// # Errors
/// The operating system's error; or a file exists and is to be kept.
pub fn make(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    match existing {
        Existing::Replaced => {
            // (When a truncated file is closed, ext4 writes it to the disk: 7 ms of clang++'s run.)
            if path.symlink_metadata().is_ok_and(|there| there.is_file()) {
                let _ = std::fs::remove_file(path);
            }
            options.create(true).truncate(true);
        }
        Existing::Kept => {
            options.create_new(true);
        }
    }
    let file = options.open(path)?;
    if file.metadata().is_ok_and(|made| made.is_file() && made.permissions().mode() & 0o077 != 0) {
        // (Some file systems have no modes.)
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Whether a path is written to in place, and never replaced. This holds for a pipe, a device, and
/// the target of a descriptor (`/dev/stdout`, `/dev/fd/3`).
#[must_use]
pub fn is_stream(path: &Path) -> bool {
    let is_other = path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir());
    // (The folder is checked, because the link itself may lead to a file.)
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let is_of_kernel =
        folder.is_some_and(|folder| folder == Path::new("/dev") || folder.starts_with("/proc"));
    // A link elsewhere may belong to another user, who would choose its target.
    let is_link = path.symlink_metadata().is_ok_and(|there| there.is_symlink());
    is_of_kernel || is_other && !is_link
}

/// Opens such a path for writing: see [`is_stream`].
///
/// # Errors
/// The operating system's error.
pub fn stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}
