//! Settings for the agent in the program's environment: the one with which it was started, and the
//! present one.

use core::ffi::{CStr, c_char};
use core::sync::atomic::AtomicUsize;

use heapr_ring::sys;

use crate::modules::link_map;
use crate::process::flagged_program;
use crate::state::program;

type Strings = *const *const c_char;

/// Environment variable with `pid:descriptor` of the recorder's pool.
const SESSION_VARIABLE: &[u8] = b"HEAPR_SESSION=";
/// Environment variable that loads the agent without recording, to measure the cost of its
/// presence.
const DISABLE_VARIABLE: &[u8] = b"HEAPR_DISABLE=";

const POOL_PATH_BYTES: usize = 48;

/// Contents of the session variable.
pub(crate) struct PoolPath {
    /// `/proc/PID/fd/N` and a zero byte.
    pub(crate) bytes: [u8; POOL_PATH_BYTES],
    /// Value of the variable, for children.
    pub(crate) value: [u8; 64],
    pub(crate) value_bytes: usize,
}

/// Environment variable of one user's programs that a session may flag; see [`flagged_program`].
const FLAGGED_VARIABLE: &[u8] = b"HEAPR_FLAGGED=";

/// Values of the variables.
struct Variables {
    session: Option<PoolPath>,
    is_disabled: bool,
    allows_address_sanitizer: bool,
    /// Path of the files in which sessions name the programs that they want.
    flagged: [u8; flagged_program::PATH_BYTES_MAX],
    flagged_bytes: usize,
    /// The path by which the program was started.
    started_as: &'static [u8],
}

impl Variables {
    const NONE: Self = Self {
        session: None,
        is_disabled: false,
        allows_address_sanitizer: false,
        flagged: [0; flagged_program::PATH_BYTES_MAX],
        flagged_bytes: 0,
        started_as: &[],
    };

    fn take(&mut self, line: &[u8]) {
        if let Some(value) = line.strip_prefix(SESSION_VARIABLE) {
            self.session = parse_session(value);
        } else if line.strip_prefix(DISABLE_VARIABLE).is_some_and(|value| value != b"0") {
            self.is_disabled = true;
        } else if let Some(options) = line.strip_prefix(b"ASAN_OPTIONS=") {
            self.allows_address_sanitizer = may_come_second(options);
        } else if let Some(value) = line.strip_prefix(FLAGGED_VARIABLE)
            && let Some(place) = self.flagged.get_mut(..value.len())
        {
            place.copy_from_slice(value);
            self.flagged_bytes = value.len();
        }
    }
}

/// Reads the variables from the environment with which the program was started. (`environ` is not
/// set up yet when the first hook runs.)
pub(crate) fn read() -> (Option<PoolPath>, bool) {
    let mut variables = Variables::NONE;
    read_start_block(&mut variables);
    if variables.session.is_none() && variables.flagged_bytes == 0 {
        read_environment_file(&mut variables);
    }
    if variables.session.is_none() && variables.flagged_bytes != 0 {
        let path = variables.flagged.get(..variables.flagged_bytes).unwrap_or_default();
        let session = &mut variables.session;
        flagged_program::find_session(path, variables.started_as, &mut |value| {
            *session = parse_session(value)
        });
    }
    (variables.session, variables.is_disabled)
}

/// Returns the path of the buffers' descriptor, and whether the agent is switched off.
pub(crate) fn session() -> (Option<[u8; POOL_PATH_BYTES]>, bool) {
    let (session, is_disabled) = read();
    (session.map(|session| session.bytes), is_disabled)
}

/// True if AddressSanitizer's options say that its library need not be the first.
pub(crate) fn allows_address_sanitizer() -> bool {
    let mut variables = Variables::NONE;
    read_start_block(&mut variables);
    variables.allows_address_sanitizer
}

/// Reads the block at the end of the stack, into which a session with flagged programs has written.
/// The kernel's file of the environment does not show such changes.
fn read_start_block(variables: &mut Variables) {
    const ARGUMENTS_MAX: usize = 1 << 20;
    const ENTRIES_MAX: usize = 1 << 16;
    let variable = link_map::find_anywhere(b"__libc_stack_end") as *const *const usize;
    if variable.is_null() {
        return;
    }
    // SAFETY: glibc's loader exports this variable and has set it before it calls any code.
    let block = unsafe { variable.read() };
    if block.is_null() {
        return;
    }
    // SAFETY: it points to the number of arguments, as the kernel has stored it.
    let argument_count = unsafe { block.read() };
    if argument_count > ARGUMENTS_MAX {
        return;
    }
    if argument_count != 0 {
        // SAFETY: the first argument, which follows the number.
        let first = unsafe { block.wrapping_add(1).cast::<*const c_char>().read() };
        if !first.is_null() {
            // SAFETY: a zero-terminated string, on the stack that the kernel has made; it is never
            // freed.
            variables.started_as = unsafe { CStr::from_ptr(first) }.to_bytes();
        }
    }
    for number in 0..ENTRIES_MAX {
        // After the count: the arguments, a null, then the variables up to a null.
        let place = block.wrapping_add(argument_count.wrapping_add(2).wrapping_add(number));
        // SAFETY: in the block, as no null was met yet.
        let entry = unsafe { place.cast::<*const c_char>().read() };
        if entry.is_null() {
            return;
        }
        // SAFETY: a zero-terminated string, by the rules of exec, which no code changes while the
        // program starts.
        variables.take(unsafe { CStr::from_ptr(entry) }.to_bytes());
    }
}

/// Reads the variables from the kernel's file, for C libraries that do not export the block's
/// address.
fn read_environment_file(variables: &mut Variables) {
    let Ok(file) = sys::open(b"/proc/self/environ\0", false) else { return };
    let mut line = [0_u8; 64 + flagged_program::PATH_BYTES_MAX];
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
                // A longer line is not heapr's: it is cut, and its beginning cannot match in full.
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

/// Converts `PID:FD` or `PID:FD:ROOT` to `/proc/PID/fd/FD` and a zero byte.
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

/// Returns the program's `environ`; an empty environment if it is missing.
pub(crate) fn own_environment() -> Strings {
    static EMPTY: [AtomicUsize; 1] = [AtomicUsize::new(0)];
    let variable = link_map::find_anywhere(b"environ") as *const Strings;
    if variable.is_null() {
        return EMPTY.as_ptr().cast();
    }
    // SAFETY: the C library's variable of this name (or the program's copy of it, which precedes it
    // in search order).
    let environment = unsafe { variable.read_volatile() };
    if environment.is_null() { EMPTY.as_ptr().cast() } else { environment }
}

/// Parses the options as AddressSanitizer's runtime does: the last one counts.
pub(crate) fn may_come_second(options: &[u8]) -> bool {
    const NAME: &[u8] = b"verify_asan_link_order=";
    let words = options.split(|byte| b":, \t\n\r".contains(byte));
    let value = words.filter_map(|word| word.strip_prefix(NAME)).next_back();
    value.is_some_and(|value| [&b"0"[..], b"no", b"false"].contains(&value))
}
