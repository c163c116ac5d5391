//! Follows programs that are started with a new environment.
//!
//! A child finds the session through two environment variables. A program that starts another with
//! a fresh environment (`env -i`, a language's `spawn(…, env={})`) would lose them. So the
//! functions that take an environment add the two if they are missing.
//!
//! The two are removed instead if the recorder is not visible, or if the loader could not load the
//! agent. (The loader would say so on the program's standard error.) Reasons are another root
//! directory, other mounts, another user, or another processor. Everything is built on the stack:
//! the caller may be a vfork child, which shares its parent's memory and never returns.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_ring::{sys, writer};
use heapr_wire::{Control, DisableReason, FLAG_NO_FOLLOW, SESSION_RECORDING};

use crate::hooks::look_inside;
use crate::hooks::real::REAL;
use crate::hooks::sandbox;
use crate::modules::link_map;
use crate::process::environment::{self, own_environment};
use crate::process::own_files::{decimal, for_each_line};
use crate::process::program_file;
use crate::process::program_file::{Kind, Program};
use crate::state::AGENT;

type Strings = *const *const c_char;

/// Largest number of entries of an environment that can be completed; a longer one is passed on
/// unchanged.
const ENTRIES_MAX: usize = 1024;
/// Largest number of bytes of a completed LD_PRELOAD.
const PRELOAD_BYTES_MAX: usize = 2048;
/// Largest number of bytes of the session variable with its name and end.
const SESSION_BYTES_MAX: usize = 80;

const PRELOAD_NAME: &[u8] = b"LD_PRELOAD=";
const SESSION_NAME: &[u8] = b"HEAPR_SESSION=";
const FLAGGED_NAME: &[u8] = b"HEAPR_FLAGGED=";
/// Beginning of the kernel's name for the buffers' file.
const POOL_LINK: &[u8] = b"/memfd:heapr-pool";

/// `HEAPR_SESSION=…` with its end, as this process received it. Written once at the start.
static SESSION: [AtomicUsize; SESSION_BYTES_MAX / 8] = [const { AtomicUsize::new(0) }; SESSION_BYTES_MAX / 8];
/// Path of the agent according to the loader.
static AGENT_PATH: AtomicUsize = AtomicUsize::new(0);

/// Stores the data that a child needs. `session` is the variable's value.
pub(crate) fn start(session: &[u8]) {
    if !keep_session(session) {
        return;
    }
    link_map::for_each_module(&mut |info| {
        let is_agent = info.contains(start as *const () as usize);
        if is_agent {
            AGENT_PATH.store(info.name as usize, Release);
        }
        is_agent
    });
}

/// Starts like [`start`], with the agent's path: zero-terminated, in memory that is never freed.
pub(crate) fn start_with(session: &[u8], agent_path: *const c_char) {
    if keep_session(session) {
        AGENT_PATH.store(agent_path as usize, Release);
    }
}

fn keep_session(session: &[u8]) -> bool {
    if SESSION_NAME.len().saturating_add(session.len()) >= SESSION_BYTES_MAX {
        return false;
    }
    let mut text = SESSION_NAME.iter().chain(session).copied();
    for place in &SESSION {
        let mut word = [0_u8; 8];
        for (byte, source) in word.iter_mut().zip(&mut text) {
            *byte = source;
        }
        place.store(usize::from_ne_bytes(word), Relaxed);
    }
    true
}

/// Returns the session, if it records children too.
fn followed() -> Option<&'static Control> {
    let control = AGENT.pool()?.control();
    let is_recording = control.state.load(Relaxed) == SESSION_RECORDING;
    (is_recording && control.flags.load(Relaxed) & FLAG_NO_FOLLOW == 0).then_some(control)
}

/// Returns the libraries of an LD_PRELOAD.
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b':' || byte == b' ').filter(|part| !part.is_empty())
}

fn note_refused(reason: u32, program: &[u8]) {
    if let Some(slot) = AGENT.slot_or_parents() {
        writer::store_untraced_name(slot, program);
        // Release: the name is written.
        slot.untraced_exec.store(reason, Release);
    }
}

/// Returns the reason why the next image cannot be recorded, as this process sees it just before
/// the exec.
fn obstacle(program: Program, agent_path: &CStr) -> Option<DisableReason> {
    if sandbox::forbids_start() {
        return Some(DisableReason::Forbidden);
    }
    match program_file::kind(program) {
        Kind::Other => return Some(DisableReason::OtherProcessor),
        Kind::Static => return Some(DisableReason::Static),
        Kind::Loaded => {}
    }
    let is_visible =
        sys::open(agent_path.to_bytes_with_nul(), false).is_ok() && sees_pool() && is_recorders_user();
    (!is_visible).then_some(DisableReason::NotVisible)
}

