//! Size of a page of this kernel.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::arch::{PAGE_SIZES, call_numbers};

use crate::forbidden_calls::permitted_syscall;

/// Returns the size of a page in bytes, a power of two. The kernel is asked once, if the processor
/// has several sizes.
#[inline]
#[must_use]
pub fn page_bytes() -> usize {
    let bytes = if let [only] = PAGE_SIZES { *only } else { asked_once() };
    // Not 0 for any value, so that no division by it can fail.
    1_usize.wrapping_shl(bytes.trailing_zeros())
}

/// Returns the last beginning of a page at or before an address.
#[inline]
#[must_use]
pub fn page_begin(address: usize) -> usize {
    address & !page_bytes().wrapping_sub(1)
}

/// Returns the first beginning of a page at or after an address.
#[inline]
#[must_use]
pub fn page_end(address: usize) -> usize {
    page_begin(address.wrapping_add(page_bytes().wrapping_sub(1)))
}

fn asked_once() -> usize {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let known = ASKED.load(Relaxed);
    if known != 0 {
        return known;
    }
    let asked = smallest_accepted(PAGE_SIZES);
    ASKED.store(asked, Relaxed);
    asked
}

/// Returns the first size of which the kernel says that it is whole pages. If the program may not
/// make the call, that is the smallest size.
fn smallest_accepted(sizes: &[usize]) -> usize {
    let accepted = sizes.iter().copied().find(|&bytes| !is_refused(bytes));
    accepted.or(sizes.first().copied()).unwrap_or(1)
}

/// True if the kernel refuses an address because it is not the beginning of a page.
fn is_refused(address: usize) -> bool {
    const MS_ASYNC: usize = 1;
    const EINVAL: isize = -22;
    // SAFETY: `msync` of no bytes changes nothing.
    unsafe { permitted_syscall(call_numbers::MSYNC, [address, 0, MS_ASYNC, 0, 0, 0]) == EINVAL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_large_a_page_is() {
        let page = page_bytes();
        assert!(PAGE_SIZES.contains(&page) && page == asked_once());
        // The kernel is asked here whatever sizes the processor has.
        assert_eq!(smallest_accepted(&[page / 4, page / 2, page, page * 4]), page);
        assert!(is_refused(page / 2) && !is_refused(page) && !is_refused(page * 4));
        for (address, begin, end) in
            [(0, 0, 0), (1, 0, page), (page, page, page), (page * 2 - 1, page, page * 2)]
        {
            assert_eq!((page_begin(address), page_end(address)), (begin, end));
        }
    }
}
