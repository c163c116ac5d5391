//! Reads a process so that its resident set stays the same.
//!
//! Reading a page of another process that is not in memory brings it there, and its neighbours in
//! the file too. So only resident pages are read; other pages of files are read from disk.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use heapr_glibc_heap::{Error, HeapMemory};
use heapr_inject::StoppedProcess;
use heapr_proc::page_bytes;
use heapr_proc::{Mapping, PageMap, PageState, mappings};

/// Number of pages whose states are read together: walks of a heap ask for a page at a time.
const TOGETHER: u64 = 512;
/// Largest number of such readings that are kept, 4 KiB each.
const KEPT_MAX: usize = 1024;

/// Memory of a process that is read without changing its resident set.
#[derive(Debug)]
pub(super) struct QuietMemory<'a> {
    memory: &'a StoppedProcess,
    /// States of pages; if they cannot be read, all pages count as resident.
    pages: Option<&'a PageMap>,
    /// States of pages that were read before, by the number of their reading.
    kept: RefCell<HashMap<u64, Option<Vec<PageState>>>>,
    mappings: &'a [Mapping],
    /// Open files by name; `None` if a file cannot be opened.
    files: RefCell<HashMap<String, Option<File>>>,
}

impl<'a> QuietMemory<'a> {
    pub(super) fn new(
        memory: &'a StoppedProcess,
        pages: Option<&'a PageMap>,
        mappings: &'a [Mapping],
    ) -> Self {
        Self { memory, pages, kept: RefCell::default(), mappings, files: RefCell::default() }
    }

    /// State of one page; `None` if it cannot be read.
    fn state_of(&self, address_avma: u64) -> Option<PageState> {
        let pages = self.pages?;
        let number = address_avma / page_bytes();
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let first = number / TOGETHER * TOGETHER;
        let states =
            kept.entry(first).or_insert_with(|| pages.pages(first * page_bytes(), TOGETHER as usize));
        match states {
            Some(states) => states.get((number - first) as usize).copied(),
            // The last pages of the address space have fewer behind them.
            None => pages.pages(address_avma, 1)?.first().copied(),
        }
    }

    /// States of a run of pages; `None` if they cannot be read. Short runs come from the readings
    /// before: walks of a heap ask for the same pages a million times.
    fn states(&self, first_avma: u64, count: usize) -> Option<Vec<PageState>> {
        const SHORT: usize = 64;
        if count > SHORT {
            return self.pages?.pages(first_avma, count);
        }
        (0..count as u64).map(|place| self.state_of(first_avma.checked_add(place * page_bytes())?)).collect()
    }

    /// Returns for each range whether all its pages are resident.
    fn present(&self, ranges_avma: &[Range<u64>]) -> Vec<bool> {
        let is_there = |range: &Range<u64>| {
            let from_avma = range.start / page_bytes() * page_bytes();
            let count = range.end.saturating_sub(from_avma).div_ceil(page_bytes()) as usize;
            let states = self.states(from_avma, count);
            states.is_some_and(|states| states.iter().all(|state| state.is_present()))
        };
        ranges_avma.iter().map(is_there).collect()
    }

    /// Reads several pages that are not resident, which may lie in several mappings.
    fn read_absent_pages(&self, address_avma: u64, into: &mut [u8], is_swapped: bool) -> usize {
        let mut done = 0;
        while done < into.len() {
            let from_avma = address_avma + done as u64;
            let to_page_end = (page_bytes() - from_avma % page_bytes()) as usize;
            let length = to_page_end.min(into.len() - done);
            let count = self.read_absent(from_avma, &mut into[done..done + length], is_swapped);
            done += count;
            if count < length {
                break;
            }
        }
        done
    }

    /// Reads a page that is not resident: from its file, or zeros if it was never written.
    fn read_absent(&self, address_avma: u64, into: &mut [u8], is_swapped: bool) -> usize {
        let Some(mapping) = mappings::find(self.mappings, address_avma) else { return 0 };
        if is_swapped || !mapping.is_readable || self.memory.served().holds(address_avma) {
            return 0;
        }
        if mapping.inode == 0 {
            into.fill(0);
            return into.len();
        }
        let mut files = self.files.borrow_mut();
        let file = files
            .entry(mapping.name.clone())
            .or_insert_with(|| self.memory.open(&mapping.name).ok().filter(is_regular));
        let place = address_avma - mapping.start_avma + mapping.file_off;
        file.as_ref().and_then(|file| file.read_at(into, place).ok()).unwrap_or(0)
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.is_file())
}

impl HeapMemory for QuietMemory<'_> {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let first_avma = address_avma / page_bytes() * page_bytes();
        let end_avma = address_avma.saturating_add(into.len() as u64);
        let page_count = (end_avma - first_avma).div_ceil(page_bytes()) as usize;
        let Some(states) = self.states(first_avma, page_count) else {
            return self.memory.read(address_avma, into);
        };
        let mut done = 0;
        // Runs of pages of one kind.
        for run in
            states.chunk_by(|a, b| a.is_present() == b.is_present() && a.is_swapped() == b.is_swapped())
        {
            let from_avma = address_avma + done as u64;
            let run_end_avma =
                (from_avma / page_bytes() * page_bytes()).saturating_add(run.len() as u64 * page_bytes());
            let length = (run_end_avma.min(end_avma) - from_avma) as usize;
            let Some(part) = into.get_mut(done..done + length) else { break };
            let count = if run[0].is_present() {
                self.memory.read(from_avma, part)
            } else if length as u64 > page_bytes() {
                self.read_absent_pages(from_avma, part, run[0].is_swapped())
            } else {
                self.read_absent(from_avma, part, run[0].is_swapped())
            };
            done += count;
            if count < length {
                break;
            }
        }
        done
    }

    fn read_ranges(&self, ranges_avma: &[Range<u64>], into: &mut [u8]) -> Vec<usize> {
        let whole = if self.pages.is_some() { self.present(ranges_avma) } else { Vec::new() };
        let is_whole = |at: usize| whole.get(at).copied().unwrap_or(false);
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        let there: Vec<Range<u64>> =
            (0..ranges_avma.len()).filter(|at| is_whole(*at)).map(|at| ranges_avma[at].clone()).collect();
        let mut packed = vec![0; there.iter().map(length).sum()];
        let mut lengths = self.memory.read_ranges(&there, &mut packed).into_iter();
        let (mut rest, mut packed) = (into, packed.as_slice());
        let read = |(at, range): (usize, &Range<u64>)| {
            let end = length(range).min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(end);
            rest = behind;
            if !is_whole(at) {
                return self.read(range.start, part);
            }
            let (own, others) = packed.split_at(length(range).min(packed.len()));
            packed = others;
            let count = lengths.next().unwrap_or(0).min(part.len()).min(own.len());
            part[..count].copy_from_slice(&own[..count]);
            count
        };
        ranges_avma.iter().enumerate().map(read).collect()
    }

    fn read_words(&self, places: &[u64], words: &mut [Option<u64>]) {
        // Only resident pages are read, many at once.
        self.memory.read_words(places, words);
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(self.mappings.to_vec())
    }

    fn touched_pages(&self, start_avma: u64, page_count: usize) -> Option<Vec<bool>> {
        let states = self.states(start_avma, page_count)?;
        Some(states.iter().map(|state| state.is_present()).collect())
    }

    fn open(&self, path: &str) -> io::Result<File> {
        self.memory.open(path)
    }
}
