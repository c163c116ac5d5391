//! Memory of a stopped process, for reading its heap.
//!
//! After a fork, two processes share a page until one writes to it. `process_vm_readv` gives the
//! process that is read its own copy of such a page (Linux 5.19), which costs memory. Reading
//! `/proc/PID/mem` does not.
//!
//! Whole pages and more, and all data of a copy, are thus read from the file. It is as fast for
//! large pieces: a gigabyte in 0.3 s, and not in 1.1 from a copy. A single page takes 1.9 us, and
//! 2.8 by `process_vm_readv` (Linux 6.18). Single words, and data within a page, are read
//! by `process_vm_readv` in the pause of an attach. Examples are heads of arenas and of large
//! blocks, thread descriptors, and tables of modules: few pages, most of them written. The
//! exception is the search for large blocks, which reads a word of each page of anonymous memory
//! outside of heaps. One by one, that would take four times as long in the pause.
//!
//! If a program supplies pages itself ([`ServedMemory`]), no read may wait for it. Reading
//! `/proc/PID/mem` fails at a missing userfaultfd page instead of waiting. Pages of a mapped file
//! that are not in memory are not read if the process may itself serve the file.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use crate::written_pages::{data_parts, present_parts, written_parts};
use heapr_glibc_heap::{Error, HeapMemory};
use heapr_proc::mappings;
use heapr_proc::page_bytes;
use heapr_proc::{Mapping, ServedMemory};

/// A process of this machine; it should be stopped.
#[derive(Debug)]
pub struct StoppedProcess {
    pid: u32,
    /// Whether all pages of the process are shared with another process.
    is_copy: bool,
    memory: Option<std::fs::File>,
    page_map: Option<std::fs::File>,
    /// Served memory, found at the first read.
    served: OnceLock<ServedMemory>,
    looks_thoroughly: bool,
}

impl StoppedProcess {
    /// Opens the process `pid`; further facts are read on demand.
    pub fn of(pid: u32) -> Self {
        let pid = heapr_proc::telling_thread(pid);
        let open = |name: &str| std::fs::File::open(format!("/proc/{pid}/{name}")).ok();
        let (memory, page_map) = (open("mem"), open("pagemap"));
        Self { pid, is_copy: false, memory, page_map, served: OnceLock::new(), looks_thoroughly: false }
    }

    /// Opens the process `pid`, which will be stopped while it is read. Its served memory is found
    /// at once, while it runs.
    pub fn about_to_stop(pid: u32) -> Self {
        let process = Self { looks_thoroughly: true, ..Self::of(pid) };
        process.served();
        process
    }

    /// Opens the process `pid`, which is a copy of another one.
    pub fn copy(pid: u32) -> Self {
        // A fork's memory has no userfaultfd; otherwise the copy would not have been made.
        Self { is_copy: true, served: OnceLock::from(ServedMemory::default()), ..Self::of(pid) }
    }

    /// Memory of the process whose pages a program supplies.
    pub fn served(&self) -> &ServedMemory {
        self.served.get_or_init(|| ServedMemory::of(self.pid, self.looks_thoroughly))
    }

    /// Reads memory like [`HeapMemory::read`], for a process with served memory: only pages that
    /// exist are read.
    fn read_there(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let mut wanted = into.len();
        if self.served().is_of_file(address_avma) {
            let end_avma = address_avma.saturating_add(wanted as u64).next_multiple_of(page_bytes());
            let start_avma = address_avma / page_bytes() * page_bytes();
            let there = self.page_map.as_ref().and_then(|map| present_parts(map, start_avma, end_avma));
            let first = there.and_then(|parts| parts.first().copied());
            match first.filter(|&(part_avma, _)| part_avma <= address_avma) {
                Some((_, part_end_avma)) => wanted = wanted.min((part_end_avma - address_avma) as usize),
                None => return 0,
            }
        }
        let read = self.memory.as_ref().map(|file| file.read_at(&mut into[..wanted], address_avma));
        read.and_then(Result::ok).unwrap_or(0)
    }

