//! Diagnostics socket of a .NET runtime, and commands to it.
//!
//! ```text
//!  "DOTNET_IPC_V1\0"  u16 size  u8 set  u8 command  u16 0   then the contents
//! ```

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapr_known::runtimes;
use heapr_proc::Fields;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::error::DotnetError;

/// Longest wait for the answer to a command.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Beginning of all messages.
const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const HEADER_BYTES: usize = 20;
/// Command that an answer of an error has.
const ERROR: u16 = 0xffff;
/// Variables that switch diagnostics, or the socket alone (since 8.0), off.
const SWITCHES: [&str; 4] = [
    "DOTNET_EnableDiagnostics",
    "COMPlus_EnableDiagnostics",
    "DOTNET_EnableDiagnostics_IPC",
    "COMPlus_EnableDiagnostics_IPC",
];
/// Heap whose libraries are the runtime's.
const HEAP: &str = ".NET's heap";

/// A process whose runtime takes commands.
#[derive(Debug)]
pub struct DotnetProcess {
    pub(super) pid: u32,
    socket: PathBuf,
    /// Version of the runtime, as far as the path of its library tells it.
    version: Option<String>,
}

impl DotnetProcess {
    /// Looks for the runtime of a process, without changing anything.
    ///
    /// # Errors
    /// The reason why it cannot be asked.
    pub fn of(pid: u32) -> Result<Self, DotnetError> {
        let library = library(pid)?;
        let socket = socket_path(pid);
        let is_own = is_socket_of(pid, &socket)?;
        if !is_own && library.is_none() {
            return Err(DotnetError::NoDotnet);
        }
        if !is_own {
            let is_off = |name: &&&str| heapr_proc::variable(pid, name).is_some_and(|value| value == "0");
            return Err(match SWITCHES.iter().find(is_off) {
                Some(variable) => DotnetError::Disabled { variable },
                None => DotnetError::NoSocket { path: socket },
            });
        }
        let fields = status(pid)?;
        let is_stopped = matches!(fields.text("State").and_then(|it| it.chars().next()), Some('T' | 't'));
        if is_stopped || heapr_proc::is_frozen(pid) {
            return Err(DotnetError::Stopped);
        }
        Ok(Self { pid, socket, version: library.as_deref().and_then(version_of) })
    }

    /// Runtime and version: `.NET 8.0.4`.
    #[must_use]
    pub fn runtime(&self) -> String {
        self.version.as_ref().map_or_else(|| ".NET".to_owned(), |version| format!(".NET {version}"))
    }

    /// Gives a command. Returns the contents of the answer, and the connection.
    pub(super) fn command(
        &self,
        command: u16,
        contents: &[u8],
    ) -> Result<(Vec<u8>, UnixStream), DotnetError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                DotnetError::NoAnswer { seconds: ANSWER_WAIT.as_secs() }
            }
            _ => DotnetError::of_file(&self.socket, source),
        };
        let mut stream = self.connect().map_err(failed)?;
        let bytes = u16::try_from(HEADER_BYTES + contents.len()).unwrap_or(u16::MAX);
        let mut message = MAGIC.to_vec();
        message.extend(bytes.to_le_bytes());
        message.extend(command.to_be_bytes());
        message.extend([0, 0]);
        message.extend(contents);
        stream.write_all(&message).map_err(failed)?;
        let mut header = [0; HEADER_BYTES];
        let end = Instant::now() + ANSWER_WAIT;
        fill(&mut stream, &mut header, end).map_err(failed)?;
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let answer_bytes = usize::from(word(MAGIC.len())).saturating_sub(HEADER_BYTES);
        if !header.starts_with(MAGIC) || answer_bytes > 4096 {
            return Err(DotnetError::of_file(&self.socket, io::ErrorKind::InvalidData.into()));
        }
        let mut answer = vec![0; answer_bytes];
        fill(&mut stream, &mut answer, end).map_err(failed)?;
        if word(16) == ERROR {
            let code = answer.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            return Err(DotnetError::Refused { command, code });
        }
        Ok((answer, stream))
    }

    /// Connects without waiting.
    fn connect(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(self.socket.as_path())?)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        Ok(stream)
    }
}

/// Fills a buffer up to a moment: an answer that comes byte by byte does not keep heapr.
fn fill(stream: &mut UnixStream, buffer: &mut [u8], end: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(rest))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn status(pid: u32) -> Result<Fields, DotnetError> {
    Fields::of_process(pid).map_err(|source| DotnetError::of_file(format!("/proc/{pid}/status"), source))
}

/// Path of the runtime's library, if it is mapped.
fn library(pid: u32) -> Result<Option<String>, DotnetError> {
    let mappings = heapr_proc::mappings::read(pid)
        .map_err(|source| DotnetError::of_file(format!("/proc/{pid}/maps"), source))?;
    let mut names = mappings.into_iter().filter(|it| it.inode != 0).map(|it| it.name);
    Ok(names.find(|name| {
        let file = name.rsplit('/').next().unwrap_or_default();
        file.starts_with("lib") && runtimes::of_file(file).is_some_and(|row| row.heap == HEAP)
    }))
}

/// Version in a path such as `…/shared/Microsoft.NETCore.App/8.0.4/libcoreclr.so`.
fn version_of(library: &str) -> Option<String> {
    let folder = Path::new(library).parent()?.file_name()?.to_str()?;
    let is_version = folder.starts_with(|first: char| first.is_ascii_digit()) && folder.contains('.');
    is_version.then(|| folder.to_owned())
}

/// Path of the socket, whose name has the process's pid and the time of its start.
fn socket_path(pid: u32) -> PathBuf {
    let folder = heapr_proc::variable(pid, "TMPDIR").filter(|folder| folder.starts_with('/'));
    let folder = folder.unwrap_or_else(|| "/tmp".to_owned());
    let inner = heapr_proc::inner_pid(pid);
    let started = heapr_proc::start_ticks(pid).unwrap_or_default();
    PathBuf::from(format!("/proc/{pid}/root{folder}"))
        .join(format!("dotnet-diagnostic-{inner}-{started}-socket"))
}

/// Whether a path leads to a socket of the process's user or of root.
fn is_socket_of(pid: u32, path: &Path) -> Result<bool, DotnetError> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(DotnetError::of_file(path, error));
        }
        Err(_) => return Ok(false),
    };
    let user = status(pid)?.words("Uid").nth(1).and_then(|word| word.parse::<u32>().ok());
    Ok(metadata.file_type().is_socket() && (Some(metadata.uid()) == user || metadata.uid() == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_librarys_folder() {
        let of = |path| version_of(path);
        assert_eq!(
            of("/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.4/libcoreclr.so").as_deref(),
            Some("8.0.4")
        );
        assert_eq!(of("/opt/app/libcoreclr.so"), None);
        assert_eq!(of("libcoreclr.so"), None);
    }

    #[test]
    fn a_process_without_the_runtime_is_refused() {
        assert!(matches!(DotnetProcess::of(std::process::id()), Err(DotnetError::NoDotnet)));
    }
}
