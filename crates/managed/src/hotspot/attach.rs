//! Attach protocol of HotSpot.

use std::fs::FileType;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapr_known::runtimes::{self, Runtime};
use heapr_proc::Fields;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::AttachError;
use super::options;
use super::request::Request;

/// Longest wait for the socket after the signal, and for the answer to a short command.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Time between two looks for the socket.
const STEP: Duration = Duration::from_millis(10);
/// Longest answer that is read, in bytes.
const ANSWER_MAX: usize = 16 << 20;
/// Option that switches the protocol off.
const DISABLED: &str = "-XX:+DisableAttachMechanism";
/// Bit of SIGQUIT in a mask of signals.
const QUIT_BIT: u64 = 1 << 2;
/// Name of HotSpot's thread that handles SIGQUIT, as far as the kernel keeps it.
const SIGNAL_THREAD: &str = "Signal Dispatch";

/// A process whose virtual machine takes commands.
#[derive(Debug)]
pub struct Attached {
    pub(super) pid: u32,
    /// User and group of the process.
    pub(super) user: (u32, u32),
    socket: PathBuf,
}

/// Checks whether a process can be asked, without changing anything.
///
/// # Errors
/// The reason why it cannot be asked.
pub fn check_hotspot(pid: u32) -> Result<(), AttachError> {
    let unasked = Attached::unasked(pid)?;
    if unasked.listens() { Ok(()) } else { check_signal(pid) }
}

/// Checks that a process runs HotSpot, by the libraries whose code it has mapped.
fn check_library(pid: u32) -> Result<(), AttachError> {
    let mappings = heapr_proc::mappings::read(pid)
        .map_err(|source| AttachError::of_file(format!("/proc/{pid}/maps"), source))?;
    let is_mapped = |is_one: fn(&str) -> bool| {
        let mut code = mappings.iter().filter(|mapping| mapping.is_executable && mapping.inode != 0);
        code.any(|mapping| is_one(mapping.name.rsplit('/').next().unwrap_or_default()))
    };
    if is_mapped(|file| file.starts_with("libj9vm")) {
        return Err(AttachError::OpenJ9);
    }
    if !is_mapped(|file| runtimes::of_library(file) == Some(Runtime::Jvm)) {
        return Err(AttachError::NoHotSpot);
    }
    Ok(())
}

/// Checks that SIGQUIT does not end a process: it catches the signal, and has HotSpot's thread for
/// it.
fn check_signal(pid: u32) -> Result<(), AttachError> {
    let catches = status(pid)?.bits("SigCgt").is_some_and(|mask| mask & QUIT_BIT != 0);
    let mut threads = heapr_proc::threads(pid)
        .map_err(|source| AttachError::of_file(format!("/proc/{pid}/task"), source))?;
    let has_thread =
        threads.any(|tid| heapr_proc::thread_name(pid, tid).is_some_and(|name| name == SIGNAL_THREAD));
    if catches && has_thread { Ok(()) } else { Err(AttachError::SignalWouldKill) }
}

fn status(pid: u32) -> Result<Fields, AttachError> {
    Fields::of_process(pid).map_err(|source| AttachError::of_file(format!("/proc/{pid}/status"), source))
}

impl Attached {
    /// Attaches to a process.
    ///
    /// # Errors
    /// The reason why it cannot be asked; the process is as before.
    pub fn to(pid: u32) -> Result<Self, AttachError> {
        let failed = |error: rustix::io::Errno| AttachError::of_file(format!("/proc/{pid}"), error.into());
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(AttachError::NoHotSpot)?;
        // The checks and the signal are for one process, also where its number is used again.
        let process = pidfd_open(number, PidfdFlags::empty()).map_err(failed)?;
        let attached = Self::unasked(pid)?;
        if !attached.listens() {
            check_signal(pid)?;
            let _request = Request::make(pid, attached.user)?;
            check_signal(pid)?;
            pidfd_send_signal(&process, Signal::QUIT).map_err(failed)?;
            attached.wait()?;
        }
        Ok(attached)
    }

    /// Looks at a process that may not listen yet.
    fn unasked(pid: u32) -> Result<Self, AttachError> {
        check_library(pid)?;
        if options::is_last(pid, DISABLED) {
            return Err(AttachError::Disabled { option: DISABLED });
        }
        let fields = status(pid)?;
        let is_stopped = matches!(fields.text("State").and_then(|it| it.chars().next()), Some('T' | 't'));
        if is_stopped || heapr_proc::is_frozen(pid) {
            return Err(AttachError::Stopped);
        }
        let effective = |name| fields.words(name).nth(1).and_then(|word| word.parse::<u32>().ok());
        let (Some(user), Some(group)) = (effective("Uid"), effective("Gid")) else {
            let source = io::Error::new(io::ErrorKind::InvalidData, "it names no user and group");
            return Err(AttachError::of_file(format!("/proc/{pid}/status"), source));
        };
        let name = format!(".java_pid{}", heapr_proc::inner_pid(pid));
        let socket = PathBuf::from(format!("/proc/{pid}/root/tmp/{name}"));
        Ok(Self { pid, user: (user, group), socket })
    }

