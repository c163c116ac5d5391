//! Starting the agent in a process: the environment, the pool, the real functions.
//!
//! Runs at the first call of any hook (which may be a constructor of another library, before ours) or from our own
//! constructor, on the only thread that exists then.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use heapr_ring::{Pool, PoolError, sys};
use heapr_wire::{DisableReason, FLAG_CLOCK_TSC, FLAG_HOOK_MMAP, SESSION_RECORDING};

use crate::frames::control_block;
use crate::hooks;
use crate::hooks::foreign;
use crate::hooks::inner_calls;
use crate::hooks::mapping_hooks;
use crate::hooks::real::REAL;
use crate::hooks::step_aside;
use crate::modules;
use crate::modules::link_map;
use crate::process::exec;
use crate::process::flagged;
use crate::process::sanitizers;
use crate::record::{events, thread};
use crate::state::program;
use crate::state::{ACTIVE, AGENT, STARTING, UNSTARTED};

/// Environment variable with `pid:descriptor` of the recorder's pool.
const SESSION_VARIABLE: &[u8] = b"HEAPR_SESSION=";
/// Environment variable that loads the agent without recording: for measuring what its presence costs.
const DISABLE_VARIABLE: &[u8] = b"HEAPR_DISABLE=";

/// Starts the agent unless that was done.
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
    let (session, is_disabled) = read_environment();
    let outcome = match session {
        _ if REAL.malloc.address() == 0 || REAL.free.address() == 0 => Err(DisableReason::NoAllocator),
        Some(session) if !is_disabled => join(&session),
        _ => Err(DisableReason::SessionClosed),
    };
    match outcome {
        // Release: pairs with nothing but the thread creation that follows; the table above is complete.
        Ok(()) => AGENT.state.store(ACTIVE, Release),
        Err(reason) => {
            AGENT.disable(reason);
            step_aside::step_aside();
        }
    }
}

/// As [`start`], for the trampolines of mmap and mremap, whose slots lead here until one of them has been chosen.
pub(crate) unsafe extern "C" fn start_for_mapping() {
    start();
    if AGENT.state.load(Relaxed) == STARTING {
        // Called from within the start itself.
        mapping_hooks::arm(false);
    }
}

/// As [`start`], for a trampoline.
pub(crate) unsafe extern "C" fn start_for_call() {
    start();
}

const POOL_PATH_BYTES: usize = 48;

/// What the session variable says.
struct PoolPath {
    /// `/proc/PID/fd/N` and a zero byte.
    bytes: [u8; POOL_PATH_BYTES],
    /// The variable's value, for children.
    value: [u8; 64],
    value_bytes: usize,
}

/// Why the agent does not record with buffers that it cannot open.
pub(crate) fn reason_of(error: PoolError) -> DisableReason {
    match error {
        PoolError::System { .. } => DisableReason::NoMemory,
        _ => DisableReason::BadPool,
    }
}

fn join(path: &PoolPath) -> Result<(), DisableReason> {
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
    AGENT.attach(pool)?;
    exec::start(path.value.get(..path.value_bytes).unwrap_or_default());
    control_block::start();
    let has_own_malloc = link_map::is_defined_before_agent(b"malloc");
    AGENT.has_own_malloc.store(u32::from(has_own_malloc), Relaxed);
    modules::ON_NEW.set(foreign::start);
    modules::start();
    mapping_hooks::arm(flags & FLAG_HOOK_MMAP != 0);
    inner_calls::start();
    foreign::start();
    Ok(())
}

/// Constructor: what needs the C library to be ready.
pub(crate) extern "C" fn construct() {
    start();
    if !AGENT.is_active() {
        sanitizers::report();
        return;
    }
    thread::register_end_of_thread(
        REAL.pthread_key_create.found_late(),
        REAL.pthread_key_delete.found_late(),
    );
    register_fork_handler();
    // Registers process and main thread now, so that a program that allocates nothing is seen too.
    events::announce();
    foreign::start();
}

