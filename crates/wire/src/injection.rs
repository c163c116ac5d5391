//! Interface between the injector and an injected agent.
//!
//! The target's loader does not load the agent. The injector maps and relocates it, and passes it
//! what the loader would have passed. The agent describes itself in a static
//! ([`INJECTION_SYMBOL`]); the injector passes its settings in [`AttachParameters`].

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};

use crate::InnerFunction;

/// Name under which the agent exports its [`Injection`].
pub const INJECTION_SYMBOL: &str = "heapr_injection";
/// Value of [`Injection::magic`].
pub const INJECTION_MAGIC: u64 = u64::from_le_bytes(*b"heaprinj");
/// Offset in a thread's state of the word that holds the address of the thread's control block.
/// Each state begins a mapping of the agent.
pub const CONTROL_BLOCK_OFFSET: u64 = 8;

/// The agent's description of itself. Constant after relocation.
#[derive(Debug)]
#[repr(C)]
pub struct Injection {
    /// [`INJECTION_MAGIC`].
    pub magic: u64,
    /// [`crate::BUILD_ID`].
    pub build_id: u64,
    /// Starts the agent: `extern "C" fn(*mut AttachParameters)`.
    pub attach: *const (),
    /// Destructor of the thread key: `extern "C" fn(*mut c_void)`.
    pub end_of_thread: *const (),
    /// First of `hook_count` hooks.
    pub hooks: *const InjectedHook,
    /// Number of entries at `hooks`.
    pub hook_count: usize,
    /// First of `foreign_count` hooks of allocator libraries' own interfaces.
    pub foreign: *const InjectedHook,
    /// Number of entries at `foreign`.
    pub foreign_count: usize,
    /// First of `mapping_count` pairs (address, bytes) of the agent's own mappings; a pair with 0
    /// bytes is unused.
    pub mappings: *const [AtomicUsize; 2],
    /// Number of pairs at `mappings`.
    pub mapping_count: usize,
    /// Byte that selects the agent's clock; with [`CLOCK_STOPPED`] the agent records nothing more.
    pub clock: *const AtomicU8,
    /// Entry for calls whose callers may hold values in any register. The address of
    /// [`InjectedHook::kept`] is on top of the stack.
    pub all_registers_entry: *const (),
    /// Entry for calls whose callers follow the calling convention; it saves only the arguments.
    pub light_entry: *const (),
    /// First of `more_count` hooks for further allocators of the process: [`MORE_ALLOCATORS`]
    /// copies of one list of functions.
    pub more: *const InjectedHook,
    /// Number of entries at `more`.
    pub more_count: usize,
    /// Requests a thread key from the C library: `extern "C" fn(create: usize, delete: usize, key:
    /// *mut u32) -> i32`.
    pub claim_key: *const (),
    /// First of [`crate::INNER_FUNCTIONS`] entries for functions of embedded allocators.
    pub inner: *const InnerFunction,
    /// First of the handlers that [`Injection::all_registers_entry`] runs for the entries at
    /// `inner`, in the same order.
    pub inner_kept: *const (),
    /// Distance in bytes from one handler at `inner_kept` to the next.
    pub inner_kept_bytes: usize,
    /// First of [`crate::INNER_HEAPS`] heap names, 32 bytes each, padded with zeros.
    pub inner_heap_names: *const [AtomicU64; 4],
    /// Handler that is called in place of the loader's empty function `_dl_debug_state`: `extern
    /// "C" fn()`.
    pub after_load: *const (),
    /// Address of the page marks by which the frees of samples are recognised; null before the
    /// agent has started.
    pub marks: *const (),
    /// Offset in a thread's state of the rest of its sampling countdown.
    pub countdown_offset: usize,
    /// Word with the offset from the thread pointer to the thread's countdown. 0: the countdown
    /// lies in the thread's state, at `countdown_offset`.
    pub countdown_place: *const AtomicUsize,
    /// First of [`OWN_CALLS`] ranges (start, bytes) of code whose calls are not the program's.
    pub own_calls: *const [AtomicUsize; 2],
    /// First of `redirected_count` pairs: address of a symbol's value that the agent has changed,
    /// and the former value. An address of 0 marks an unused pair.
    pub redirected: *const [AtomicUsize; 2],
    /// Number of pairs at `redirected`.
    pub redirected_count: usize,
}

/// Largest number of symbols that an agent can redirect, over all allocators.
pub const REDIRECTED_MAX: usize = 128;

