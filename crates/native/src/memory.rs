//! Access to the memory of a process.

use heapr_proc::{CoreFile, Mapping};

/// The memory of a stopped process, or of a copy of it.
pub trait Memory {
    /// Reads from `address_avma` into `into`. Returns the number of bytes up to the first
    /// unreadable page.
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize;

    /// Start and bytes of the piece around an address that is in heapr's own memory already; `None`
    /// if the address must be read.
    fn piece_at(&self, address_avma: u64) -> Option<(u64, &[u8])> {
        let _ = address_avma;
        None
    }

    /// Parts of a mapping, in whole pages, that the program may have written; `None` if unknown. An
    /// unchanged page of a file holds no pointer.
    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        let _ = (start_avma, end_avma);
        None
    }

    /// Parts of a shared mapping, in whole pages, that are in memory. Reading other pages would
    /// allocate them.
    fn shared_parts(&self, mapping: &Mapping) -> Vec<(u64, u64)> {
        vec![(mapping.start_avma, mapping.end_avma)]
    }

    /// Reads a word.
    fn word(&self, address_avma: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address_avma, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }
}

/// Memory of a process that has ended, from its core file.
impl Memory for CoreFile {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.read_memory(address_avma, into)
    }

    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        Some(self.kept_parts(start_avma, end_avma))
    }
}
