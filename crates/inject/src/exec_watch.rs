//! Notification of starting programs, before their first instruction: fanotify blocks a process
//! that calls exec until it gets an answer.
//!
//! ```text
//! process: execve(file) --> kernel: may this file be executed? --> queue --> ExecWatch::next
//!          waits        <-- allowed                                <-- Started::allow (or drop)
//! ```
//!
//! The watch needs CAP_SYS_ADMIN. Every exec of a file on the watched filesystems waits, so that
//! each request must be answered at once. Dropping a [`Started`] allows its exec, and when this
//! process ends, the kernel allows all waiting ones.
//!
//! The request comes before the exec itself, while the process has its old image. The file in the
//! request gives the new program's name; an attach must wait until the exec is done.
//!
//! The watch has a thread with its own table of descriptors. Between fork and exec, a child of this
//! process has copies of the descriptors of the thread that forked it. Were the watch among them,
//! such a child could wait in exec when the watch ends, or this process is killed. The child's own
//! copy would then keep the watch alive, and all starting programs would wait for ever.

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

/// A watch on all programs that start from some filesystems.
#[derive(Debug)]
pub struct ExecWatch {
    group: Arc<File>,
    /// Requests that were read and not handed out yet.
    waiting: VecDeque<Started>,
    /// Not sendable: the descriptors are valid only in the watch's thread.
    only_here: PhantomData<*const ()>,
}

/// A program that is about to start. The process waits until this value is dropped. That must
/// happen in the watch's thread, or in one started by it, which has the same descriptors.
#[derive(Debug)]
pub struct Started {
    /// Id of the thread that called exec, in this process's pid namespace.
    pub tid: u32,
    /// File that is opened for execution: the program, or its interpreter.
    pub executable: PathBuf,
    file: File,
    group: Arc<File>,
}

impl ExecWatch {
    /// Starts a thread that runs `body` with a watch that covers no filesystems yet. The thread
    /// (and those that it starts) has copies of the descriptors in `keep`, and no others: `body`
    /// must not have captured any. Its standard streams lead to /dev/null, and other threads do not
    /// see files that it opens.
    ///
    /// # Errors
    /// Returns an error if no thread can be started. `body` gets other errors: no permission
    /// (CAP_SYS_ADMIN), or a kernel without fanotify.
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
        // SAFETY: the call above has just returned this descriptor, and it has no other owner.
        let group = unsafe { OwnedFd::from_raw_fd(group) };
        Ok(Self { group: Arc::new(File::from(group)), waiting: VecDeque::new(), only_here: PhantomData })
    }

    /// Watches all programs on the filesystem that holds `path`, wherever it is mounted.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, or the kernel has no permission events.
    pub fn watch(&self, path: &Path) -> io::Result<()> {
        self.mark(libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM, path)
    }

    /// Stops requests for one file until it is changed.
    ///
    /// # Errors
    /// Returns an error if the file does not exist.
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

    /// Next program that is about to start; `None` after `timeout`.
    ///
    /// # Errors
    /// Returns an error if the queue cannot be read.
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
        // SAFETY: the buffer is borrowed mutably for the call, with its true length.
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
                // The queue overflowed: the kernel allowed the requests that did not fit.
                continue;
            }
            // SAFETY: the kernel made this descriptor for the event, and it has no other owner.
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
    /// Allows the process to continue.
    pub fn allow(self) {
        drop(self);
    }

    /// Program named in a script's first line, parsed as the kernel does: `#!` and a path.
    #[must_use]
    pub fn interpreter(&self) -> Option<PathBuf> {
        /// Number of bytes that the kernel examines (`BINPRM_BUF_SIZE`).
        const HEAD_BYTES: usize = 256;
        let mut head = [0; HEAD_BYTES];
        let count = self.file.read_at(&mut head, 0).ok()?;
        interpreter_in(head.get(..count)?)
    }
}

/// Gives this thread its own table of descriptors, and closes in it all that are not in `keep`.
/// Copies would keep pipes open and locks held that their owners have released. The standard
/// descriptors lead to /dev/null.
fn own_descriptors(keep: &[RawFd]) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    for standard in libc::STDIN_FILENO..=libc::STDERR_FILENO {
        // SAFETY: no pointers are passed; nothing in this thread owns the former standard
        // descriptors.
        if nowhere.as_raw_fd() != standard && unsafe { libc::dup2(nowhere.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if nowhere.as_raw_fd() <= libc::STDERR_FILENO {
        // The descriptor is itself a standard one.
        std::mem::forget(nowhere);
    } else {
        drop(nowhere);
    }
    let open = std::fs::read_dir("/proc/thread-self/fd")?;
    let numbers: Vec<RawFd> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers {
        if number > libc::STDERR_FILENO && !keep.contains(&number) {
            // SAFETY: nothing in this thread owns the descriptor: the table was copied above, and
            // the caller's closure captured none. The listing's own is closed already.
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
        // If the answer fails, the group is closed with this process, and the kernel allows the
        // exec.
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