    /// Reads memory like [`HeapMemory::read`], without making shared pages the process's own.
    fn read_shared(&self, address_avma: u64, into: &mut [u8]) -> Option<usize> {
        let file = self.memory.as_ref().filter(|_| self.is_copy || into.len() as u64 >= page_bytes())?;
        file.read_at(into, address_avma).ok().filter(|&count| count > 0)
    }

    /// Id of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Parts of a private mapping that the process may have written; `None` if unknown.
    pub fn written_parts(&self, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
        written_parts(self.page_map.as_ref()?, start_avma, end_avma)
    }

    /// Parts of a shared mapping that have content; reading others would create pages, or wait for
    /// a program that supplies them. If unknown, all of the mapping.
    pub fn shared_parts(&self, mapping: &Mapping) -> Vec<(u64, u64)> {
        let &Mapping { start_avma, end_avma, .. } = mapping;
        if self.served().holds(start_avma) {
            let there = self.page_map.as_ref().and_then(|map| present_parts(map, start_avma, end_avma));
            return there.unwrap_or_default();
        }
        data_parts(self.pid, mapping).unwrap_or_else(|| vec![(start_avma, end_avma)])
    }
}

impl HeapMemory for StoppedProcess {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        if self.served().is_any() {
            return self.read_there(address_avma, into);
        }
        if let Some(count) = self.read_shared(address_avma, into) {
            return count;
        }
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address_avma as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: `local` describes exactly `into`, which is borrowed mutably for the call;
        // `remote` is an address of another process that the kernel checks.
        let count = unsafe { libc::process_vm_readv(self.pid.cast_signed(), &local, 1, &remote, 1, 0) };
        usize::try_from(count).unwrap_or(0)
    }

    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        /// Largest number of words in one call: the ends of all bins of an arena; below `IOV_MAX`.
        const MOST_PIECES: usize = 256;
        words.fill(None);
        if self.is_copy || self.served().is_any() {
            for (place, found) in places.iter().zip(words) {
                let mut word = [0; 8];
                *found = (self.read(*place, &mut word) == word.len()).then(|| u64::from_le_bytes(word));
            }
            return;
        }
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
            // SAFETY: `local` describes no more than `found`, which is exclusive to this function
            // and whose words may have any value. `remote` are addresses of another process that
            // the kernel checks.
            let read_bytes = unsafe {
                libc::process_vm_readv(self.pid.cast_signed(), &local, 1, remote.as_ptr(), count, 0)
            };
            let whole = usize::try_from(read_bytes).unwrap_or(0) / 8;
            for (word, found) in words[done..].iter_mut().zip(&found[..whole]) {
                *word = Some(u64::from_le(*found));
            }
            // The call ends at the first word that cannot be read.
            done += if whole < batch.len() { whole + 1 } else { whole };
        }
    }

    fn read_ranges(&self, ranges_avma: &[Range<u64>], into: &mut [u8]) -> Vec<usize> {
        // The ranges are read one by one, although one call would be faster. They may touch as many
        // pages as the process has (the head of each of an interpreter's pools).
        let mut rest = into;
        let read = |range: &Range<u64>| {
            let length = usize::try_from(range.end - range.start).unwrap_or(0).min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
            rest = behind;
            match self.memory.as_ref().filter(|_| self.served().files.is_empty()) {
                Some(file) => file.read_at(part, range.start).unwrap_or(0),
                None => self.read(range.start, part),
            }
        };
        ranges_avma.iter().map(read).collect()
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        let path = format!("/proc/{}/maps", self.pid);
        mappings::read(self.pid).map_err(|source| Error::Mappings { path, source })
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        /// Bits 63 and 62 of an entry: in memory, swapped out.
        const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
        let mut entries = vec![0; page_count * 8];
        let file = self.page_map.as_ref()?;
        file.read_exact_at(&mut entries, start_avma / page_bytes() * 8).ok()?;
        let entries = entries.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry));
        Some(entries.map(|entry| entry & PRESENT_OR_SWAPPED != 0).collect())
    }

    fn open(&self, path: &str) -> io::Result<std::fs::File> {
        std::fs::File::open(format!("/proc/{}/root{path}", self.pid))
    }
}
