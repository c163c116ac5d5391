//! Reading the target: what the walk asks of it, and the answer by `process_vm_readv`.

use std::io;
use std::os::unix::fs::FileExt as _;

use super::error::Error;
use crate::maps::{self, Mapping};

/// Reads another process. The walk trusts nothing that comes out of it.
pub trait HeapMemory {
    /// Reads from `address_avma` on into `into` and returns how much could be read, up to the first unreadable page.
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize;

    /// Reads as [`Self::read`] does, into memory that is kept; nothing where there is none.
    fn read_kept(&self, address_avma: u64, most_bytes: usize) -> Option<&[u8]> {
        let _ = (address_avma, most_bytes);
        None
    }

    /// A word that was read before; nothing where it would have to be read.
    fn word_at_hand(&self, address_avma: u64) -> Option<u64> {
        let _ = address_avma;
        None
    }

    /// Reads the words at `places` into `words`, as many; nothing for those that cannot be read. Allocates nothing: the heap that is
    /// looked at may be the own one.
    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        for (place, found) in places.iter().zip(words) {
            let mut word = [0; 8];
            *found = (self.read(*place, &mut word) == word.len()).then(|| u64::from_le_bytes(word));
        }
    }

    /// The mappings as they are now.
    fn mappings(&self) -> Result<Vec<Mapping>, Error>;

    /// For each page from `start_avma` on, whether it was ever touched; nothing where that cannot be known.
    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        let _ = (start_avma, page_count);
        None
    }

    /// Opens the file that `path` means for the target (its mount namespace may be another).
    fn open(&self, path: &str) -> io::Result<std::fs::File>;
}

/// A process of this machine, read with `process_vm_readv`; it should be at rest.
#[derive(Debug)]
pub struct StoppedProcess {
    pid: u32,
    page_map: Option<std::fs::File>,
}

impl StoppedProcess {
    /// The process `pid`; it is only looked at when something is read.
    pub fn of(pid: u32) -> Self {
        Self { pid, page_map: std::fs::File::open(format!("/proc/{pid}/pagemap")).ok() }
    }
}

impl HeapMemory for StoppedProcess {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address_avma as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: `local` describes exactly `into`, which is borrowed mutably for the call; `remote` is an address of
        // another process that the kernel checks.
        let count = unsafe { libc::process_vm_readv(self.pid.cast_signed(), &local, 1, &remote, 1, 0) };
        usize::try_from(count).unwrap_or(0)
    }

    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        /// The ends of all bins of an arena; fewer than `IOV_MAX`.
        const MOST_PIECES: usize = 256;
        words.fill(None);
        let mut done = 0;
        while done < places.len().min(words.len()) {
            let batch = &places[done..places.len().min(words.len()).min(done + MOST_PIECES)];
            let mut found = [0_u64; MOST_PIECES];
            let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 8 }; MOST_PIECES];
            for (piece, place) in remote.iter_mut().zip(batch) {
                piece.iov_base = *place as *mut libc::c_void;
            }
            let local = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: batch.len() * 8 };
            let count = batch.len() as libc::c_ulong;
            // SAFETY: `local` describes no more than `found`, which nobody else uses and whose words may have any value; `remote`
            // are addresses of another process that the kernel checks.
            let read_bytes = unsafe {
                libc::process_vm_readv(self.pid.cast_signed(), &local, 1, remote.as_ptr(), count, 0)
            };
            let whole = usize::try_from(read_bytes).unwrap_or(0) / 8;
            for (word, found) in words[done..].iter_mut().zip(&found[..whole]) {
                *word = Some(u64::from_le(*found));
            }
            // The first that cannot be read ends a call.
            done += if whole < batch.len() { whole + 1 } else { whole };
        }
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        let path = format!("/proc/{}/maps", self.pid);
        maps::read(self.pid).map_err(|source| Error::Mappings { path, source })
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        /// Bits 63 and 62 of an entry: in memory, swapped out.
        const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
        let mut entries = vec![0; page_count * 8];
        let file = self.page_map.as_ref()?;
        file.read_exact_at(&mut entries, start_avma / super::layout::PAGE_BYTES * 8).ok()?;
        let entries = entries.chunks_exact(8).map(|entry| super::layout::word(entry, 0));
        Some(entries.map(|entry| entry & PRESENT_OR_SWAPPED != 0).collect())
    }

    fn open(&self, path: &str) -> io::Result<std::fs::File> {
        std::fs::File::open(format!("/proc/{}/root{path}", self.pid))
    }
}
