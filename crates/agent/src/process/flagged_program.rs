//! Decides whether this program is flagged, and by which session. It concerns one user's programs,
//! started from a shell that `heapr config shell` has prepared.
//!
//! ```text
//! HEAPR_FLAGGED=/run/user/1000/heapr/flagged      the variable, in every program of that shell
//!   flagged.heap, flagged.snapshot                files of a running session with flagged targets:
//!     session 4711:5                                where its shared buffers are
//!     name redis-server                             the programs that it wants, a line for each
//! ```
//!
//! Without a file, or a line with the program's name, the agent is disabled before any other
//! action.

use heapr_ring::sys;

/// Longest path of the files that is followed, in bytes.
pub(crate) const PATH_BYTES_MAX: usize = 256;
/// Largest size of a file that is read, in bytes: a few hundred names.
const FILE_BYTES_MAX: usize = 16 << 10;
/// Longest executable's path whose name is compared, in bytes.
const EXECUTABLE_BYTES_MAX: usize = 1024;

/// Calls `take` with the value of the session variable from the first session that wants this
/// program. `started_as` is the path by which the program was started.
pub(crate) fn find_session(path: &[u8], started_as: &[u8], take: &mut dyn FnMut(&[u8])) {
    let mut buffer = [0; EXECUTABLE_BYTES_MAX];
    let executable = sys::read_link(b"/proc/self/exe\0", &mut buffer).unwrap_or_default();
    let names = [file_name(executable), file_name(started_as)];
    // Each event of a program holds all data that a snapshot needs: the trace comes first.
    for ending in [&b".heap\0"[..], b".snapshot\0"] {
        let mut whole = [0; PATH_BYTES_MAX + 16];
        for (place, &byte) in whole.iter_mut().zip(path.iter().chain(ending)) {
            *place = byte;
        }
        let Ok(file) = sys::open(&whole, false) else { continue };
        let mut text = [0; FILE_BYTES_MAX];
        let mut length = 0_usize;
        while let Some(rest) = text.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match sys::read(&file, rest) {
                Ok(0) => break,
                Ok(count) => length = length.saturating_add(count),
                Err(sys::EINTR) => {}
                Err(_) => break,
            }
        }
        if let Some(session) = session_of(text.get(..length).unwrap_or_default(), names) {
            return take(session);
        }
    }
}

/// Returns the part after the last slash.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns the session that a file names, if it lists one of `names`.
fn session_of<'a>(text: &'a [u8], names: [&[u8]; 2]) -> Option<&'a [u8]> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let session = lines.next()?.strip_prefix(b"session ")?;
    let is_wanted = lines
        .filter_map(|line| line.strip_prefix(b"name "))
        .any(|name| !name.is_empty() && names.contains(&name));
    is_wanted.then_some(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_is_named_gets_the_session() {
        let text = b"session 17:4\nname redis-server\nname my app\n";
        let of = |first: &[u8], second: &[u8]| session_of(text, [file_name(first), file_name(second)]);
        assert_eq!(of(b"/usr/bin/redis-server", b"x"), Some(&b"17:4"[..]));
        assert_eq!(of(b"/usr/bin/python3.11", b"/opt/my app"), Some(&b"17:4"[..]));
        assert_eq!(of(b"/usr/bin/redis", b"redis-server2"), None);
        assert_eq!(of(b"", b""), None);
        for damaged in [&b""[..], b"session", b"name x\nsession 1:2\n", b"\n\n", b"session 1:2"] {
            assert_eq!(session_of(damaged, [b"x", b""]), None);
        }
    }
}
