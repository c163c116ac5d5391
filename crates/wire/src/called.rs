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

/// Calls that list of functions in [`CALLED`] by their names.
macro_rules! called_functions {
    (
        new { $($new:ident: $nothrow:ident)* }
        $($group:ident { $($name:ident)* })*
    ) => {
        /// All functions, each at the index of its number. The order is: functions that the agent
        /// exports, those of allocator libraries, those of embedded allocators and of programs.
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
            $(stringify!($new),)*
            $($(stringify!($name),)*)*
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
            "(allocate)",
            "(reallocate)",
            "(free)",
        ];
    };
}

heapr_known::for_all_library_functions!(called_functions);

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
