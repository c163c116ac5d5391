//! Input of the account.

use heapr_proc::smaps::MappingPages;
use heapr_proc::{PageMap, PageState};

/// Facts of a process.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Mappings, by address.
    pub mappings: Vec<MappingPages>,
    /// Path of the executable.
    pub executable: String,
    /// Stack pointers of the threads, as far as known.
    pub stack_pointers: Vec<u64>,
    /// Whether the program or a library is known to contain Go's runtime.
    pub has_go: bool,
    /// Module that defines malloc, if that is not glibc.
    pub allocator: Option<String>,
    /// Regions of glibc's heap, if known.
    pub malloc: heapr_glibc_heap::Regions,
    /// Ranges that heapr mapped itself, if it records the process; ends are exclusive.
    pub recorder_avma: Vec<(u64, u64)>,
}

/// Source of the states of single pages.
pub trait PageStates {
    /// States of the pages from `start_avma` on; `None` if they cannot be read.
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>>;
}

impl PageStates for PageMap {
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        Self::pages(self, start_avma, page_count)
    }
}

impl<P: PageStates> PageStates for &P {
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        (**self).pages(start_avma, page_count)
    }
}

impl<P: PageStates> PageStates for Option<P> {
    fn pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<PageState>> {
        self.as_ref()?.pages(start_avma, page_count)
    }
}

/// Whether a file or named memory is heapr's own in a process that it records.
pub(crate) fn is_recorders(name: &str) -> bool {
    name.starts_with("/memfd:heapr-pool") || file_name(name).starts_with("heapr-agent-")
}

/// Last part of a path, without the kernel's suffix for deleted files.
pub(crate) fn file_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}
