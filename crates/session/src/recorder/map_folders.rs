//! Folders in which processes write the names of code that they make: whether a file of such a name
//! has come into one of them, so that nobody need look for it again and again.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Folders that are watched: containers have their own.
const FOLDERS_MAX: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct MapFolders {
    /// `None`: nothing was asked for yet, or the kernel gives none.
    watch: Option<OwnedFd>,
    /// By the kernel's number: a folder that is watched already has the same.
    watched: Vec<i32>,
    /// One could not be watched.
    has_failed: bool,
    news: u64,
}

impl MapFolders {
    /// Watches folders from now on, if they are not yet.
    pub(crate) fn watch(&mut self, folders: &[PathBuf]) {
        if self.watch.is_none() && !self.has_failed {
            self.watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        }
        let Some(watch) = &self.watch else {
            self.has_failed = true;
            return;
        };
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        for folder in folders {
            match inotify::add_watch(watch, folder, flags) {
                Ok(number) if self.watched.contains(&number) => {}
                Ok(number) if self.watched.len() < FOLDERS_MAX => self.watched.push(number),
                // A folder that is not there gets no file.
                Err(rustix::io::Errno::NOENT) => {}
                _ => self.has_failed = true,
            }
        }
    }

    /// A number that is another one when a map has come since; `None`: it cannot be told.
    pub(crate) fn news(&mut self) -> Option<u64> {
        let watch = self.watch.as_ref().filter(|_| !self.has_failed)?;
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(watch, &mut room);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
            let is_map = name.starts_with(b"perf-") && name.ends_with(b".map");
            // More has come than the kernel keeps.
            if is_map || event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.news += 1;
            }
        }
        Some(self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_comes_is_news_and_no_other_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut folders = MapFolders::default();
        assert_eq!(folders.news(), None);
        folders.watch(&[folder.path().to_owned(), folder.path().join("none")]);
        if folders.news().is_none() {
            heapr_testkit::not_run("no folder can be watched here");
            return;
        }
        let before = folders.news();
        std::fs::write(folder.path().join("other"), "").unwrap();
        assert_eq!(folders.news(), before);
        std::fs::write(folder.path().join("perf-1.map"), "").unwrap();
        assert_ne!(folders.news(), before);
        let before = folders.news();
        assert_eq!(folders.news(), before);
        std::fs::rename(folder.path().join("other"), folder.path().join("perf-2.map")).unwrap();
        assert_ne!(folders.news(), before);
    }
}
