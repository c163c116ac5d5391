//! `/proc/PID/pagemap`: state of each page.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::first_thread::folder;

/// State of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageState(u64);

impl PageState {
    /// Wraps an entry of the file.
    pub fn from_entry(entry: u64) -> Self {
        Self(entry)
    }

    /// True if the page is in memory. This includes the shared zero page of memory that was read
    /// and never written, which no resident set counts.
    pub fn is_present(self) -> bool {
        self.0 >> 63 & 1 != 0
    }

    /// True if the page is swapped out.
    pub fn is_swapped(self) -> bool {
        self.0 >> 62 & 1 != 0
    }

    /// True if the page belongs to a file or to shared memory.
    pub fn is_of_file(self) -> bool {
        self.0 >> 61 & 1 != 0
    }

    /// True if only this process maps the page. False for the shared zero page.
    pub fn is_exclusive(self) -> bool {
        self.0 >> 56 & 1 != 0
    }
}

/// The opened file.
#[derive(Debug)]
pub struct PageMap {
    file: File,
    page_bytes: u64,
}

impl PageMap {
    /// Opens the page map of a process.
    ///
    /// # Errors
    /// Returns an error if the process is gone, may not be read, or the kernel has no such file.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let file = File::open(folder(pid).join("pagemap"))?;
        Ok(Self { file, page_bytes: rustix::param::page_size() as u64 })
    }

    /// Reads the pages from `start_avma` on; `None` if they cannot be read.
    pub fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        let mut bytes = vec![0; page_count.checked_mul(8)?];
        self.file.read_exact_at(&mut bytes, (start_avma / self.page_bytes).checked_mul(8)?).ok()?;
        let entries = bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry));
        Some(entries.map(PageState::from_entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_written_is_present_and_one_that_never_was_is_not() {
        let page_bytes = rustix::param::page_size();
        let mut memory = vec![0_u8; 64 * page_bytes];
        let first = (memory.as_ptr() as usize).next_multiple_of(page_bytes) - memory.as_ptr() as usize;
        memory[first] = 1;
        let avma = (memory.as_ptr() as usize + first) as u64;
        let Ok(own) = PageMap::of_process(std::process::id()) else {
            panic!("no page map of the own process")
        };
        let pages = own.pages(avma, 40).unwrap();
        assert!(pages[0].is_present() && pages[0].is_exclusive() && !pages[0].is_of_file());
        assert!(!pages[30].is_swapped());
        assert!(own.pages(u64::MAX, 1).is_none());
    }
}
