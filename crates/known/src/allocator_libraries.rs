//! Libraries that take malloc's place, and the functions by which they are recognised.

/// An allocator that takes malloc's place, as a library or linked into a program.
#[derive(Debug)]
pub struct Library {
    /// Name in a sentence.
    pub name: &'static str,
    /// Beginning of its library's file name; empty if it is only linked into programs.
    pub file: &'static str,
    /// Text in each file that contains it; empty if no such text is known.
    pub text: &'static str,
    /// Call or variable by which it returns free pages, as the subject of "gives them back"; empty
    /// if its pages are not read.
    pub release: &'static str,
}

/// All allocators that take malloc's place.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "jemalloc",
        file: "libjemalloc",
        text: "<jemalloc>: ",
        release: "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 in the environment",
    },
    Library {
        name: "tcmalloc",
        file: "libtcmalloc",
        text: "tcmalloc: ",
        release: "MallocExtension_ReleaseFreeMemory(), or TCMALLOC_RELEASE_RATE=10 in the environment,",
    },
    Library {
        name: "mimalloc",
        file: "libmimalloc",
        text: "mimalloc: ",
        release: "mi_collect(true), called when a peak is over,",
    },
    Library { name: "snmalloc", file: "libsnmalloc", text: "snmalloc", release: "" },
    Library { name: "Hoard", file: "libhoard", text: "", release: "" },
    Library { name: "PartitionAlloc", file: "", text: "partition_alloc", release: "" },
];

/// Text in the files of another program's allocator.
#[derive(Debug)]
pub struct AllocatorText {
    /// Name of the allocator in a sentence.
    pub name: &'static str,
    /// Text of its own.
    pub text: &'static str,
    /// Beginnings of the names of the files that are searched for the text; empty: all.
    pub files: &'static [&'static str],
}

/// Texts of allocators that are neither a library nor of a runtime in [`crate::runtimes`].
pub const OTHER_TEXTS: &[AllocatorText] = &[
    AllocatorText { name: "GHC's heap", text: "GHCRTS", files: &[] },
    AllocatorText { name: "OCaml's heap", text: "OCAMLRUNPARAM", files: &[] },
    AllocatorText {
        name: "PostgreSQL's memory contexts",
        text: "TopMemoryContext",
        files: &["postgres", "postmaster"],
    },
];

/// Beginning of the file name of musl's loader, whose malloc maps all that it has.
pub const MUSL_LOADER: &str = "ld-musl";

/// Name of musl's library, where it is installed beside another C library.
pub const MUSL_FILE: &str = "libc.so";

/// Beginnings of the names of all functions of allocator libraries, but those that end in
/// [`SUFFIX`].
pub const PREFIXES: [&str; 5] = ["_Z", OWN_PREFIXES[0], OWN_PREFIXES[1], OWN_PREFIXES[2], "mallctl"];

/// Beginnings of names that only allocator libraries use.
const OWN_PREFIXES: [&str; 3] = ["mi_", "tc_", "je_"];

/// End of the names of jemalloc's functions with flags.
pub const SUFFIX: &str = "allocx";

/// Functions of which each library with an interface of its own exports one.
pub const PROBES: [&str; 4] = ["mallocx", "je_malloc", "tc_malloc", "mi_malloc"];

