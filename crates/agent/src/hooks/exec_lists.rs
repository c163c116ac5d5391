//! `execl`, `execlp` and `execle`: exec with the new program's arguments in the call itself.
//!
//! Their number is not known at entry; a null pointer ends them, behind which `execle` has the
//! environment.

use core::ffi::{c_char, c_int};

use heapr_ring::sys;

use crate::arch::argument_list::ArgumentList;
use crate::hooks::exec::Completed;
use crate::hooks::real::REAL;
use crate::process::environment::own_environment;
use crate::process::program_file::Program;

type Strings = *const *const c_char;

/// Number of arguments for which there is room on the stack; more take a mapping.
const ON_STACK: usize = 256;
/// Largest number of arguments. (`E2BIG`: the kernel takes no more than some 2 million either.)
const ARGUMENTS_MAX: usize = 1 << 21;

/// The variable arguments of such a call.
#[derive(Clone, Copy)]
struct List(ArgumentList);

impl List {
    /// Returns word `index` of the list.
    ///
    /// # Safety
    /// 1. The call passed a word of this index.
    unsafe fn word(self, index: usize) -> *const c_char {
        // SAFETY: (1).
        unsafe { self.0.word(index) }
    }

    /// Number of arguments, without the null pointer that ends them.
    fn len(self) -> usize {
        let mut count = 0_usize;
        // SAFETY: the caller has ended the list with a null pointer, and the loop stops there.
        while count < ARGUMENTS_MAX && !unsafe { self.word(count) }.is_null() {
            count = count.wrapping_add(1);
        }
        count
    }

    /// Calls `exec` with the arguments as an array.
    fn with_array(self, exec: impl FnOnce(Strings) -> c_int) -> c_int {
        let count = self.len();
        if count < ON_STACK {
            let mut array = [core::ptr::null(); ON_STACK];
            for (index, place) in array.iter_mut().enumerate().take(count) {
                // SAFETY: below the count.
                *place = unsafe { self.word(index) };
            }
            return exec(array.as_ptr());
        }
        let bytes = count.wrapping_add(1).wrapping_mul(size_of::<*const c_char>());
        let Ok(memory) = sys::map_anonymous(bytes, false) else { return -1 };
        let array = memory.cast::<*const c_char>();
        for index in 0..count {
            // SAFETY: the mapping has room for the count and the null pointer, and is zeroed; (1)
            // holds below the count.
            unsafe { *array.add(index) = self.word(index) };
        }
        let status = exec(array);
        // SAFETY: the mapping made above; exec has failed and refers to none of it.
        unsafe { sys::unmap(memory, bytes) };
        status
    }
}

unsafe extern "C" fn list_path(path: *const c_char, spilled: Strings, above: Strings) -> c_int {
    let mut completed = Completed::new();
    let environment = completed.complete(Program::Path(path), own_environment());
    let answer = List(ArgumentList { spilled, above })
        .with_array(|arguments| REAL.execve(path, arguments, environment));
    completed.came_back(answer)
}

unsafe extern "C" fn list_file(file: *const c_char, spilled: Strings, above: Strings) -> c_int {
    let mut completed = Completed::new();
    let environment = completed.complete(Program::Searched(file), own_environment());
    let answer = List(ArgumentList { spilled, above })
        .with_array(|arguments| REAL.execvpe(file, arguments, environment));
    completed.came_back(answer)
}

unsafe extern "C" fn list_environment(path: *const c_char, spilled: Strings, above: Strings) -> c_int {
    let list = List(ArgumentList { spilled, above });
    // SAFETY: the environment follows the null pointer.
    let environment = unsafe { list.word(list.len().wrapping_add(1)) }.cast::<*const c_char>();
    let mut completed = Completed::new();
    let environment = completed.complete(Program::Path(path), environment);
    let answer = list.with_array(|arguments| REAL.execve(path, arguments, environment));
    completed.came_back(answer)
}

crate::arch::entries::list_entries! {
    execl list_path
    execlp list_file
    execle list_environment
}
