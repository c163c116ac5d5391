//! Starts the agent in a process: the environment, the pool, the real functions.
//!
//! Runs at the first call of any hook or from the agent's own constructor, on the only thread that
//! exists then. (The first call may be in a constructor of another library, before the agent's.)

use core::ffi::c_void;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use heapr_ring::{Pool, PoolError, sys};
use heapr_wire::{DisableReason, FLAG_CLOCK_TSC, FLAG_HOOK_MMAP, SESSION_RECORDING};

use crate::frames::control_block;
use crate::hooks;
use crate::hooks::by_handle;
use crate::hooks::foreign;
use crate::hooks::inner_calls;
use crate::hooks::look_inside;
use crate::hooks::mapping_hooks;
use crate::hooks::real::REAL;
use crate::hooks::step_aside;
use crate::hooks::{exec, sampling, sanitizers};
use crate::modules;
use crate::modules::link_map;
use crate::process::environment;
use crate::record::{events, thread_key};
use crate::state::program;
use crate::state::{ACTIVE, AGENT, STARTING, UNSTARTED};

/// Starts the agent, unless it is started.
#[cold]
pub(crate) fn start() {
    if AGENT.state.compare_exchange(UNSTARTED, STARTING, AcqRel, Relaxed).is_err() {
        return;
    }
    AGENT.on_end.set(hooks::bypass);
    if sanitizers::bypass() {
        return;
    }
    REAL.resolve();
    let (session, is_disabled) = environment::read();
    let outcome = match session {
        _ if REAL.malloc.address() == 0 || REAL.free.address() == 0 => Err(DisableReason::NoAllocator),
        Some(session) if !is_disabled => join(&session),
        _ => Err(DisableReason::SessionClosed),
    };
    match outcome {
        // Release: pairs only with the thread creation that follows; the table above is complete.
        Ok(()) => AGENT.state.store(ACTIVE, Release),
        Err(reason) => {
            AGENT.disable(reason);
            step_aside::step_aside();
        }
    }
}

/// Returns the reason why the agent does not record, for buffers that it cannot open.
pub(crate) fn reason_of(error: PoolError) -> DisableReason {
    match error {
        PoolError::System { .. } => DisableReason::NoMemory,
        _ => DisableReason::BadPool,
    }
}

fn join(path: &environment::PoolPath) -> Result<(), DisableReason> {
    let descriptor = sys::open(&path.bytes, true).map_err(|_| DisableReason::RecorderDied)?;
    let pool = Pool::open(&descriptor).map_err(reason_of)?;
    let control = pool.control();
    let flags = control.flags.load(Relaxed);
    let is_recording = control.state.load(Relaxed) == SESSION_RECORDING;
    AGENT.start_ticks.store(control.start_ticks.load(Relaxed), Relaxed);
    if flags & FLAG_CLOCK_TSC == 0 {
        AGENT.clock.use_monotonic();
    }
    if !is_recording {
        return Err(DisableReason::SessionClosed);
    }
    program::read_executable();
    program::read_command_line();
    AGENT.attach(pool)?;
    exec::start(path.value.get(..path.value_bytes).unwrap_or_default());
    control_block::start();
    let has_own_malloc = link_map::is_defined_before_agent(b"malloc");
    AGENT.has_own_malloc.store(u32::from(has_own_malloc), Relaxed);
    modules::ON_NEW.set(hooks::look_at_new_modules);
    modules::start();
    mapping_hooks::arm(flags & FLAG_HOOK_MMAP != 0);
    inner_calls::start();
    foreign::start();
    by_handle::look();
    sampling::start();
    Ok(())
}

/// Constructor: the part of the start for which the C library must be ready.
pub(crate) extern "C" fn construct() {
    start();
    if !AGENT.is_active() {
        sanitizers::report();
        return;
    }
    thread_key::register(REAL.pthread_key_create.found_late(), REAL.pthread_key_delete.found_late());
    register_fork_handler();
    // Registers process and main thread, so that a program that allocates nothing is seen too.
    events::announce();
    foreign::start();
    look_inside::ask();
}

/// Registers a fork handler. After a fork the child's first event registers the child anyway. Doing
/// so at once, in the C library's fork handler, is for programs that then forbid themselves system
/// calls (seccomp).
fn register_fork_handler() {
    extern "C" fn before() {
        if let Some(pool) = AGENT.pool().filter(|_| AGENT.is_active()) {
            pool.control().forks_begun.fetch_add(1, Relaxed);
        }
    }
    extern "C" fn in_child() {
        if AGENT.is_active() {
            events::announce();
            sampling::begin_child();
        }
    }
    let address = link_map::find_anywhere(b"__register_atfork");
    if address == 0 {
        return;
    }
    type Handler = Option<extern "C" fn()>;
    // SAFETY: glibc's function behind pthread_atfork, with this signature since 2.3.
    unsafe {
        let register: unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> i32 =
            core::mem::transmute(address);
        register(Some(before), None, Some(in_child), core::ptr::null_mut());
    }
}