    /// True if the virtual machine's socket has a listener. A full queue has one, too.
    fn listens(&self) -> bool {
        match self.connect() {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Connects to the socket, if it is of the process's user or of root. It never waits.
    fn connect(&self) -> io::Result<UnixStream> {
        let metadata = std::fs::symlink_metadata(&self.socket)?;
        let kind: FileType = metadata.file_type();
        if !kind.is_socket() || (metadata.uid() != self.user.0 && metadata.uid() != 0) {
            return Err(io::Error::other("it is no socket of the process's user"));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(self.socket.as_path())?)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn wait(&self) -> Result<(), AttachError> {
        let begin = Instant::now();
        while begin.elapsed() < ANSWER_WAIT {
            if self.listens() {
                return Ok(());
            }
            sleep(STEP);
        }
        Err(AttachError::NoAnswer { seconds: ANSWER_WAIT.as_secs() })
    }

    /// Gives a short command with up to three arguments. Returns the text of the answer.
    ///
    /// # Errors
    /// The virtual machine does not answer within 10 s, or refuses.
    pub fn command(&self, words: &[&str]) -> Result<String, AttachError> {
        self.command_within(words, ANSWER_WAIT)
    }

    /// Gives a command whose answer may take so long.
    pub(super) fn command_within(&self, words: &[&str], longest: Duration) -> Result<String, AttachError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                AttachError::NoAnswer { seconds: longest.as_secs() }
            }
            _ => AttachError::of_file(&self.socket, source),
        };
        let mut stream = self.connect().map_err(failed)?;
        let mut message = b"1\0".to_vec();
        for at in 0..4 {
            message.extend_from_slice(words.get(at).unwrap_or(&"").as_bytes());
            message.push(0);
        }
        stream.set_write_timeout(Some(ANSWER_WAIT)).map_err(failed)?;
        stream.write_all(&message).map_err(failed)?;
        let answer = answer_within(&mut stream, longest).map_err(failed)?;
        let answer = String::from_utf8_lossy(&answer);
        let (result, text) = answer.split_once('\n').unwrap_or((&answer, ""));
        if result != "0" {
            return Err(AttachError::refused(words.first().copied().unwrap_or_default(), result, text));
        }
        Ok(text.to_owned())
    }

    /// Bytes of the heap that are in use, garbage included; `None` if the virtual machine does not
    /// say it.
    #[must_use]
    pub fn used_bytes(&self) -> Option<u64> {
        used_bytes(&self.command(&["jcmd", "GC.heap_info"]).ok()?)
    }
}

/// Reads an answer up to its end, which must come within a time.
fn answer_within(stream: &mut UnixStream, longest: Duration) -> io::Result<Vec<u8>> {
    let begin = Instant::now();
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while answer.len() < ANSWER_MAX {
        let rest = longest.saturating_sub(begin.elapsed());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(rest))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Sums what the generations have in use: lines such as `garbage-first heap total 256K, used 13K`.
fn used_bytes(text: &str) -> Option<u64> {
    let heap = text.split("Metaspace").next().unwrap_or_default();
    let sizes = heap.lines().filter_map(|line| {
        let size = line.split("used ").nth(1)?;
        let digits = size.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match size.as_bytes().get(digits)? {
            b'K' => 1 << 10,
            b'M' => 1 << 20,
            b'G' => 1 << 30,
            _ => return None,
        };
        size[..digits].parse::<u64>().ok()?.checked_mul(unit)
    });
    let sizes: Vec<u64> = sizes.collect();
    (!sizes.is_empty()).then(|| sizes.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_use_are_read_of_each_collector() {
        let g1 = " garbage-first heap   total 262144K, used 13000K [0x1, 0x2)\n  region size 1024K\n Metaspace       used 167K, committed 384K\n";
        assert_eq!(used_bytes(g1), Some(13000 << 10));
        let serial = " def new generation   total 9792K, used 1000K [\n  eden space 8704K,  11% used [\n tenured generation   total 21888K, used 24K [\n Metaspace       used 167K";
        assert_eq!(used_bytes(serial), Some(1024 << 10));
        let z = " ZHeap           used 34M, capacity 254M, max capacity 3926M\n Metaspace       used 8M";
        assert_eq!(used_bytes(z), Some(34 << 20));
        assert_eq!(used_bytes("what"), None);
    }

    #[test]
    fn a_process_without_java_is_refused() {
        assert!(matches!(check_hotspot(std::process::id()), Err(AttachError::NoHotSpot)));
    }
}