/// True if the next image may see the recorder's descriptors: an image of another user may not,
/// although this one may by its capabilities.
fn is_recorders_user() -> bool {
    let Some(pool) = AGENT.pool() else { return true };
    let mut user = None;
    for_each_line(b"/proc/self/status\0", &mut |line| {
        // Real user id, then effective user id.
        if let Some(users) = line.strip_prefix(b"Uid:\t") {
            user = users.split(|&byte| byte == b'\t').nth(1).map(decimal);
        }
    });
    user.is_none_or(|user| user == u64::from(pool.control().recorder_uid.load(Relaxed)))
}

/// True if the recorder's descriptor leads to its buffers from this process.
fn sees_pool() -> bool {
    let mut session = [0_u8; SESSION_BYTES_MAX];
    for (place, word) in session.chunks_exact_mut(8).zip(&SESSION) {
        place.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    let value = session.get(SESSION_NAME.len()..).unwrap_or_default();
    let value = value.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut link = [0; 64];
    environment::pool_path(value)
        .is_some_and(|path| sys::read_link(&path, &mut link).is_ok_and(|link| link.starts_with(POOL_LINK)))
}

/// Room for a completed environment.
pub(crate) struct Completed {
    entries: [*const c_char; ENTRIES_MAX + 3],
    preload: [u8; PRELOAD_BYTES_MAX],
    /// Whether the next image was counted as one that is not recorded.
    is_refused: bool,
    /// Whether the calling thread itself execs, not a child.
    is_own_exec: bool,
}

impl Completed {
    pub(crate) fn new() -> Self {
        Self {
            entries: [core::ptr::null(); ENTRIES_MAX + 3],
            preload: [0; PRELOAD_BYTES_MAX],
            is_refused: false,
            is_own_exec: false,
        }
    }

    /// Makes room for a call by which this thread itself execs: then the recorder can hold the
    /// exec.
    pub(crate) fn of_own_exec() -> Self {
        Self { is_own_exec: true, ..Self::new() }
    }

    /// Returns `environment`, or a copy of it that leads to the session. If the next image cannot
    /// or must not start the agent, the copy leads away from the session. The result borrows from
    /// `self` and `environment`.
    pub(crate) fn complete(&mut self, program: Program, environment: Strings) -> Strings {
        let path = AGENT_PATH.load(Acquire) as *const c_char;
        if path.is_null() || environment.is_null() {
            return environment;
        }
        // SAFETY: the loader's string for the agent, which is never unloaded.
        let path = unsafe { CStr::from_ptr(path) };
        if let Some(reason) = obstacle(program, path)
            && !(reason == DisableReason::Static && self.is_for_valgrind(environment))
        {
            let is_held = matches!(reason, DisableReason::NotVisible | DisableReason::Static)
                && self.is_own_exec
                && AGENT.is_active()
                && followed().is_some()
                && look_inside::ask_to_hold_exec(program_file::name_of(program));
            let reason = (!is_held).then_some((reason, program));
            return self.refuse(environment, path.to_bytes(), reason);
        }
        let path = path.to_bytes();
        if !AGENT.is_active() || followed().is_none() {
            return environment;
        }
        let mut preload = None;
        let mut has_session = false;
        let copied = self.copy(environment, |number, text| {
            if let Some(value) = text.strip_prefix(PRELOAD_NAME) {
                preload = Some((number, value));
            }
            has_session |= text.starts_with(SESSION_NAME);
        });
        let Some(mut count) = copied else { return environment };
        let is_preloaded = preload.is_some_and(|(_, value)| parts(value).any(|part| part == path));
        if is_preloaded && has_session {
            return environment;
        }
        if !is_preloaded {
            let value = preload.map_or(&b""[..], |(_, value)| value);
            let separator: &[u8] = if value.is_empty() { b"" } else { b":" };
            if PRELOAD_NAME.len() + path.len() + value.len() + 2 > PRELOAD_BYTES_MAX {
                return environment;
            }
            let text = PRELOAD_NAME.iter().chain(path).chain(separator).chain(value);
            for (place, &byte) in self.preload.iter_mut().zip(text) {
                *place = byte;
            }
            let index = preload.map_or(count, |(index, _)| index);
            if let Some(place) = self.entries.get_mut(index) {
                *place = self.preload.as_ptr().cast();
            }
            count = count.max(index.wrapping_add(1));
        }
        if !has_session && let Some(place) = self.entries.get_mut(count) {
            *place = SESSION.as_ptr().cast();
            count = count.wrapping_add(1);
        }
        if let Some(place) = self.entries.get_mut(count) {
            *place = core::ptr::null();
        }
        self.entries.as_ptr()
    }

    /// Returns `environment` without heapr's variables, and counts a program that should have been
    /// recorded and is not.
    fn refuse(
        &mut self,
        environment: Strings,
        path: &[u8],
        reason: Option<(DisableReason, Program)>,
    ) -> Strings {
        if let Some((reason, program)) = reason
            && AGENT.is_active()
            && let Some(control) = followed()
        {
            self.is_refused = true;
            control.processes_refused.fetch_add(1, Relaxed);
            note_refused(reason as u32, program_file::name_of(program));
        }
        let mut kept = 0_usize;
        for number in 0..ENTRIES_MAX {
            // SAFETY: an environment is an array of strings that ends with a null pointer; the
            // caller passes one to exec.
            let entry = unsafe { *environment.add(number) };
            if entry.is_null() {
                break;
            }
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
            let mut entry = entry;
            if text.starts_with(SESSION_NAME) || text.starts_with(FLAGGED_NAME) {
                continue;
            }
            if let Some(value) = text.strip_prefix(PRELOAD_NAME) {
                if !parts(value).any(|part| part == path) {
                    // A value without the agent.
                } else if parts(value).all(|part| part == path) {
                    continue;
                } else if text.len() < PRELOAD_BYTES_MAX {
                    self.keep_others(value, path);
                    entry = self.preload.as_ptr().cast();
                }
            }
            if let Some(place) = self.entries.get_mut(kept) {
                *place = entry;
            }
            kept = kept.wrapping_add(1);
        }
        if kept >= ENTRIES_MAX {
            return environment;
        }
        if let Some(place) = self.entries.get_mut(kept) {
            *place = core::ptr::null();
        }
        self.entries.as_ptr()
    }

    /// Builds an LD_PRELOAD of all libraries other than the agent.
    fn keep_others(&mut self, value: &[u8], path: &[u8]) {
        let mut places = self.preload.iter_mut();
        let mut put = |text: &[u8]| {
            for (&byte, place) in text.iter().zip(&mut places) {
                *place = byte;
            }
        };
        put(PRELOAD_NAME);
        let mut separator: &[u8] = b"";
        for part in parts(value).filter(|&part| part != path) {
            put(separator);
            put(part);
            separator = b":";
        }
        put(b"\0");
    }

    /// Undoes the count after the call has returned `answer`; 0: a child runs the program.
    pub(crate) fn came_back(&self, answer: c_int) -> c_int {
        if answer != 0
            && self.is_refused
            && let Some(control) = followed()
        {
            control.processes_refused.fetch_sub(1, Relaxed);
            note_refused(0, &[]);
        }
        answer
    }

    /// True if Valgrind execs one of its tools: each is linked statically, and loads the program
    /// itself together with the preloaded libraries.
    fn is_for_valgrind(&mut self, environment: Strings) -> bool {
        let mut is_it = false;
        self.copy(environment, |_, text| is_it |= text.starts_with(b"VALGRIND_LAUNCHER="));
        is_it
    }

    /// Copies an environment, without its end, and returns the number of its entries. `look` is
    /// called with each entry and its index. Returns `None` if there are too many.
    fn copy<'a>(&mut self, environment: Strings, mut look: impl FnMut(usize, &'a [u8])) -> Option<usize> {
        for (number, place) in self.entries.iter_mut().take(ENTRIES_MAX).enumerate() {
            // SAFETY: an environment is an array of strings that ends with a null pointer; the
            // caller passes one to exec.
            let entry = unsafe { *environment.add(number) };
            if entry.is_null() {
                return Some(number);
            }
            *place = entry;
            // SAFETY: as above; the strings stay for as long as the caller's array.
            look(number, unsafe { CStr::from_ptr(entry) }.to_bytes());
        }
        None
    }
}

