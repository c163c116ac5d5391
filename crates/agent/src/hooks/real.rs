//! The allocator's own functions, which the hooks forward to.
//!
//! Until the agent has started, each entry points to a starter: it starts the agent (which fills in
//! the table) and then makes the call. The table is written once, before a second thread can exist,
//! and only read after that.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_ring::pages::page_bytes;

use crate::hooks;
use crate::modules::link_map::{self, DlPhdrInfo};

/// Lists all functions that an allocator may define itself, for a macro that generates code for
/// each. A row has the number of arguments, the kind of call and the arguments that matter (see
/// [`crate::hooks::forwarded`]).
///
/// A new function is a row here, its signature at the end of this file, its hook in
/// [`crate::hooks`] and its name in [`heapr_wire::CALLED`].
macro_rules! for_all_allocator_functions {
    ($then:ident) => {
        $then! {
            malloc 1 allocates |size, _, _| size;
            free 1 frees |block, _, _| block;
            calloc 2 allocates |count, size, _| count.saturating_mul(size);
            realloc 2 reallocates |block, size, _| (block, size);
            reallocarray 3 reallocates |block, count, size| (block, count.saturating_mul(size));
            posix_memalign 3 stores |_, _, size| size;
            aligned_alloc 2 allocates |_, size, _| size;
            memalign 2 allocates |_, size, _| size;
            valloc 1 allocates |size, _, _| size;
            pvalloc 1 allocates |size, _, _| size;
            cfree 1 frees |block, _, _| block;
            free_sized 2 frees |block, _, _| block;
            free_aligned_sized 3 frees |block, _, _| block;
            __libc_malloc 1 allocates |size, _, _| size;
            __libc_free 1 frees |block, _, _| block;
            __libc_calloc 2 allocates |count, size, _| count.saturating_mul(size);
            __libc_realloc 2 reallocates |block, size, _| (block, size);
            __libc_memalign 2 allocates |_, size, _| size;
            __libc_valloc 1 allocates |size, _, _| size;
            __libc_pvalloc 1 allocates |size, _, _| size;
        }
    };
}

type Pointer = *mut c_void;
type Strings = *const *const c_char;

/// One forwarded function: its C name, and its address once known.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Real {
    /// First, so that assembly finds it at the symbol itself.
    address: AtomicUsize,
    /// Zero-free C name.
    pub(crate) name: &'static [u8],
}