/// Calls the macro `$callback` with the functions of all allocator libraries, by what they do.
///
/// A function is a name in its group, and nothing else; its hook, its number and its name in events
/// follow. A `new` is followed by the form that answers null where it throws.
#[macro_export]
macro_rules! for_all_library_functions {
    ($callback:ident) => {
        $callback! {
            new {
                _Znwm: _ZnwmRKSt9nothrow_t _Znam: _ZnamRKSt9nothrow_t
                _ZnwmRKSt9nothrow_t: _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t: _ZnamRKSt9nothrow_t
                _ZnwmSt11align_val_t: _ZnwmSt11align_val_tRKSt9nothrow_t
                _ZnamSt11align_val_t: _ZnamSt11align_val_tRKSt9nothrow_t
                _ZnwmSt11align_val_tRKSt9nothrow_t: _ZnwmSt11align_val_tRKSt9nothrow_t
                _ZnamSt11align_val_tRKSt9nothrow_t: _ZnamSt11align_val_tRKSt9nothrow_t
                tc_new: tc_new_nothrow tc_new_nothrow: tc_new_nothrow tc_newarray: tc_newarray_nothrow
                tc_newarray_nothrow: tc_newarray_nothrow tc_new_aligned: tc_new_aligned_nothrow
                tc_new_aligned_nothrow: tc_new_aligned_nothrow
                tc_newarray_aligned: tc_newarray_aligned_nothrow
                tc_newarray_aligned_nothrow: tc_newarray_aligned_nothrow mi_new: mi_new_nothrow
                mi_new_nothrow: mi_new_nothrow mi_new_aligned: mi_new_aligned_nothrow
                mi_new_aligned_nothrow: mi_new_aligned_nothrow
            }
            free {
                _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t
                _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t
                _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t sdallocx dallocx
                je_free je_sdallocx je_dallocx tc_free tc_free_sized tc_cfree tc_delete tc_deletearray
                tc_delete_nothrow tc_deletearray_nothrow tc_delete_sized tc_deletearray_sized
                tc_delete_aligned tc_deletearray_aligned tc_delete_sized_aligned
                tc_deletearray_sized_aligned mi_free mi_free_size mi_free_size_aligned mi_free_aligned
                mi_cfree
            }
            // Requests `(size)`.
            alloc {
                je_malloc tc_malloc tc_malloc_skip_new_handler tc_valloc tc_pvalloc
                mi_malloc mi_malloc_small mi_zalloc mi_zalloc_small
                mi_malloc_aligned mi_malloc_aligned_at mi_zalloc_aligned
                mi_zalloc_aligned_at mi_valloc mi_pvalloc
            }
            // Requests `(size, flags)`; the flags name an arena.
            alloc_flags {
                mallocx je_mallocx
            }
            // Resizes `(block, size, flags)`.
            realloc_flags {
                rallocx je_rallocx
            }
            // Resizes `(block, size)`.
            realloc {
                je_realloc tc_realloc mi_realloc mi_rezalloc mi_realloc_aligned
                mi_rezalloc_aligned
            }
            // Resizes `(block, size)` in place; answers the new size.
            resize_to_size {
                xallocx je_xallocx
            }
            // Requests `(count, size)`.
            calloc {
                je_calloc tc_calloc mi_calloc mi_mallocn mi_calloc_aligned mi_new_n
            }
            // Requests `(alignment, size)`.
            memalign {
                je_memalign je_aligned_alloc tc_memalign mi_memalign
                mi_aligned_alloc
            }
            // Requests `(heap, size)`.
            heap_alloc {
                mi_heap_malloc mi_heap_zalloc mi_heap_malloc_aligned
            }
            // Requests `(place of the answer, alignment, size)`.
            posix_memalign {
                je_posix_memalign tc_posix_memalign mi_posix_memalign
            }
            // Copies a text.
            string {
                mi_strdup mi_strndup
            }
            // Copies a text `(heap, text)`.
            heap_string {
                mi_heap_strdup
            }
            // Resizes `(block, count, size)`.
            recalloc {
                mi_reallocn mi_recalloc mi_reallocarray
            }
            // Resizes `(block, size)` in place; answers the block or null.
            resize_or_null {
                mi_expand
            }
            // Requests `(heap, count, size)`.
            heap_calloc {
                mi_heap_calloc
            }
            // Resizes `(heap, block, size)`.
            heap_realloc {
                mi_heap_realloc
            }
            // Frees all blocks of `(heap)`.
            heap_destroy {
                mi_heap_destroy
            }
            // Ends `(heap)`; its blocks live on.
            heap_delete {
                mi_heap_delete
            }
            // jemalloc's `mallctl`, which may end an arena's blocks.
            control {
                mallctl je_mallctl
            }
            // `mallctlbymib`.
            control_by_mib {
                mallctlbymib je_mallctlbymib
            }
            // `mallctlnametomib`.
            name_to_mib {
                mallctlnametomib je_mallctlnametomib
            }
        }
    };
}

/// Collects the names of the functions of all libraries.
macro_rules! functions {
    (
        new { $($new:ident: $nothrow:ident)* }
        $($group:ident { $($name:ident)* })*
    ) => {
        /// Functions of all allocator libraries, as their symbols have them.
        pub const FUNCTIONS: &[&str] = &[$(stringify!($new),)* $($(stringify!($name),)*)*];
    };
}

for_all_library_functions!(functions);

/// Beginnings of the names of C++'s operators, in all forms: `_Znwm12__hot_cold_t` is one.
const OPERATORS: [&str; 4] = ["_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"];

/// True for a function of an allocator library, or a name that only these use.
#[must_use]
pub fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
        || OWN_PREFIXES.iter().chain(&OPERATORS).any(|prefix| name.starts_with(prefix))
        || name.ends_with(SUFFIX)
}

/// Heaps of languages among the separate heaps of embedded allocators. The others are pools of a
/// program.
pub const LANGUAGE_HEAPS: [&str; 3] = ["python", "php", "lua"];

/// True for a library that takes malloc's place, by its file's name.
#[must_use]
pub fn is_library(file: &str) -> bool {
    file == MUSL_FILE || file.starts_with(MUSL_LOADER) || is_separate_library(file)
}

/// True for a library of its own that takes malloc's place beside the C library, by its file's
/// name.
#[must_use]
pub fn is_separate_library(file: &str) -> bool {
    LIBRARIES.iter().any(|library| !library.file.is_empty() && file.starts_with(library.file))
}

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, PREFIXES, SUFFIX, is_library, is_separate_library};

    #[test]
    fn allocator_libraries_are_recognised_by_their_files() {
        assert!(
            is_library("libjemalloc.so.2") && is_library("ld-musl-riscv64.so.1") && is_library("libc.so")
        );
        assert!(!is_library("libc.so.6"));
        assert!(is_separate_library("libmimalloc.so.2") && !is_separate_library("libc.so"));
    }

    #[test]
    fn each_function_is_found_by_how_its_name_begins_or_ends() {
        for name in FUNCTIONS {
            let is_found = PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with(SUFFIX);
            assert!(is_found, "{name}");
            assert_eq!(FUNCTIONS.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
