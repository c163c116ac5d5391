//! Fuzzes the memory of a process with another allocator, whose tables may hold anything.
#![no_main]

use heapr_glibc_heap::{Error, HeapMemory};
use heapr_proc::smaps::{self, MappingPages};
use heapr_proc::{Mapping, PageMap};
use heapr_resident::{Account, Subject};
use libfuzzer_sys::fuzz_target;

/// Memory that repeats the input, so that each table is found somewhere.
struct Repeated<'a>(&'a [u8]);

impl HeapMemory for Repeated<'_> {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = self.0[(address_avma as usize).wrapping_add(at) % self.0.len()];
        }
        into.len()
    }

    fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(Vec::new())
    }

    fn open(&self, _path: &str) -> std::io::Result<std::fs::File> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

const MAPPINGS: &[u8] = b"10000-20000 rw-p 00000000 00:01 12 /lib/liballocator.so\nRss: 64 kB\n\
    20000-240000 rw-p 00000000 00:00 0\nRss: 64 kB\n\
    2000000-4100000 rw-p 00000000 00:00 0\nRss: 4096 kB\n";

fn mappings() -> Vec<MappingPages> {
    smaps::parse(MAPPINGS).unwrap_or_default()
}

fuzz_target!(|bytes: &[u8]| {
    if bytes.is_empty() {
        return;
    }
    let subject = Subject { mappings: mappings(), ..Subject::default() };
    let account = Account::of(&subject, &Repeated(bytes), &None::<PageMap>);
    let sum: u64 = account.lines().iter().map(|line| line.pages.rss_bytes).sum();
    assert_eq!(sum, account.pages.rss_bytes);
});
