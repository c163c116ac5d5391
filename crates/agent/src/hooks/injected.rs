//! The agent in a process that was running before: its interface for the injector, and its start.
//!
//! The injector maps and relocates the agent without the target's loader, so no code here may need
//! the loader. The real functions' addresses are filled in from outside, and the data that
//! `dl_iterate_phdr` would provide is passed in. All threads of the target are stopped while
//! [`attach`] runs: it takes no lock and does not wait.

use core::ffi::c_char;
use core::ptr::null;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use heapr_ring::{Pool, mappings, sys};
use heapr_wire::{
    ATTACH_DONE, ATTACH_REFUSED, AttachParameters, BUILD_ID, DisableReason, FLAG_CLOCK_TSC, FLAG_HOOK_MMAP,
    HOOK_ALLOCATOR, HOOK_EXEC, HOOK_LOADER, HOOK_MAPPING, INJECTION_MAGIC, InjectedHook, Injection,
    SESSION_RECORDING,
};

use crate::arch::wide_registers;
use crate::frames::control_block;
use crate::hooks;
use crate::hooks::all_registers::{self, HookedFunction};
use crate::hooks::call_by_number;
use crate::hooks::entries;
use crate::hooks::exec;
use crate::hooks::foreign;
use crate::hooks::inner_functions;
use crate::hooks::inner_table;
use crate::hooks::last_facts;
use crate::hooks::locking;
use crate::hooks::look_inside;
use crate::hooks::mapping_hooks;
use crate::hooks::plain_calls;
use crate::hooks::real::{EXITS, MMAP, MREMAP, REAL, Real, SYSCALL};
use crate::hooks::registered_code;
use crate::hooks::sampling;
use crate::hooks::sandbox;
use crate::hooks::shared::Shared;
use crate::hooks::start;
use crate::hooks::symbol_tables;
use crate::modules;
use crate::record::{thread, thread_key};
use crate::state::page_marks;
use crate::state::program;
use crate::state::{ACTIVE, AGENT, STARTING, UNSTARTED};

const fn hook(
    real: &'static Real,
    trampoline: *const (),
    group: u64,
    kept: *const HookedFunction,
) -> InjectedHook {
    InjectedHook {
        name: real.name.as_ptr(),
        name_bytes: real.name.len(),
        trampoline,
        real: real.place(),
        group,
        kept: kept.cast(),
    }
}

