//! Names that a file cannot be put under when it is whole: what others read as it grows, and what
//! is no file.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::Existing;

/// Makes a file of mode 0600 at once under its name, for those who read it as it grows. A symbolic
/// link is not followed: it is an error.
///
/// The new file takes the place of a regular one that is there: whoever reads that one keeps what
/// he has (a page that is cut off under a mapping is a SIGBUS), and whoever may read that one may
/// not read this. Where a new one cannot be made, as in a directory that is not the user's, the old
/// one is cut off and written to.
///
/// # Errors
/// The operating system's; there is something, and it is to be kept.
pub fn make(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    match existing {
        Existing::Replaced => {
            // (ext4 writes a file that was cut off to the disk when it is closed: 7 ms of clang++'s
            // run.)
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

/// Whether something is written to as it is, and never replaced: a pipe, a device, or whatever a
/// descriptor leads to (`/dev/stdout`, `/dev/fd/3`).
#[must_use]
pub fn is_stream(path: &Path) -> bool {
    let is_other = path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir());
    // (Its folder, as the link itself may lead to a file.)
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let is_of_kernel =
        folder.is_some_and(|folder| folder == Path::new("/dev") || folder.starts_with("/proc"));
    // What a link of a folder that all may write leads to is for that one's owner to say.
    let is_link = path.symlink_metadata().is_ok_and(|there| there.is_symlink());
    is_of_kernel || is_other && !is_link
}

/// Opens such a thing to be written.
///
/// # Errors
/// The operating system's.
pub fn stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}