/// Number of ranges of code whose calls are not the program's: the agent's and the allocator's.
pub const OWN_CALLS: usize = 2;

/// Largest number of allocators that are hooked besides the first one of a process.
pub const MORE_ALLOCATORS: usize = 3;

/// Value of [`Injection::clock`]: events get no time, so that none is recorded.
pub const CLOCK_STOPPED: u8 = 3;
/// Value of [`Injection::clock`] for an agent that the program's loader loaded, which cannot be
/// unloaded. It records nothing more, and from its next call on leads all calls around itself.
pub const CLOCK_ENDED: u8 = 4;

/// One function that can be hooked.
#[derive(Debug)]
#[repr(C)]
pub struct InjectedHook {
    /// C name of the function, `name_bytes` long.
    pub name: *const u8,
    /// Length of the name.
    pub name_bytes: usize,
    /// Target of the function's calls once it is hooked.
    pub trampoline: *const (),
    /// Word from which the agent reads the original function's address. Written by the injector
    /// before the first call.
    pub real: *const AtomicUsize,
    /// `HOOK_*`.
    pub group: u64,
    /// Handler for [`Injection::all_registers_entry`]; null if the function can be hooked only with
    /// its
    /// `trampoline`.
    pub kept: *const (),
}

/// [`InjectedHook::group`]: the allocator functions of the C library's interface.
pub const HOOK_ALLOCATOR: u64 = 1;
/// [`InjectedHook::group`]: mmap and related functions.
pub const HOOK_MAPPING: u64 = 2;
/// [`InjectedHook::group`]: dlclose.
pub const HOOK_LOADER: u64 = 3;
/// [`InjectedHook::group`]: execve and related functions.
pub const HOOK_EXEC: u64 = 4;
/// [`InjectedHook::group`]: functions that only allocator libraries have.
pub const HOOK_FOREIGN: u64 = 5;
/// [`InjectedHook::group`]: operator new and delete; hooked only where the module also has a
/// malloc.
pub const HOOK_OPERATOR: u64 = 6;

/// Largest size in bytes of the session variable's value.
pub const SESSION_VALUE_BYTES_MAX: usize = 64;
/// Largest size in bytes of the agent's path for children, with the terminating zero.
pub const AGENT_PATH_BYTES_MAX: usize = 1024;

/// Bit of [`AttachParameters::end_key`]: the key must be set to null first. With musl the key's
/// value is the agent's own word already, and storing an unchanged value does not register it for
/// the thread's end.
pub const INJECTED_KEY_SET_TWICE: u32 = 1 << 31;

/// Parameters that the injector passes to an agent, and the agent's answers.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AttachParameters {
    /// Descriptor of the pool in the target; the agent closes it.
    pub pool_descriptor: i32,
    /// Key of the end-of-thread handler plus one; 0 without one. See also
    /// [`INJECTED_KEY_SET_TWICE`].
    pub end_key: u32,
    /// Address of `pthread_setspecific`; 0 without one.
    pub set_specific_avma: u64,
    /// Address of `_dl_find_object`; 0 before glibc 2.35.
    pub find_object_avma: u64,
    /// Address of the variable `__libc_stack_end`; 0 if unknown.
    pub stack_end_avma: u64,
    /// Value of the session variable, for children.
    pub session: [u8; SESSION_VALUE_BYTES_MAX],
    /// Length of `session` in bytes; 0: children that exec are not followed.
    pub session_bytes: u64,
    /// Path of the agent's file, for children; zero-terminated. Empty: children that exec are not
    /// followed.
    pub agent_path: [u8; AGENT_PATH_BYTES_MAX],
    /// Answer: [`ATTACH_DONE`] when recording, [`ATTACH_REFUSED`] plus a [`crate::DisableReason`]
    /// when not; 0 before the answer.
    pub outcome: u32,
    /// Answer: the process's slot.
    pub process_slot: u32,
    /// Answer: the generation of the process's slot.
    pub process_generation: u32,
    /// Answer: the process's id as it sees itself.
    pub inner_pid: u32,
    /// 1: hooked allocators may call each other, or themselves.
    pub nests: u32,
}

/// [`AttachParameters::outcome`]: recording.
pub const ATTACH_DONE: u32 = 1;
/// [`AttachParameters::outcome`]: not recording; the reason's number is added to this value.
pub const ATTACH_REFUSED: u32 = 0x100;
