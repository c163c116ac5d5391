//! Size of a page.

use std::sync::OnceLock;

/// Size in bytes of a page of this machine's kernel: 4 to 64 KiB.
#[must_use]
#[inline]
pub fn page_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| rustix::param::page_size() as u64)
}
