//! Numbers of the functions by which a program requests and releases memory. Each event's stack
//! word names the function that was called.
//!
//! ```text
//!  63            36 35       28 27                 0
//! +----------------+-----------+--------------------+
//! | size (28)      | called (8)| node (28)          |      size: of an allocation that is not big
//! +----------------+-----------+--------------------+
//!                   <------ a stack word ---------->
//! ```
//! `malloc` is number 0, so that the most frequent call costs its hook nothing.

/// All functions, each at the index of its number: first those that the agent exports, then those
/// of allocator libraries.
pub const CALLED: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "sbrk",
    "brk",
    "heapr_heap_create",
    "heapr_heap_destroy",
    "heapr_heap_alloc",
    "heapr_heap_resize",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    "mallocx",
    "rallocx",
    "xallocx",
    "sdallocx",
    "dallocx",
    "je_malloc",
    "je_calloc",
    "je_realloc",
    "je_free",
    "je_memalign",
    "je_aligned_alloc",
    "je_posix_memalign",
    "je_mallocx",
    "je_rallocx",
    "je_xallocx",
    "je_sdallocx",
    "je_dallocx",
    "tc_new",
    "tc_new_nothrow",
    "tc_newarray",
    "tc_newarray_nothrow",
    "tc_new_aligned",
    "tc_new_aligned_nothrow",
    "tc_newarray_aligned",
    "tc_newarray_aligned_nothrow",
    "tc_malloc",
    "tc_malloc_skip_new_handler",
    "tc_free",
    "tc_free_sized",
    "tc_cfree",
    "tc_realloc",
    "tc_calloc",
    "tc_memalign",
    "tc_posix_memalign",
    "tc_valloc",
    "tc_pvalloc",
    "tc_delete",
    "tc_deletearray",
    "tc_delete_nothrow",
    "tc_deletearray_nothrow",
    "tc_delete_sized",
    "tc_deletearray_sized",
    "tc_delete_aligned",
    "tc_deletearray_aligned",
    "tc_delete_sized_aligned",
    "tc_deletearray_sized_aligned",
    "mi_new",
    "mi_new_nothrow",
    "mi_new_aligned",
    "mi_new_aligned_nothrow",
    "mi_malloc",
    "mi_malloc_small",
    "mi_zalloc",
    "mi_zalloc_small",
    "mi_calloc",
    "mi_mallocn",
    "mi_malloc_aligned",
    "mi_malloc_aligned_at",
    "mi_zalloc_aligned",
    "mi_zalloc_aligned_at",
    "mi_calloc_aligned",
    "mi_memalign",
    "mi_aligned_alloc",
    "mi_posix_memalign",
    "mi_valloc",
    "mi_pvalloc",
    "mi_new_n",
    "mi_strdup",
    "mi_strndup",
    "mi_realloc",
    "mi_rezalloc",
    "mi_reallocn",
    "mi_recalloc",
    "mi_reallocarray",
    "mi_realloc_aligned",
    "mi_rezalloc_aligned",
    "mi_expand",
    "mi_free",
    "mi_free_size",
    "mi_free_size_aligned",
    "mi_free_aligned",
    "mi_cfree",
    "mi_heap_malloc",
    "mi_heap_zalloc",
    "mi_heap_calloc",
    "mi_heap_realloc",
    "mi_heap_malloc_aligned",
    "mi_heap_strdup",
    "je_valloc",
    "sn_malloc",
    "sn_calloc",
    "sn_realloc",
    "sn_free",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rust_dealloc",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "PyObject_Free",
    "_emalloc",
    "_ecalloc",
    "_erealloc",
    "_efree",
    "lua_Alloc",
    "g_slice_alloc",
    "g_slice_free1",
    "apr_palloc",
    "ngx_palloc",
    "palloc",
    "repalloc",
    "pfree",
    "talloc",
    "mi_heap_destroy",
    "mi_heap_delete",
    "mallctl",
    "mallctlbymib",
    "mallctlnametomib",
    "je_mallctl",
    "je_mallctlbymib",
    "je_mallctlnametomib",
    "(allocate)",
    "(reallocate)",
    "(free)",
];

/// Number of functions at the start of [`CALLED`] that the agent exports.
pub const EXPORTED_COUNT: usize = called("_Znwm") as usize;

/// Bits of a stack word that hold the node.
pub const NODE_BITS: u32 = 28;
/// Bits of a stack word.
pub const STACK_BITS: u32 = 36;
/// Largest size that shares one word with a stack.
pub const PACKED_SIZE_MAX: usize = (1 << (64 - STACK_BITS)) - 1;

/// Number of a function, for constants.
///
/// # Panics
/// Panics if the function is not in the table.
#[must_use]
pub const fn called(name: &str) -> u8 {
    let mut number = 0;
    while number < CALLED.len() {
        if is_same(CALLED[number].as_bytes(), name.as_bytes()) {
            return number as u8;
        }
        number += 1;
    }
    panic!("no such function in the table");
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

/// Packs a node and the number of the called function into a stack word.
#[inline(always)]
#[must_use]
pub const fn stack_word(node: u32, called: u8) -> u64 {
    (called as u64) << NODE_BITS | node as u64
}

/// Splits a stack word into node and function number; the bits above [`STACK_BITS`] are ignored.
#[inline(always)]
#[must_use]
pub const fn of_stack_word(word: u64) -> (u32, u8) {
    (word as u32 & ((1 << NODE_BITS) - 1), (word >> NODE_BITS) as u8)
}

const _: () = assert!(CALLED.len() < 256 && called("malloc") == 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_a_number_of_its_own() {
        for (number, name) in CALLED.iter().enumerate() {
            assert_eq!(usize::from(called(name)), number);
            let word = stack_word((1 << NODE_BITS) - 1, number as u8) | 7 << STACK_BITS;
            assert_eq!(of_stack_word(word), ((1 << NODE_BITS) - 1, number as u8));
            assert_eq!(word >> STACK_BITS, 7);
        }
    }
}
