//! Starting a program as whoever started this process would have started it.
//!
//! The standard library sorts the environment that it changes, leaves out what it cannot name, and gives programs the default action
//! for SIGPIPE, whatever it was when this process began.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

static IS_PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Run before Rust's own start, which ignores SIGPIPE.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look_at_pipe;

extern "C" fn look_at_pipe() {
    // SAFETY: only asks; the structure is plain data for which zeros are valid.
    let is_ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    IS_PIPE_IGNORED.store(is_ignored, Relaxed);
}

/// An environment block that outlives the fork.
struct Block {
    _entries: Vec<CString>,
    /// The entries, and a null at the end.
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are to the entries, which nobody changes.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new(entries: Vec<CString>) -> Self {
        let pointers = entries.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _entries: entries, pointers }
    }

    fn list(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Makes `command` start its program with this process's environment, entry by entry as it is, but for `changes`: a variable that is there is
/// replaced in its place, another one comes last; and with SIGPIPE ignored if that was so when this process began. The command's own
/// environment must be left as it is.
pub fn start_as_given(command: &mut Command, changes: &[(OsString, OsString)]) {
    let block = Block::new(changed(own_environment(), changes));
    let is_pipe_ignored = IS_PIPE_IGNORED.load(Relaxed);
    let before_exec = move || -> io::Result<()> {
        // SAFETY: in the forked child, which has one thread, or in this process just before its exec; the block lives in the closure.
        unsafe {
            environ = block.list();
            if is_pipe_ignored {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and calls only what may be called between fork and exec.
    unsafe { command.pre_exec(before_exec) };
}

/// The entries of this process's environment.
fn own_environment() -> Vec<CString> {
    let mut entries = Vec::new();
    // SAFETY: a list that ends with null, of strings; nothing in this process changes its environment.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(std::ffi::CStr::from_ptr(*next).to_owned());
            next = next.add(1);
        }
    }
    entries
}

fn changed(mut entries: Vec<CString>, changes: &[(OsString, OsString)]) -> Vec<CString> {
    for (name, value) in changes {
        let start = [name.as_bytes(), b"="].concat();
        // (No value that is given here has a zero in it.)
        let Ok(entry) = CString::new([&start[..], OsStr::as_bytes(value)].concat()) else { continue };
        let place = entries.iter().position(|entry| entry.to_bytes().starts_with(&start));
        entries.retain({
            let mut number = 0;
            move |entry| {
                number += 1;
                Some(number - 1) == place || !entry.to_bytes().starts_with(&start)
            }
        });
        match place.and_then(|place| entries.get_mut(place)) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_changed_changes() {
        let list = |entries: &[&str]| -> Vec<CString> {
            entries.iter().map(|entry| CString::new(*entry).unwrap()).collect()
        };
        let given =
            list(&["B=1", "LD_PRELOAD=x", "no sign", "A=2", "=odd", "LD_PRELOAD=y", "B=3", "LD_PRELOADS=z"]);
        let changes =
            [("LD_PRELOAD", "agent:x"), ("SESSION", "1:2")].map(|(name, value)| (name.into(), value.into()));
        let expected = list(&[
            "B=1",
            "LD_PRELOAD=agent:x",
            "no sign",
            "A=2",
            "=odd",
            "B=3",
            "LD_PRELOADS=z",
            "SESSION=1:2",
        ]);
        assert_eq!(changed(given.clone(), &changes), expected);
        assert_eq!(changed(given.clone(), &[]), given);
    }
}