/// After a fork the child's first event registers it anyway; doing so at once, in the C library's fork handler, is
/// for programs that then forbid themselves system calls (seccomp).
fn register_fork_handler() {
    extern "C" fn before() {
        if let Some(pool) = AGENT.pool().filter(|_| AGENT.is_active()) {
            pool.control().forks_begun.fetch_add(1, Relaxed);
        }
    }
    extern "C" fn in_child() {
        if AGENT.is_active() {
            events::announce();
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

/// Environment variable of one user's own programs; see [`flagged`].
const FLAGGED_VARIABLE: &[u8] = b"HEAPR_FLAGGED=";

/// What the variables say, line by line.
struct Variables {
    session: Option<PoolPath>,
    is_disabled: bool,
    allows_address_sanitizer: bool,
    /// Where sessions say which programs they want.
    flagged: [u8; flagged::PATH_BYTES_MAX],
    flagged_bytes: usize,
    /// The path by which the program was started.
    started_as: &'static [u8],
}

impl Variables {
    const NONE: Self = Self {
        session: None,
        is_disabled: false,
        allows_address_sanitizer: false,
        flagged: [0; flagged::PATH_BYTES_MAX],
        flagged_bytes: 0,
        started_as: &[],
    };

    fn take(&mut self, line: &[u8]) {
        if let Some(value) = line.strip_prefix(SESSION_VARIABLE) {
            self.session = parse_session(value);
        } else if line.strip_prefix(DISABLE_VARIABLE).is_some_and(|value| value != b"0") {
            self.is_disabled = true;
        } else if let Some(options) = line.strip_prefix(b"ASAN_OPTIONS=") {
            self.allows_address_sanitizer = sanitizers::may_come_second(options);
        } else if let Some(value) = line.strip_prefix(FLAGGED_VARIABLE)
            && let Some(place) = self.flagged.get_mut(..value.len())
        {
            place.copy_from_slice(value);
            self.flagged_bytes = value.len();
        }
    }
}

/// Reads the variables from the environment that the program was started with (not from `environ`, which is not
/// set up yet when the first hook runs).
fn read_environment() -> (Option<PoolPath>, bool) {
    let mut variables = Variables::NONE;
    read_start_block(&mut variables);
    if variables.session.is_none() && variables.flagged_bytes == 0 {
        read_environment_file(&mut variables);
    }
    if variables.session.is_none() && variables.flagged_bytes != 0 {
        let path = variables.flagged.get(..variables.flagged_bytes).unwrap_or_default();
        let session = &mut variables.session;
        flagged::find_session(path, variables.started_as, &mut |value| *session = parse_session(value));
    }
    (variables.session, variables.is_disabled)
}

/// Path of the buffers' descriptor, and whether the agent is switched off.
pub(crate) fn session() -> (Option<[u8; POOL_PATH_BYTES]>, bool) {
    let (session, is_disabled) = read_environment();
    (session.map(|session| session.bytes), is_disabled)
}

/// Whether AddressSanitizer's options say that its library need not be the first.
pub(crate) fn allows_address_sanitizer() -> bool {
    let mut variables = Variables::NONE;
    read_start_block(&mut variables);
    variables.allows_address_sanitizer
}

/// The block at the end of the stack, which a session with flagged programs has written into: the kernel's file of the
/// environment does not show that.
fn read_start_block(variables: &mut Variables) {
    const ARGUMENTS_MAX: usize = 1 << 20;
    const ENTRIES_MAX: usize = 1 << 16;
    let variable = link_map::find_anywhere(b"__libc_stack_end") as *const *const usize;
    if variable.is_null() {
        return;
    }
    // SAFETY: glibc's loader exports this variable and has set it before it calls anybody.
    let block = unsafe { variable.read() };
    if block.is_null() {
        return;
    }
    // SAFETY: it points to the number of arguments, as the kernel has put it there.
    let argument_count = unsafe { block.read() };
    if argument_count > ARGUMENTS_MAX {
        return;
    }
    if argument_count != 0 {
        // SAFETY: the first argument, which stands behind the number.
        let first = unsafe { block.wrapping_add(1).cast::<*const c_char>().read() };
        if !first.is_null() {
            // SAFETY: a string with an end, on the stack that the kernel has made; it stays.
            variables.started_as = unsafe { CStr::from_ptr(first) }.to_bytes();
        }
    }
    for number in 0..ENTRIES_MAX {
        // Behind the count: the arguments, a null, then the variables up to a null.
        let place = block.wrapping_add(argument_count.wrapping_add(2).wrapping_add(number));
        // SAFETY: in the block, as no null was met yet.
        let entry = unsafe { place.cast::<*const c_char>().read() };
        if entry.is_null() {
            return;
        }
        // SAFETY: a string with an end, by the rules of exec, that nobody changes while the program starts.
        variables.take(unsafe { CStr::from_ptr(entry) }.to_bytes());
    }
}

/// The same from the kernel, for C libraries that do not tell where the block is.
fn read_environment_file(variables: &mut Variables) {
    let Ok(file) = sys::open(b"/proc/self/environ\0", false) else { return };
    let mut line = [0_u8; 64 + flagged::PATH_BYTES_MAX];
    let mut line_bytes = 0_usize;
    let mut chunk = [0_u8; 512];
    loop {
        let count = match sys::read(&file, &mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(sys::EINTR) => continue,
            Err(_) => break,
        };
        for &byte in chunk.get(..count).unwrap_or_default() {
            if byte != 0 {
                // A longer line is none of ours: it is cut, and its beginning cannot match in full.
                if let Some(place) = line.get_mut(line_bytes) {
                    *place = byte;
                }
                line_bytes = line_bytes.saturating_add(1);
                continue;
            }
            variables.take(line.get(..line_bytes).unwrap_or_default());
            line_bytes = 0;
        }
    }
}

fn is_number(part: &[u8]) -> bool {
    !part.is_empty() && part.len() <= 10 && part.iter().all(u8::is_ascii_digit)
}

/// `PID:FD` or `PID:FD:ROOT` to `/proc/PID/fd/FD` and a zero byte.
pub(crate) fn pool_path(value: &[u8]) -> Option<[u8; POOL_PATH_BYTES]> {
    let mut parts = value.split(|&byte| byte == b':').take_while(|part| is_number(part));
    let (process, descriptor) = (parts.next()?, parts.next()?);
    let mut bytes = [0; POOL_PATH_BYTES];
    let parts: [&[u8]; 4] = [b"/proc/", process, b"/fd/", descriptor];
    let text = parts.iter().flat_map(|part| part.iter());
    for (place, &byte) in bytes.iter_mut().zip(text) {
        *place = byte;
    }
    Some(bytes)
}

fn parse_session(value: &[u8]) -> Option<PoolPath> {
    let bytes = pool_path(value)?;
    let root = value.split(|&byte| byte == b':').nth(2).filter(|root| is_number(root)).unwrap_or_default();
    let root = root.iter().fold(0_u32, |number, &digit| {
        number.wrapping_mul(10).wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    });
    program::set_named_root(root);
    let mut copy = [0; 64];
    copy.get_mut(..value.len())?.copy_from_slice(value);
    Some(PoolPath { bytes, value: copy, value_bytes: value.len() })
}
