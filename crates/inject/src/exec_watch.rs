//! Seeing programs start, before their first instruction: fanotify holds the process that calls
//! exec until it is answered.
//!
//! ```text
//! process: execve(file) --> kernel: may this file be opened for execution? --> queue --> ExecWatch::next
//!          waits         <-- allowed                                       <-- Started::allow (or drop)
//! ```
//!
//! Needs CAP_SYS_ADMIN. Every exec of a file on the watched filesystems waits for us, so each
//! question must be answered at once: a [`Started`] that is dropped has been allowed, and when this
//! process ends the kernel allows all that wait. What is asked here is before the exec itself: the
//! process still has its old image. So its name is that of the file in question, and whoever wants
//! to attach does so once the exec is done.
//!
//! The watch has a thread with descriptors of its own. A child of this process has, from its fork
//! to the end of its exec, copies of the descriptors of the thread that forked it. Were the watch
//! among them, a child whose exec waits when the watch ends (or this process is killed) would
//! itself keep the watch alive, and wait for ever, and with it every program that starts.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A watch over all programs that start from some filesystems.
#[derive(Debug)]
pub struct ExecWatch {
    group: Arc<File>,
    /// Questions that were read and are not handed out yet.
    waiting: VecDeque<Started>,
    /// Its descriptors mean something in its own thread only.
    only_here: PhantomData<*const ()>,
}

/// A program that is about to start. The process waits until this value is dropped: in the thread
/// of the watch, or in one that was started by it and so has the same descriptors.
#[derive(Debug)]
pub struct Started {
    /// The thread that called exec, as this process's pid namespace numbers it.
    pub tid: u32,
    /// The file that is opened for execution: the program, or its interpreter.
    pub executable: PathBuf,
    file: File,
    group: Arc<File>,
}

impl ExecWatch {
    /// Begins, in a thread of its own that runs `body`; nothing is watched yet. Of this process's
    /// descriptors that thread (and those that it starts) has copies of those in `keep`, and no
    /// others: `body` must not have captured any, and what it prints goes nowhere. Whatever it
    /// opens is not seen by the process's other threads.
    ///
    /// # Errors
    /// No thread. `body` is handed what else may fail: no permission (CAP_SYS_ADMIN), or a kernel
    /// without fanotify.
    pub fn in_thread<R: Send + 'static>(
        keep: &[RawFd],
        body: impl FnOnce(io::Result<Self>) -> R + Send + 'static,
    ) -> io::Result<JoinHandle<R>> {
        let keep = keep.to_vec();
        std::thread::Builder::new()
            .name("exec-watch".to_owned())
            .spawn(move || body(own_descriptors(&keep).and_then(|()| Self::start())))
    }

    fn start() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let group = unsafe {
            libc::fanotify_init(
                libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_TID,
                (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE).cast_unsigned(),
            )
        };
        if group < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the call above has just returned, owned by nobody else.
        let group = unsafe { OwnedFd::from_raw_fd(group) };
        Ok(Self { group: Arc::new(File::from(group)), waiting: VecDeque::new(), only_here: PhantomData })
    }

    /// Watches all programs on the filesystem that holds `path`, wherever it is mounted.
    ///
    /// # Errors
    /// There is no such file, or a kernel without permission events.
    pub fn watch(&self, path: &Path) -> io::Result<()> {
        self.mark(libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM, path)
    }

    /// Does not ask about one file any more, until it is changed.
    ///
    /// # Errors
    /// There is no such file.
    pub fn ignore(&self, path: &Path) -> io::Result<()> {
        self.mark(libc::FAN_MARK_ADD | libc::FAN_MARK_IGNORED_MASK, path)
    }

    fn mark(&self, what: libc::c_uint, path: &Path) -> io::Result<()> {
        let mut text = path.as_os_str().as_encoded_bytes().to_vec();
        text.push(0);
        // SAFETY: `text` ends with a zero and outlives the call.
        let outcome = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                what,
                libc::FAN_OPEN_EXEC_PERM,
                libc::AT_FDCWD,
                text.as_ptr().cast(),
            )
        };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next program that is about to start; nothing within `timeout`.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<Started>> {
        if self.waiting.is_empty() && self.is_ready(timeout)? {
            self.read()?;
        }
        Ok(self.waiting.pop_front())
    }

    fn is_ready(&self, timeout: Duration) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.group.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one initialised element, borrowed for the call.
        match unsafe { libc::poll(&mut poll, 1, milliseconds) } {
            count if count >= 0 => Ok(count > 0),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }

    fn read(&mut self) -> io::Result<()> {
        const EVENT_BYTES: usize = size_of::<libc::fanotify_event_metadata>();
        let mut buffer = [0_u8; EVENT_BYTES * 64];
        // SAFETY: the buffer is borrowed mutably for the call and as long as is said.
        let count = unsafe { libc::read(self.group.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
                error => Err(error),
            };
        };
        let mut rest = &buffer[..count.min(buffer.len())];
        while rest.len() >= EVENT_BYTES {
            // SAFETY: the slice has the structure's size, and the structure is plain integers of
            // any value.
            let event = unsafe { rest.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
            let length = event.event_len as usize;
            if length < EVENT_BYTES || length > rest.len() {
                break;
            }
            rest = &rest[length..];
            if event.fd < 0 {
                // The queue overflowed: those that did not fit were allowed.
                continue;
            }
            // SAFETY: the kernel made this descriptor for the event; nobody else owns it.
            let file = unsafe { OwnedFd::from_raw_fd(event.fd) };
            let executable =
                std::fs::read_link(format!("/proc/thread-self/fd/{}", file.as_raw_fd())).unwrap_or_default();
            self.waiting.push_back(Started {
                tid: event.pid.cast_unsigned(),
                executable,
                file: File::from(file),
                group: Arc::clone(&self.group),
            });
        }
        Ok(())
    }
}

