//! Large pages for large arrays of heapr itself.
//!
//! Analyses of graphs jump about in arrays of hundreds of megabytes. With pages of 4 KiB each jump
//! misses the processor's table of addresses, and the first touch of each page costs a fault.

/// Size from which a block is a mapping of its own: the C library raises its bound up to here.
const LARGE_BYTES: usize = 33 << 20;
/// Size of a large page, and of the parts that are asked for.
const PAGE_BYTES: usize = 2 << 20;

/// Asks the kernel for large pages in the inner part of a large block. It may refuse.
#[inline]
pub(crate) fn advise(block: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LARGE_BYTES && !block.is_null() {
        advise_inner(block, bytes);
    }
    block
}

#[cold]
fn advise_inner(block: *mut u8, bytes: usize) {
    let skipped = block.align_offset(PAGE_BYTES);
    let inner_bytes = bytes.saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the range is within the block. The advice changes no contents.
    unsafe { libc::madvise(block.wrapping_add(skipped).cast(), inner_bytes, libc::MADV_HUGEPAGE) };
}
