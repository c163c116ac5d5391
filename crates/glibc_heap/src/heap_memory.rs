//! Access to the target's memory and mappings.

use std::io;
use std::ops::Range;

use super::error::Error;
use heapr_proc::Mapping;

/// Reads another process. The walk trusts nothing that comes out of it.
pub trait HeapMemory {
    /// Reads from `address_avma` into `into`. Returns the number of bytes up to the first
    /// unreadable page.
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize;

    /// Reads as [`Self::read`] does, into storage of the reader. `None` if the reader stores
    /// nothing or has no room.
    fn read_kept(&self, address_avma: u64, most_bytes: usize) -> Option<&[u8]> {
        let _ = (address_avma, most_bytes);
        None
    }

    /// A word that was read before; `None` if it would have to be read.
    fn word_at_hand(&self, address_avma: u64) -> Option<u64> {
        let _ = address_avma;
        None
    }

    /// Reads the words at `places` into `words`, which is as long; `None` for each that cannot be
    /// read. Allocates nothing: the heap may be the reader's own.
    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        for (place, found) in places.iter().zip(words) {
            let mut word = [0; 8];
            *found = (self.read(*place, &mut word) == word.len()).then(|| u64::from_le_bytes(word));
        }
    }

    /// Reads several ranges one behind the other into `into`, which is as long as all of them.
    /// Returns the number of bytes of each range that could be read. An implementation may spend
    /// less than a call per range.
    fn read_ranges(&self, ranges_avma: &[Range<u64>], into: &mut [u8]) -> Vec<usize> {
        let mut rest = into;
        let read = |range: &Range<u64>| {
            let length = usize::try_from(range.end - range.start).unwrap_or(0).min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
            rest = behind;
            self.read(range.start, part)
        };
        ranges_avma.iter().map(read).collect()
    }

    /// Current mappings.
    fn mappings(&self) -> Result<Vec<Mapping>, Error>;

    /// For each page from `start_avma` on, whether it was ever touched; `None` if unknown.
    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        let _ = (start_avma, page_count);
        None
    }

    /// Opens the file at `path` in the target's mount namespace.
    fn open(&self, path: &str) -> io::Result<std::fs::File>;
}
