//! Hooks of allocators other than the program's own: the C library of another linker namespace, or
//! one that only a library with `RTLD_DEEPBIND` calls.
//!
//! Each allocator has a number. Each function of the interface has a row of trampolines, one per
//! number, so that the number follows from the trampoline's address.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_wire::called;

use crate::arch::entries::{ROW_BYTES, ROW_LENGTH};
use crate::arch::entry::Entry;
use crate::hooks::Caller;
use crate::hooks::forwarded::kinds;

/// Largest number of allocators with hooks: the loader knows no more namespaces.
const ALLOCATORS_MAX: usize = ROW_LENGTH;

type Reals = [AtomicUsize; ALLOCATORS_MAX];

/// Load bias of each allocator; 0: the number is free.
static BIASES: Reals = [const { AtomicUsize::new(0) }; ALLOCATORS_MAX];

/// Returns the number of an allocator, which gets a free one if it is new. (An unloaded one keeps
/// its number, because it is usually loaded there again.)
pub(crate) fn number_of(bias: usize) -> Option<usize> {
    BIASES.iter().position(|known| {
        let now = known.load(Acquire);
        now == bias || (now == 0 && known.compare_exchange(0, bias, AcqRel, Relaxed).is_ok())
    })
}

/// Returns the trampoline of allocator `number` in a row.
pub(crate) fn entry(first: unsafe extern "C" fn(), number: usize) -> usize {
    (first as *const () as usize).wrapping_add(number.wrapping_mul(ROW_BYTES))
}

macro_rules! functions {
    ($($name:ident $words:literal $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        #[allow(non_upper_case_globals, reason = "named as the C functions")]
        mod reals {
            use super::*;
            $(pub(super) static $name: Reals = [const { AtomicUsize::new(0) }; ALLOCATORS_MAX];)*
        }

        mod hooks {
            use super::*;
            $(pub(super) unsafe extern "C" fn $name(
                a: usize, b: usize, c: usize, entry: Entry, bp: usize, place: usize,
            ) -> usize {
                let number = place.wrapping_sub(trampolines::$name as *const () as usize) / ROW_BYTES;
                let Some(real) = reals::$name.get(number) else { return 0 };
                let caller = Caller::new(entry, bp, const { called(stringify!($name)) });
                let ($a, $b, $c) = (a, b, c);
                kinds::$kind(real, [a, b, c, 0], $what, caller)
            })*
        }

        mod trampolines {
            $(crate::arch::entries::entry_row! { $name, super::hooks::$name })*
        }

        /// Calls `visit` with each function's name, the addresses of its real functions, and its
        /// first trampoline.
        pub(crate) fn for_each_function(visit: &mut dyn FnMut(&[u8], &'static Reals, unsafe extern "C" fn())) {
            $(visit(stringify!($name).as_bytes(), &reals::$name, trampolines::$name);)*
        }
    };
}

for_all_allocator_functions! { functions }
