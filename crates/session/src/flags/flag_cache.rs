//! Cache of the flags, read again only when a file has changed.

use std::os::unix::fs::MetadataExt as _;

use crate::flags::{FlagScope, Flags};

/// Identity of a file's version: each version replaces the file as a whole.
type Stamp = Option<(u64, i64, i64)>;

/// Cached flags of user and system.
#[derive(Debug, Default)]
pub(crate) struct FlagCache {
    flags: Flags,
    stamps: Option<[Stamp; 2]>,
    error: Option<String>,
}

impl FlagCache {
    /// Whether [`Self::current`] will read the files again.
    pub(crate) fn is_changed(&self) -> bool {
        self.stamps != Some(stamps())
    }

    /// Returns the current flags; the previous ones if they cannot be read.
    pub(crate) fn current(&mut self) -> &Flags {
        let now = stamps();
        if self.stamps != Some(now) {
            self.stamps = Some(now);
            match Flags::load_all() {
                Ok(flags) => (self.flags, self.error) = (flags, None),
                Err(error) => self.error = Some(error.to_string()),
            }
        }
        &self.flags
    }

    /// Returns the error of the last reading, once.
    pub(crate) fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

fn stamps() -> [Stamp; 2] {
    [FlagScope::System, FlagScope::User].map(stamp)
}

fn stamp(scope: FlagScope) -> Stamp {
    let facts = std::fs::metadata(scope.path().ok()?).ok()?;
    Some((facts.ino(), facts.mtime(), facts.mtime_nsec()))
}