impl Real {
    pub(crate) const fn new(name: &'static [u8]) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// Returns the location of the address, for an injector that fills it in from outside.
    pub(crate) const fn place(&'static self) -> &'static AtomicUsize {
        &self.address
    }

    /// Sets the address.
    pub(crate) fn set(&self, address: usize) {
        self.address.store(address, Relaxed);
    }

    fn resolve_by(&self, find: fn(&[u8]) -> usize) {
        self.address.store(find(self.name), Relaxed);
    }

    /// Returns the address of the real function; 0 if it is not known.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.address.load(Relaxed)
    }

    /// Returns the address; if it was not found, it is searched once more, as its library may have
    /// been loaded since.
    #[cold]
    pub(crate) fn found_late(&self) -> usize {
        if self.address() == 0 {
            self.resolve_by(link_map::find_after_agent);
        }
        self.address()
    }

    /// Returns the function as one that takes a block and returns nothing, if its address is known.
    #[inline(always)]
    pub(crate) fn known_free(&self) -> Option<unsafe extern "C" fn(Pointer)> {
        let address = self.address();
        // SAFETY: null, or the address of a function that was found under a C name with this
        // interface (used for `free` only).
        unsafe { core::mem::transmute::<usize, Option<unsafe extern "C" fn(Pointer)>>(address) }
    }

    /// Returns the address, after starting the agent if this is the first call of all.
    #[inline(always)]
    fn started(&self) -> usize {
        let address = self.address();
        if address != 0 { address } else { self.start() }
    }

    #[cold]
    #[inline(never)]
    fn start(&self) -> usize {
        hooks::start_agent();
        self.address()
    }
}

macro_rules! real_functions {
    ($($field:ident $name:literal fn($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $absent:expr;)*) => {
        /// All forwarded functions of the C library's interface.
        #[derive(Debug)]
        #[repr(C)]
        pub(crate) struct RealFunctions { $(pub(crate) $field: Real,)* }

        /// The table.
        pub(crate) static REAL: RealFunctions = RealFunctions { $($field: Real::new($name),)* };

        impl RealFunctions {
            /// Finds each function in the first module after the agent, in the loader's search
            /// order, that has it.
            pub(crate) fn resolve(&self) {
                self.resolve_by(link_map::find_after_agent);
            }

            /// Finds the same functions without calling any function outside of the agent.
            pub(crate) fn resolve_uncalled(&self) {
                self.resolve_by(link_map::find_after_agent_uncalled);
            }

            // One by one: an array of them would be copied by the program's memcpy.
            fn resolve_by(&self, find: fn(&[u8]) -> usize) {
                $(self.$field.resolve_by(find);)*
                MMAP.resolve_by(find);
                MREMAP.resolve_by(find);
                SYSCALL.resolve_by(find);
                DLOPEN.resolve_by(find);
                DLMOPEN.resolve_by(find);
            }

            $(
                /// Calls the real function; the table below defines the result if it is absent.
                #[inline(always)]
                pub(crate) fn $field(&self, $($argument: $kind),*) $(-> $answer)? {
                    let address = self.$field.started();
                    if address == 0 {
                        return $absent;
                    }
                    // SAFETY: the address was found under this C name in the program's allocator.
                    // The C standard, POSIX or the C library's manual fixes its interface to this
                    // signature.
                    unsafe {
                        let function: unsafe extern "C" fn($($kind),*) $(-> $answer)? = core::mem::transmute(address);
                        function($($argument),*)
                    }
                }
            )*
        }
    };
}

/// `mmap`, called from assembly: its six arguments leave no register for the hook's own.
pub(crate) static MMAP: Real = Real::new(b"mmap");
/// `mremap`, called from assembly for the same reason.
pub(crate) static MREMAP: Real = Real::new(b"mremap");
/// `syscall`, which assembly jumps to with all its seven arguments.
pub(crate) static SYSCALL: Real = Real::new(b"syscall");

/// `_exit` by both of its names, of which a static program may have one; used by an injector only.
pub(crate) static EXITS: [Real; 2] = [Real::new(b"_exit"), Real::new(b"_Exit")];

/// `dlopen`, which assembly jumps to: the loader looks up its caller by the return address.
pub(crate) static DLOPEN: Real = Real::new(b"dlopen");
/// `dlmopen`, which assembly jumps to for the same reason.
pub(crate) static DLMOPEN: Real = Real::new(b"dlmopen");

macro_rules! allocator_functions {
    ($($name:ident $words:literal $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        impl RealFunctions {
            /// True if a module defines one of the functions that the program's allocator may
            /// define itself.
            pub(crate) fn has_allocator_function_in(&self, info: &DlPhdrInfo) -> bool {
                let mut is_any = false;
                $(is_any |= self.$name.address() != 0 && info.contains(self.$name.address());)*
                is_any
            }
        }
    };
}

for_all_allocator_functions! { allocator_functions }

/// Calls the real `syscall` with five arguments.
pub(crate) fn syscall(number: usize, arguments: [usize; 5]) -> isize {
    let address = SYSCALL.started();
    if address == 0 {
        return -1;
    }
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: found under this name in the C library; it takes as many words as the call has.
    unsafe {
        let function: unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize =
            core::mem::transmute(address);
        function(number, first, second, third, fourth, fifth)
    }
}

/// Action of an absent function without a result.
fn nothing() {}

const NULL: Pointer = core::ptr::null_mut();
const ENOMEM: c_int = 12;
const ENOSYS: c_int = 38;
/// Error: no key is left.
pub(crate) const EAGAIN: c_int = 11;
/// Error of `<threads.h>`: no key is left.
pub(crate) const THRD_ERROR: c_int = 2;

real_functions! {
    malloc b"malloc" fn(size: usize) -> Pointer = NULL;
    free b"free" fn(block: Pointer) = nothing();
    calloc b"calloc" fn(count: usize, size: usize) -> Pointer = NULL;
    realloc b"realloc" fn(block: Pointer, size: usize) -> Pointer = NULL;
    reallocarray b"reallocarray" fn(block: Pointer, count: usize, size: usize) -> Pointer
        = match count.checked_mul(size) { Some(bytes) => REAL.realloc(block, bytes), None => NULL };
    posix_memalign b"posix_memalign" fn(answer: *mut Pointer, alignment: usize, size: usize) -> c_int = ENOMEM;
    aligned_alloc b"aligned_alloc" fn(alignment: usize, size: usize) -> Pointer = REAL.memalign(alignment, size);
    memalign b"memalign" fn(alignment: usize, size: usize) -> Pointer = NULL;
    valloc b"valloc" fn(size: usize) -> Pointer = REAL.memalign(page_bytes(), size);
    pvalloc b"pvalloc" fn(size: usize) -> Pointer
        = match size.checked_next_multiple_of(page_bytes()) { Some(bytes) => REAL.memalign(page_bytes(), bytes), None => NULL };
    cfree b"cfree" fn(block: Pointer) = REAL.free(block);
    free_sized b"free_sized" fn(block: Pointer, size: usize) = REAL.free(block);
    free_aligned_sized b"free_aligned_sized" fn(block: Pointer, alignment: usize, size: usize) = REAL.free(block);
    __libc_malloc b"__libc_malloc" fn(size: usize) -> Pointer = REAL.malloc(size);
    __libc_free b"__libc_free" fn(block: Pointer) = REAL.free(block);
    __libc_calloc b"__libc_calloc" fn(count: usize, size: usize) -> Pointer = REAL.calloc(count, size);
    __libc_realloc b"__libc_realloc" fn(block: Pointer, size: usize) -> Pointer = REAL.realloc(block, size);
    __libc_memalign b"__libc_memalign" fn(alignment: usize, size: usize) -> Pointer = REAL.memalign(alignment, size);
    __libc_valloc b"__libc_valloc" fn(size: usize) -> Pointer = REAL.valloc(size);
    __libc_pvalloc b"__libc_pvalloc" fn(size: usize) -> Pointer = REAL.pvalloc(size);
    munmap b"munmap" fn(address: Pointer, size: usize) -> c_int = -1;
    mprotect b"mprotect" fn(address: Pointer, size: usize, protection: c_int) -> c_int = -1;
    sbrk b"sbrk" fn(moved: isize) -> Pointer = usize::MAX as Pointer;
    brk b"brk" fn(end: Pointer) -> c_int = -1;
    execve b"execve" fn(path: *const c_char, arguments: Strings, environment: Strings) -> c_int = -1;
    execvpe b"execvpe" fn(file: *const c_char, arguments: Strings, environment: Strings) -> c_int = -1;
    fexecve b"fexecve" fn(descriptor: c_int, arguments: Strings, environment: Strings) -> c_int = -1;
    execveat b"execveat"
        fn(directory: c_int, path: *const c_char, arguments: Strings, environment: Strings, flags: c_int) -> c_int = -1;
    posix_spawn b"posix_spawn" fn(
        process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Strings, environment: Strings) -> c_int = ENOSYS;
    posix_spawnp b"posix_spawnp" fn(
        process: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Strings, environment: Strings) -> c_int = ENOSYS;
    dlclose b"dlclose" fn(handle: Pointer) -> c_int = -1;
    mlockall b"mlockall" fn(flags: c_int) -> c_int = -1;
    pthread_key_create b"pthread_key_create" fn(key: *mut u32, destructor: usize) -> c_int = EAGAIN;
    pthread_key_delete b"pthread_key_delete" fn(key: u32) -> c_int = ENOSYS;
    tss_create b"tss_create" fn(key: *mut u32, destructor: usize) -> c_int = THRD_ERROR;
    prctl b"prctl" fn(option: c_int, value: usize, third: usize, fourth: usize, fifth: usize) -> c_int = -1;
}