macro_rules! hooks {
    ($($name:ident $words:literal $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        hooks! { @all $($name)*;
            __register_frame __register_frame_info __register_frame_info_bases __register_frame_table
            __register_frame_info_table __register_frame_info_table_bases __deregister_frame __deregister_frame_info
            __deregister_frame_info_bases
        }
    };
    (@all $($name:ident)* ; $($code:ident)*) => {
        static HOOKS: Shared<[InjectedHook; all_registers::COUNT + 24]> = Shared([
            $(hook(&REAL.$name, entries::$name as *const (), HOOK_ALLOCATOR, &raw const all_registers::first::$name),)*
            hook(&REAL.dlclose, entries::dlclose as *const (), HOOK_LOADER, null()),
            hook(&REAL.munmap, entries::munmap as *const (), HOOK_MAPPING, null()),
            hook(&REAL.mprotect, entries::mprotect as *const (), HOOK_MAPPING, null()),
            hook(&REAL.sbrk, entries::sbrk as *const (), HOOK_MAPPING, null()),
            hook(&REAL.brk, entries::brk as *const (), HOOK_MAPPING, null()),
            hook(&MMAP, mapping_hooks::mmap as *const (), HOOK_MAPPING, null()),
            hook(&MREMAP, mapping_hooks::mremap as *const (), HOOK_MAPPING, null()),
            hook(&REAL.execve, exec::execve as *const (), HOOK_EXEC, null()),
            hook(&REAL.execveat, exec::execveat as *const (), HOOK_EXEC, null()),
            hook(&REAL.fexecve, exec::fexecve as *const (), HOOK_EXEC, null()),
            hook(&REAL.prctl, sandbox::prctl as *const (), HOOK_EXEC, null()),
            hook(&EXITS[0], last_facts::exit_now as *const (), HOOK_EXEC, null()),
            hook(&EXITS[1], last_facts::exit_now as *const (), HOOK_EXEC, null()),
            hook(&REAL.mlockall, locking::mlockall as *const (), HOOK_EXEC, null()),
            hook(&SYSCALL, call_by_number::syscall as *const (), HOOK_EXEC, null()),
            $(hook(&registered_code::real::$code, registered_code::$code as *const (), HOOK_LOADER, null()),)*
        ]);
    };
}

// execv, execvp, posix_spawn and their variants end in these three functions within the C library.
for_all_allocator_functions! { hooks }

/// See [`Injection`].
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
#[allow(non_upper_case_globals, reason = "exported under this name")]
#[used]
pub(crate) static heapr_injection: Shared<Injection> = Shared(Injection {
    magic: INJECTION_MAGIC,
    build_id: BUILD_ID,
    attach: attach as *const (),
    end_of_thread: thread_key::end_of_thread as *const (),
    hooks: (&raw const HOOKS).cast(),
    hook_count: HOOKS.0.len(),
    foreign: (&raw const foreign::INJECTED).cast(),
    foreign_count: foreign::INJECTED.0.len(),
    mappings: (&raw const mappings::MAPPINGS).cast(),
    mapping_count: mappings::MAPPINGS.len(),
    clock: AGENT.clock.choice_place(),
    all_registers_entry: all_registers::all_registers_entry as *const (),
    light_entry: all_registers::light_entry as *const (),
    more: (&raw const all_registers::MORE).cast(),
    more_count: all_registers::MORE.0.len(),
    claim_key: thread_key::claim_key as *const (),
    inner: (&raw const inner_table::FUNCTIONS).cast(),
    inner_kept: (&raw const inner_functions::KEPT).cast(),
    inner_kept_bytes: size_of::<HookedFunction>(),
    inner_heap_names: (&raw const plain_calls::HEAP_NAMES).cast(),
    after_load: (&raw const look_inside::AFTER_LOAD).cast(),
    marks: (&raw const page_marks::MARKS).cast(),
    countdown_offset: thread::LEFT_BYTES_OFFSET,
    countdown_place: &raw const sampling::COUNTDOWN_PLACE,
    own_calls: (&raw const sampling::OWN_CALLS).cast(),
    redirected: (&raw const symbol_tables::REDIRECTED).cast(),
    redirected_count: symbol_tables::REDIRECTED.len(),
});

/// Starts the agent. Called by the injector on a stack of the injector's, before any function is
/// hooked.
///
/// # Safety
/// 1. `parameters` points to parameters that are never moved (children read the path in them), and
///    the table of real functions is filled.
pub(crate) unsafe extern "C" fn attach(parameters: *mut AttachParameters) {
    // SAFETY: (1).
    let parameters = unsafe { &mut *parameters };
    let outcome = join(parameters);
    parameters.outcome = match outcome {
        Ok(()) => ATTACH_DONE,
        Err(reason) => ATTACH_REFUSED.wrapping_add(reason as u32),
    };
}

fn join(parameters: &mut AttachParameters) -> Result<(), DisableReason> {
    let descriptor = sys::Descriptor::from_number(parameters.pool_descriptor);
    if AGENT.state.compare_exchange(UNSTARTED, STARTING, AcqRel, Relaxed).is_err() {
        return Err(DisableReason::BadPool);
    }
    AGENT.on_end.set(hooks::bypass);
    AGENT.is_injected.store(1, Relaxed);
    locking::look_for_locking();
    let pool = Pool::open(&descriptor).map_err(start::reason_of)?;
    drop(descriptor);
    let control = pool.control();
    let flags = control.flags.load(Relaxed);
    if control.state.load(Relaxed) != SESSION_RECORDING {
        return Err(DisableReason::SessionClosed);
    }
    AGENT.start_ticks.store(control.start_ticks.load(Relaxed), Relaxed);
    if flags & FLAG_CLOCK_TSC == 0 {
        AGENT.clock.use_monotonic();
    }
    wide_registers::begin_keeping();
    foreign::call_what_does_not_throw();
    program::read_executable();
    AGENT.attach(pool)?;
    let session = parameters.session.get(..parameters.session_bytes as usize).unwrap_or_default();
    let [first, ..] = parameters.agent_path;
    if first != 0 {
        exec::start_with(session, (&raw const parameters.agent_path).cast::<c_char>());
    }
    control_block::start_with(parameters.stack_end_avma as usize);
    control_block::learn_here();
    modules::ON_NEW.set(hooks::look_at_new_modules);
    modules::start_with(parameters.find_object_avma as usize);
    let records_mappings = flags & FLAG_HOOK_MMAP != 0;
    mapping_hooks::arm(records_mappings);
    thread_key::register_as(parameters.end_key, parameters.set_specific_avma as usize);
    if foreign::is_any_known() || parameters.nests != 0 {
        hooks::watch_inner_calls();
    }
    look_inside::note_found();
    look_inside::expect_loads();
    sampling::start();
    AGENT.state.store(ACTIVE, Release);
    let Some(claim) = AGENT.process() else { return Err(DisableReason::NoProcessSlot) };
    parameters.process_slot = claim.index;
    parameters.process_generation = claim.generation;
    parameters.inner_pid = sys::process_id();
    Ok(())
}
