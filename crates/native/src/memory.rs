//! Reading the process: what the scan asks of it.

use heapr_proc::{CoreFile, Mapping};

/// The memory of a process that stands still, or of a copy of it.
pub trait Memory {
    /// Reads from `address_avma` on into `into` and returns how much could be read, up to the first
    /// unreadable page.
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize;

    /// The parts of a mapping, in whole pages, that may hold what the program has written: `None`
    /// where that cannot be told. A page of a file that nobody has changed holds no pointer.
    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        let _ = (start_avma, end_avma);
        None
    }

    /// The parts of a shared mapping, in whole pages, that hold anything: reading others would make
    /// pages of them.
    fn shared_parts(&self, mapping: &Mapping) -> Vec<(u64, u64)> {
        vec![(mapping.start_avma, mapping.end_avma)]
    }

    /// A word.
    fn word(&self, address_avma: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address_avma, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }
}

/// Of a process that is gone.
impl Memory for CoreFile {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        self.read_memory(address_avma, into)
    }

    fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        Some(self.kept_parts(start_avma, end_avma))
    }
}