impl Started {
    /// Lets the process go on.
    pub fn allow(self) {
        drop(self);
    }

    /// The program that a script names in its first line, as the kernel reads it: `#!` and a path.
    #[must_use]
    pub fn interpreter(&self) -> Option<PathBuf> {
        /// The kernel looks no further (`BINPRM_BUF_SIZE`).
        const HEAD_BYTES: usize = 256;
        let mut head = [0; HEAD_BYTES];
        let count = self.file.read_at(&mut head, 0).ok()?;
        interpreter_in(head.get(..count)?)
    }
}

/// Gives this thread a table of descriptors of its own and closes in it what is not among `keep`: a
/// copy would keep pipes open and locks held that their owners have given up. The standard ones
/// lead nowhere.
fn own_descriptors(keep: &[RawFd]) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    for standard in libc::STDIN_FILENO..=libc::STDERR_FILENO {
        // SAFETY: no pointers are passed; what the standard ones were is not owned by anything in
        // this thread.
        if nowhere.as_raw_fd() != standard && unsafe { libc::dup2(nowhere.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if nowhere.as_raw_fd() <= libc::STDERR_FILENO {
        // It has become one of them.
        std::mem::forget(nowhere);
    } else {
        drop(nowhere);
    }
    let open = std::fs::read_dir("/proc/thread-self/fd")?;
    let numbers: Vec<RawFd> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers {
        if number > libc::STDERR_FILENO && !keep.contains(&number) {
            // SAFETY: nothing of this thread owns it: the table was copied above, and the caller's
            // closure captured none. The listing's own is closed already.
            unsafe { libc::close(number) };
        }
    }
    Ok(())
}

fn interpreter_in(head: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n' || byte == 0).next()?;
    let words = line.split(|&byte| byte == b' ' || byte == b'\t');
    let path = words.into_iter().find(|word| !word.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

impl Drop for Started {
    fn drop(&mut self) {
        use std::io::Write as _;
        let mut answer = [0; 8];
        answer[..4].copy_from_slice(&self.file.as_raw_fd().to_ne_bytes());
        answer[4..].copy_from_slice(&libc::FAN_ALLOW.to_ne_bytes());
        // If it cannot be answered the group is closed with this process, and the kernel allows it.
        let _ = (&*self.group).write_all(&answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let of = |head: &str| interpreter_in(head.as_bytes()).map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(of("#!/bin/sh\nexit"), Some("/bin/sh".to_owned()));
        assert_eq!(of("#! \t/usr/bin/env python3\n"), Some("/usr/bin/env".to_owned()));
        assert_eq!(of("#!/bin/sh"), Some("/bin/sh".to_owned()));
        assert_eq!(of("#!\n"), None);
        assert_eq!(of("\x7fELF"), None);
        assert_eq!(of(""), None);
    }
}
