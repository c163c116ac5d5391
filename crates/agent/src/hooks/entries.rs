//! The exported entry points that jump to a slot: see [`crate::x86_64::entries`].

use crate::hooks::real::REAL;
use crate::hooks::{SLOTS, SlotIndex};
use crate::x86_64::entries::slot_entries;

macro_rules! entries {
    (allocator { $($name:ident $words:tt)* } others { $($other:ident $other_words:tt)* }) => {
        slot_entries! { SLOTS, SlotIndex; $($name $words)* $($other $other_words)* }

        /// Calls `visit` with the name, the address (0: none) and the entry point of all that the program's allocator may bring itself.
        pub(crate) fn for_each_of_allocator(visit: &mut dyn FnMut(&[u8], usize, usize)) {
            $(visit(REAL.$name.name, REAL.$name.address(), $name as *const () as usize);)*
        }
    };
}

entries! {
    allocator {
        malloc 1 free 1 calloc 2 realloc 2 reallocarray 3 posix_memalign 3 aligned_alloc 2 memalign 2 valloc 1 pvalloc 1
        cfree 1 free_sized 2 free_aligned_sized 3
    }
    others { dlclose 1 munmap 2 mprotect 3 }
}
