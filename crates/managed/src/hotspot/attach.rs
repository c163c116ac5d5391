//! Attach protocol of HotSpot.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapr_known::runtimes::{self, Runtime};
use heapr_proc::Fields;
use rustix::process::{Pid, Signal, kill_process};

use super::error::AttachError;

/// Longest wait for the socket after the signal.
const SOCKET_WAIT: Duration = Duration::from_secs(10);
/// Time between two looks for the socket.
const STEP: Duration = Duration::from_millis(10);
/// Longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 16 << 20;
/// Option that switches the protocol off.
const DISABLED: &str = "-XX:+DisableAttachMechanism";
/// Environment variables with options of a virtual machine.
const VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
/// Bit of SIGQUIT in a mask of signals.
const QUIT_BIT: u64 = 1 << 2;

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
    let mappings = heapr_proc::mappings::read(pid)
        .map_err(|source| AttachError::of_file(format!("/proc/{pid}/maps"), source))?;
    let is_mapped = |is_one: fn(&str) -> bool| {
        mappings.iter().any(|mapping| is_one(mapping.name.rsplit('/').next().unwrap_or_default()))
    };
    if is_mapped(|file| file.starts_with("libj9vm")) {
        return Err(AttachError::OpenJ9);
    }
    if !is_mapped(|file| runtimes::of_library(file) == Some(Runtime::Jvm)) {
        return Err(AttachError::NoHotSpot);
    }
    let words = heapr_proc::command_line(pid);
    let of_environment = VARIABLES.iter().filter_map(|name| heapr_proc::variable(pid, name));
    // The last one counts.
    let last = of_environment
        .flat_map(|text| text.split_ascii_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
        .chain(words)
        .rfind(|word| word.ends_with("DisableAttachMechanism"));
    if last.as_deref() == Some(DISABLED) {
        return Err(AttachError::Disabled { option: DISABLED });
    }
    let fields = Fields::of_process(pid)
        .map_err(|source| AttachError::of_file(format!("/proc/{pid}/status"), source))?;
    if matches!(fields.text("State").and_then(|state| state.chars().next()), Some('T' | 't')) {
        return Err(AttachError::Stopped);
    }
    let catches = fields.bits("SigCgt").is_some_and(|mask| mask & QUIT_BIT != 0);
    if !catches && !socket_of(pid).exists() {
        return Err(AttachError::SignalWouldKill);
    }
    Ok(())
}

fn socket_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root/tmp/.java_pid{}", heapr_proc::inner_pid(pid)))
}

/// File that asks the virtual machine to listen. It is removed at the end.
struct Request(PathBuf);

impl Drop for Request {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Request {
    /// Makes the file in the working directory of the process, else in its directory of temporary
    /// files.
    fn make(pid: u32, (user, group): (u32, u32)) -> Result<Self, AttachError> {
        let name = format!(".attach_pid{}", heapr_proc::inner_pid(pid));
        let mut last = None;
        for folder in [format!("/proc/{pid}/cwd"), format!("/proc/{pid}/root/tmp")] {
            let path = Path::new(&folder).join(&name);
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let made = made.and_then(|file: File| {
                let request = Self(path.clone());
                let is_own = rustix::process::geteuid().as_raw() == user;
                if is_own { Ok(request) } else { fchown(&file, Some(user), Some(group)).map(|()| request) }
            });
            match made {
                Ok(request) => return Ok(request),
                Err(source) => last = Some(AttachError::of_file(path, source)),
            }
        }
        Err(last.unwrap_or(AttachError::NoHotSpot))
    }
}

impl Attached {
    /// Attaches to a process.
    ///
    /// # Errors
    /// The reason why it cannot be asked; the process is as before.
    pub fn to(pid: u32) -> Result<Self, AttachError> {
        check_hotspot(pid)?;
        let fields = Fields::of_process(pid)
            .map_err(|source| AttachError::of_file(format!("/proc/{pid}/status"), source))?;
        let effective = |name| fields.words(name).nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let attached = Self { pid, user: (effective("Uid"), effective("Gid")), socket: socket_of(pid) };
        if !attached.listens() {
            let _request = Request::make(pid, attached.user)?;
            attached.signal()?;
            attached.wait()?;
        }
        Ok(attached)
    }

    fn listens(&self) -> bool {
        UnixStream::connect(&self.socket).is_ok()
    }

    fn signal(&self) -> Result<(), AttachError> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or(AttachError::NoHotSpot)?;
        kill_process(pid, Signal::QUIT)
            .map_err(|error| AttachError::of_file(format!("/proc/{}", self.pid), error.into()))
    }

    fn wait(&self) -> Result<(), AttachError> {
        let begin = Instant::now();
        while begin.elapsed() < SOCKET_WAIT {
            if self.socket.exists() {
                return Ok(());
            }
            sleep(STEP);
        }
        Err(AttachError::NoAnswer { seconds: SOCKET_WAIT.as_secs() })
    }

    /// Gives a command with up to three arguments. Returns the text of the answer.
    ///
    /// # Errors
    /// The virtual machine does not answer, or refuses.
    pub fn command(&self, words: &[&str]) -> Result<String, AttachError> {
        let failed = |source| AttachError::of_file(&self.socket, source);
        let mut stream = UnixStream::connect(&self.socket).map_err(failed)?;
        let mut message = b"1\0".to_vec();
        for at in 0..4 {
            message.extend_from_slice(words.get(at).unwrap_or(&"").as_bytes());
            message.push(0);
        }
        stream.write_all(&message).map_err(failed)?;
        let mut answer = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut answer).map_err(failed)?;
        let answer = String::from_utf8_lossy(&answer);
        let (result, text) = answer.split_once('\n').unwrap_or((&answer, ""));
        if result != "0" {
            return Err(AttachError::Refused {
                command: words.first().copied().unwrap_or_default().to_owned(),
                result: result.chars().take(16).collect(),
                text: text.lines().next().unwrap_or_default().to_owned(),
            });
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
