//! What the injector and an injected agent know of each other.
//!
//! The agent is not loaded by the target's loader: the injector maps it, relocates it and tells it
//! what the loader would have told it. The agent describes itself in a static
//! ([`INJECTION_SYMBOL`]), the injector its wishes in [`AttachParameters`].

use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};

use crate::InnerFunction;

/// Name under which the agent exports its [`Injection`].
pub const INJECTION_SYMBOL: &str = "heapr_injection";
/// [`Injection::magic`].
pub const INJECTION_MAGIC: u64 = u64::from_le_bytes(*b"heaprinj");
/// Where in a thread's state the address of the thread's control block stands. Each state is the
/// begin of a mapping of the agent's own.
pub const CONTROL_BLOCK_OFFSET: u64 = 8;

/// The agent's description of itself. Constant once it is relocated.
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
    /// How many.
    pub hook_count: usize,
    /// First of `foreign_count` hooks of other allocators' interfaces.
    pub foreign: *const InjectedHook,
    /// How many.
    pub foreign_count: usize,
    /// First of `mapping_count` pairs (address, bytes) of the agent's own mappings; bytes 0: none.
    pub mappings: *const [AtomicUsize; 2],
    /// How many.
    pub mapping_count: usize,
    /// The byte that says which clock the agent reads: with [`CLOCK_STOPPED`] it records nothing
    /// more.
    pub clock: *const AtomicU8,
    /// Where calls go whose callers may keep values in any register; behind it on the stack lies
    /// [`InjectedHook::kept`].
    pub kept_entry: *const (),
    /// As [`Injection::kept_entry`], for functions whose callers keep nothing.
    pub light_entry: *const (),
    /// First of `more_count` hooks for further allocators of the process, [`MORE_ALLOCATORS`] times
    /// the same functions.
    pub more: *const InjectedHook,
    /// How many.
    pub more_count: usize,
    /// Asks the C library for a thread key: `extern "C" fn(create: usize, delete: usize, key: *mut
    /// u32) -> i32`.
    pub claim_key: *const (),
    /// First of [`crate::INNER_FUNCTIONS`] functions of allocators inside of the program.
    pub inner: *const InnerFunction,
    /// What [`Injection::kept_entry`] is to do for the first of them; the others follow.
    pub inner_kept: *const (),
    /// Bytes from one to the next.
    pub inner_kept_bytes: usize,
    /// First of [`crate::INNER_HEAPS`] names of heaps, 32 bytes each with zeros behind.
    pub inner_heap_names: *const [AtomicU64; 4],
    /// Called in place of the loader's `_dl_debug_state`, which does nothing: `extern "C" fn()`.
    pub after_load: *const (),
    /// The address of the words that tell the frees of samples; null before the agent has started.
    pub marks: *const (),
    /// From a thread's state to what is left of its countdown.
    pub countdown_offset: usize,
    /// A word: from the thread pointer to what is left of the thread's countdown; 0: that lies in
    /// its state.
    pub countdown_place: *const AtomicUsize,
    /// First of [`OWN_CALLS`] ranges (start, bytes): calls from there are not the program's.
    pub own_calls: *const [AtomicUsize; 2],
    /// First of `redirected_count` pairs: the address of a symbol's value that the agent has
    /// changed, and what it was; 0: none.
    pub redirected: *const [AtomicUsize; 2],
    /// How many.
    pub redirected_count: usize,
}

/// Symbols of allocators that an agent can change, of all of them.
pub const REDIRECTED_MAX: usize = 128;

/// The agent's code, and the allocator's.
pub const OWN_CALLS: usize = 2;

/// Allocators that are hooked besides the first one of a process.
pub const MORE_ALLOCATORS: usize = 3;

/// Value of [`Injection::clock`]: nothing has a time any more, so that nothing is recorded.
pub const CLOCK_STOPPED: u8 = 3;
/// As [`CLOCK_STOPPED`], for an agent that the loader loaded when the program started: it cannot be
/// taken out, and leads all calls around itself from the next one on.
pub const CLOCK_ENDED: u8 = 4;

/// One function that can be hooked.
#[derive(Debug)]
#[repr(C)]
pub struct InjectedHook {
    /// Its C name, `name_bytes` long.
    pub name: *const u8,
    /// Length of the name.
    pub name_bytes: usize,
    /// Where the function's calls go.
    pub trampoline: *const (),
    /// Where the agent looks for the function itself. Written by the injector before any call.
    pub real: *const AtomicUsize,
    /// `HOOK_*`.
    pub group: u64,
    /// What [`Injection::kept_entry`] is to do; null: only its `trampoline` can be used.
    pub kept: *const (),
}

/// [`InjectedHook::group`]: the allocator's functions of the C library's interface.
pub const HOOK_ALLOCATOR: u64 = 1;
/// [`InjectedHook::group`]: mmap and its kin.
pub const HOOK_MAPPING: u64 = 2;
/// [`InjectedHook::group`]: dlclose.
pub const HOOK_LOADER: u64 = 3;
/// [`InjectedHook::group`]: execve and its kin.
pub const HOOK_EXEC: u64 = 4;
/// [`InjectedHook::group`]: functions that only other allocators have.
pub const HOOK_FOREIGN: u64 = 5;
/// [`InjectedHook::group`]: operator new and delete; hooked only where the module also has a
/// malloc.
pub const HOOK_OPERATOR: u64 = 6;

/// Bytes of the session variable's value.
pub const SESSION_VALUE_BYTES_MAX: usize = 64;
/// Bytes of the agent's path for children, with its end.
pub const AGENT_PATH_BYTES_MAX: usize = 1024;

/// Bit of a key: it must be set to null before. The agent's own word is the key's value there
/// (musl), and a value that does not change is not noted for the thread's end.
pub const INJECTED_KEY_SET_TWICE: u32 = 1 << 31;

/// What the injector tells an agent, and what it answers.
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
    /// Its length; 0: children by exec are not followed.
    pub session_bytes: u64,
    /// Path of the agent's file, for children; zero-terminated; empty: as above.
    pub agent_path: [u8; AGENT_PATH_BYTES_MAX],
    /// Answer: 1 when recording, [`ATTACH_REFUSED`] plus a [`crate::DisableReason`] when not, 0
    /// before.
    pub outcome: u32,
    /// Answer: the process's slot.
    pub process_slot: u32,
    /// Answer: its generation.
    pub process_generation: u32,
    /// Answer: the process's id as it sees itself.
    pub inner_pid: u32,
    /// 1: hooked allocators may call each other, or themselves.
    pub nests: u32,
}

/// [`AttachParameters::outcome`]: recording.
pub const ATTACH_DONE: u32 = 1;
/// [`AttachParameters::outcome`]: not recording, for the reason that is added.
pub const ATTACH_REFUSED: u32 = 0x100;