/// The C function: calls execve with the program's own environment, which may have lost the two
/// variables.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    let mut completed = Completed::of_own_exec();
    let answer = REAL.execve(path, arguments, completed.complete(Program::Path(path), own_environment()));
    completed.came_back(answer)
}

/// The C function: calls execvpe with the program's own environment.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    let mut completed = Completed::of_own_exec();
    let answer =
        REAL.execvpe(file, arguments, completed.complete(Program::Searched(file), own_environment()));
    completed.came_back(answer)
}

macro_rules! exec_functions {
    ($($name:ident($($argument:ident: $kind:ty),*; environment $(; $after:ident: $after_kind:ty)?) $program:expr;)*) => {$(
        /// The C function of this name, with the environment completed.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name(
            $($argument: $kind,)* environment: Strings $(, $after: $after_kind)?
        ) -> c_int {
            let is_spawn = const { matches!(stringify!($name).as_bytes(), [b'p', ..]) };
            let mut completed = if is_spawn { Completed::new() } else { Completed::of_own_exec() };
            let environment = completed.complete($program, environment);
            let answer = REAL.$name($($argument,)* environment $(, $after)?);
            completed.came_back(answer)
        }
    )*};
}

exec_functions! {
    execve(path: *const c_char, arguments: Strings; environment) Program::Path(path);
    execvpe(file: *const c_char, arguments: Strings; environment) Program::Searched(file);
    fexecve(descriptor: c_int, arguments: Strings; environment) Program::At(descriptor, c"".as_ptr());
    execveat(directory: c_int, path: *const c_char, arguments: Strings; environment; flags: c_int)
        Program::At(directory, path);
    posix_spawn(
        process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings;
        environment
    ) Program::Path(path);
    posix_spawnp(
        process: *mut c_int, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Strings;
        environment
    ) Program::Searched(file);
}
