//! Fuzzes the kernel's lists of mappings and of mounts.
#![no_main]

use heapr_proc::{mounts, smaps};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for found in smaps::parse(bytes).into_iter().flatten() {
        let (written, rest) = found.pages.divided_by_writing();
        let mut sum = written;
        sum.add(&rest);
        assert_eq!(sum.rss_bytes, found.pages.rss_bytes);
    }
    let _ = mounts::parse(bytes);
});
