//! The flags as their files have them now, read again only when a file has changed.

use std::os::unix::fs::MetadataExt as _;

use crate::flags::{FlagScope, Flags};

/// What tells that a file is another than before: it is replaced as a whole.
type Stamp = Option<(u64, i64, i64)>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FlagCache {
    flags: Flags,
    stamps: Option<[Stamp; 2]>,
    error: Option<String>,
}

impl FlagCache {
    /// Whether [`Self::current`] will read them.
    pub(crate) fn is_changed(&self) -> bool {
        self.stamps != Some(stamps())
    }

    /// The flags now; those of before where they cannot be read.
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

    /// Why they could not be read, once.
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
