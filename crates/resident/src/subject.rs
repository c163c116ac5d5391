//! What the account is made from.

use heapr_proc::smaps::MappingPages;
use heapr_proc::{PageMap, PageState};

/// A process as it was read.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Its mappings, by address.
    pub mappings: Vec<MappingPages>,
    /// The file that it runs.
    pub executable: String,
    /// Its threads' stack pointers, as far as they are known.
    pub stack_pointers: Vec<u64>,
    /// The module that has malloc, where that is not glibc.
    pub allocator: Option<String>,
    /// Where glibc's heap lies, if it is known.
    pub malloc: heapr_glibc_heap::Regions,
    /// What heapr has mapped there itself, if it records the process: from, and behind the last.
    pub recorder_avma: Vec<(u64, u64)>,
}

/// Where the states of single pages come from.
pub trait PageStates {
    /// The pages from `start_avma` on; nothing where they cannot be read.
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

/// Whether a file, or memory with a name, is heapr's own in a process that it records.
pub(crate) fn is_recorders(name: &str) -> bool {
    name.starts_with("/memfd:heapr-pool") || file_name(name).starts_with("heapr-agent-")
}

/// The last part of a path, without the kernel's note on deleted files.
pub(crate) fn file_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}
