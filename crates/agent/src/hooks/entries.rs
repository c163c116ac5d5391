//! The exported entry points that jump to a slot: see [`crate::arch::entries`].

use crate::arch::entries::{jump_entries, slot_entries};
use crate::hooks::real::REAL;
use crate::hooks::{SLOTS, SlotIndex};

macro_rules! entries {
    ($($name:ident $words:tt $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        jump_entries! { SLOTS, SlotIndex; $($name)* }
        slot_entries! { SLOTS, SlotIndex; dlclose 1 munmap 2 mprotect 3 sbrk 1 brk 1 }

        /// Calls `visit` with the name, the address (0: not found) and the entry point of each
        /// function that the program's allocator may define itself.
        pub(crate) fn for_each_of_allocator(visit: &mut dyn FnMut(&[u8], usize, usize)) {
            $(visit(REAL.$name.name, REAL.$name.address(), $name as *const () as usize);)*
        }
    };
}

for_all_allocator_functions! { entries }
