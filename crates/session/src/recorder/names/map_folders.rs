//! Watches the folders in which processes write the names of JIT code for new files, so that they
//! need not be searched again and again.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Largest number of watched folders: containers have their own.
const FOLDERS_MAX: usize = 64;

/// Watch on such folders.
#[derive(Debug, Default)]
pub(crate) struct MapFolders {
    /// inotify descriptor; `None` before the first folder, or if the kernel gives none.
    watch: Option<OwnedFd>,
    /// Watch descriptors; the kernel returns the same one for a folder that is already watched.
    watched: Vec<i32>,
    /// True if a folder could not be watched.
    has_failed: bool,
    news: u64,
}

impl MapFolders {
    /// Watches folders that are not watched yet.
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
                // A missing folder gets no file.
                Err(rustix::io::Errno::NOENT) => {}
                _ => self.has_failed = true,
            }
        }
    }

    /// Returns a counter that changes when a new map file appears; `None` if the watch does not
    /// work.
    pub(crate) fn news(&mut self) -> Option<u64> {
        let watch = self.watch.as_ref().filter(|_| !self.has_failed)?;
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(watch, &mut room);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
            let is_map = name.starts_with(b"perf-") && name.ends_with(b".map");
            // On overflow a map may be among the dropped events.
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
