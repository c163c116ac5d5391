//! `/proc/PID/smaps`: mappings with their resident memory. The exact source of a resident set.

use std::io::{self, BufRead as _, BufReader};

use crate::first_thread::folder;
use crate::mappings::{Mapping, parse_line};

/// A mapping and its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingPages {
    /// The mapping.
    pub mapping: Mapping,
    /// Amounts of memory in the mapping.
    pub pages: PageAmounts,
}

/// Amounts that the kernel counts in a mapping, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageAmounts {
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory, each page divided by the number of its users.
    pub pss_bytes: u64,
    /// Resident, also used by other processes, unmodified.
    pub shared_clean_bytes: u64,
    /// Resident, also used by other processes, written.
    pub shared_dirty_bytes: u64,
    /// Resident, used by this process alone, unmodified.
    pub private_clean_bytes: u64,
    /// Resident, used by this process alone, written.
    pub private_dirty_bytes: u64,
    /// Memory without a file; in a private mapping of a file the written pages.
    pub anonymous_bytes: u64,
    /// Lazily freed memory (`MADV_FREE`): resident until the kernel needs it.
    pub lazily_freed_bytes: u64,
    /// Anonymous memory in huge pages.
    pub anonymous_huge_bytes: u64,
    /// Files and shared memory in huge pages.
    pub mapped_huge_bytes: u64,
    /// Reserved huge pages (hugetlbfs), which no resident set counts.
    pub reserved_huge_bytes: u64,
    /// Swapped-out memory.
    pub swapped_bytes: u64,
    /// Memory locked in RAM.
    pub locked_bytes: u64,
}

impl PageAmounts {
    /// Resident memory that other processes use too.
    pub fn shared_bytes(&self) -> u64 {
        self.shared_clean_bytes.saturating_add(self.shared_dirty_bytes)
    }

    /// Memory of the process's own: without a file or written, resident or swapped out.
    pub fn own_bytes(&self) -> u64 {
        self.anonymous_bytes.saturating_add(self.swapped_bytes)
    }

    /// Divides a private file mapping into its written pages and the rest.
    pub fn divided_by_writing(&self) -> (Self, Self) {
        let rss_bytes = self.anonymous_bytes.min(self.rss_bytes);
        // Written pages that a fork has left in two processes count as shared.
        let private_dirty_bytes = self.private_dirty_bytes.min(rss_bytes);
        let shared_dirty_bytes = self.shared_dirty_bytes.min(rss_bytes - private_dirty_bytes);
        let written = Self {
            rss_bytes,
            pss_bytes: rss_bytes.min(self.pss_bytes),
            private_dirty_bytes,
            shared_dirty_bytes,
            anonymous_bytes: self.anonymous_bytes,
            lazily_freed_bytes: self.lazily_freed_bytes,
            anonymous_huge_bytes: self.anonymous_huge_bytes,
            swapped_bytes: self.swapped_bytes,
            ..Self::default()
        };
        let rest = Self {
            rss_bytes: self.rss_bytes - rss_bytes,
            pss_bytes: self.pss_bytes - written.pss_bytes,
            private_dirty_bytes: self.private_dirty_bytes - private_dirty_bytes,
            shared_dirty_bytes: self.shared_dirty_bytes - shared_dirty_bytes,
            anonymous_bytes: 0,
            lazily_freed_bytes: 0,
            anonymous_huge_bytes: 0,
            swapped_bytes: 0,
            ..*self
        };
        (written, rest)
    }

    /// Adds the amounts of another mapping.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.rss_bytes, other.rss_bytes),
            (&mut self.pss_bytes, other.pss_bytes),
            (&mut self.shared_clean_bytes, other.shared_clean_bytes),
            (&mut self.shared_dirty_bytes, other.shared_dirty_bytes),
            (&mut self.private_clean_bytes, other.private_clean_bytes),
            (&mut self.private_dirty_bytes, other.private_dirty_bytes),
            (&mut self.anonymous_bytes, other.anonymous_bytes),
            (&mut self.lazily_freed_bytes, other.lazily_freed_bytes),
            (&mut self.anonymous_huge_bytes, other.anonymous_huge_bytes),
            (&mut self.mapped_huge_bytes, other.mapped_huge_bytes),
            (&mut self.reserved_huge_bytes, other.reserved_huge_bytes),
            (&mut self.swapped_bytes, other.swapped_bytes),
            (&mut self.locked_bytes, other.locked_bytes),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }

    fn set(&mut self, name: &[u8], bytes: u64) {
        let amount = match name {
            b"Rss" => &mut self.rss_bytes,
            b"Pss" => &mut self.pss_bytes,
            b"Shared_Clean" => &mut self.shared_clean_bytes,
            b"Shared_Dirty" => &mut self.shared_dirty_bytes,
            b"Private_Clean" => &mut self.private_clean_bytes,
            b"Private_Dirty" => &mut self.private_dirty_bytes,
            b"Anonymous" => &mut self.anonymous_bytes,
            b"LazyFree" => &mut self.lazily_freed_bytes,
            b"AnonHugePages" => &mut self.anonymous_huge_bytes,
            b"ShmemPmdMapped" | b"FilePmdMapped" => &mut self.mapped_huge_bytes,
            b"Shared_Hugetlb" | b"Private_Hugetlb" => &mut self.reserved_huge_bytes,
            b"Swap" => &mut self.swapped_bytes,
            b"Locked" => &mut self.locked_bytes,
            _ => return,
        };
        // Two of the amounts are sums of two lines.
        *amount = amount.saturating_add(bytes);
    }
}

/// Reads the mappings of a process with their amounts, ordered by address.
///
/// # Errors
/// Returns an error if the process is gone or may not be read.
pub fn read(pid: u32) -> io::Result<Vec<MappingPages>> {
    parse(BufReader::with_capacity(256 << 10, std::fs::File::open(folder(pid).join("smaps"))?))
}

/// Parses the file's content.
///
/// # Errors
/// Returns an error if the content cannot be read.
pub fn parse(mut text: impl io::BufRead) -> io::Result<Vec<MappingPages>> {
    /// Largest length of a line in bytes. The kernel's longest path is shorter; the rest of a
    /// longer line counts as another line.
    const MOST_LINE_BYTES: u64 = 64 << 10;
    let mut found: Vec<MappingPages> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if io::Read::take(&mut text, MOST_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(found);
        }
        // Names of amounts begin with a capital letter, addresses with a small letter or a digit.
        if line.first().is_some_and(u8::is_ascii_uppercase) {
            if let (Some((name, bytes)), Some(last)) = (amount(&line), found.last_mut()) {
                last.pages.set(name, bytes);
            }
        } else if let Some(mapping) = parse_line(line.strip_suffix(b"\n").unwrap_or(&line)) {
            found.push(MappingPages { mapping, pages: PageAmounts::default() });
        }
    }
}

/// Parses `Name:   12 kB`.
fn amount(line: &[u8]) -> Option<(&[u8], u64)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, rest) = line.split_at(colon);
    let digits = rest[1..].trim_ascii_start().strip_suffix(b" kB\n")?;
    let add = |number: u64, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    Some((name, digits.iter().try_fold(0, add)?.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_belong_to_the_mapping_above_them() {
        let text = b"Rss: 4 kB\n\
            7f00-8f00 rw-s 00000000 00:01 12       /a b (deleted)\nSize:    4 kB\nRss:    12 kB\nPss:    6 kB\n\
            ShmemPmdMapped: 2 kB\nFilePmdMapped: 3 kB\nVmFlags: rd wr\nTHPeligible:    0\n\
            9f00-af00 rw-p 00000000 00:00 0\nRss: 99999999999999999999 kB\nAnonymous: x kB\nSwap: 8 kB\nbroken\n";
        let found = parse(text.as_slice()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].mapping.name.as_str(), found[0].pages.rss_bytes), ("/a b (deleted)", 12 << 10));
        assert_eq!((found[0].pages.pss_bytes, found[0].pages.mapped_huge_bytes), (6 << 10, 5 << 10));
        assert_eq!((found[1].pages.rss_bytes, found[1].pages.swapped_bytes), (0, 8 << 10));
        assert_eq!(found[1].mapping.name, "");
    }

    #[test]
    fn the_mappings_of_this_process_are_those_of_maps_and_hold_its_resident_set() {
        let own = read(std::process::id()).unwrap();
        let stack = own.iter().find(|found| found.mapping.name == "[stack]").unwrap();
        assert!(stack.pages.rss_bytes > 0 && stack.pages.anonymous_bytes == stack.pages.rss_bytes);
        let sum: u64 = own.iter().map(|found| found.pages.rss_bytes).sum();
        assert!(sum > 100_000);
        assert!(read(u32::MAX).is_err());
    }
}
