//! Facts of `/proc` about a process, before anything is sent to it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heapr_known::runtimes::{self, Runtime};
use heapr_proc::{Fields, is_alive, start_ticks};

use super::closed_process;
use super::error::{Error, Result};
use super::standstill::{self, Standstill};

/// Process as shown by `/proc`.
#[derive(Debug, Clone)]
pub struct Process {
    /// Process id in heapr's namespace.
    pub pid: u32,
    /// Process id in its own namespace, which differs in a container.
    pub inner_pid: u32,
    /// Effective user id.
    pub uid: u32,
    /// Runtime of its JavaScript.
    pub runtime: Runtime,
    /// File name of the executable.
    pub program: String,
    /// Command line arguments.
    pub arguments: Vec<String>,
    /// `NODE_OPTIONS`, if its environment can be read.
    pub node_options: Option<String>,
    /// Caught signals: bit n-1 is set if signal n is caught.
    pub caught_signals: u64,
    /// Whether the process is in another network namespace than heapr.
    pub is_in_other_network: bool,
    /// Start time in clock ticks after boot; with the pid it identifies the process.
    start_ticks: u64,
}

impl Process {
    /// Reads the facts of `/proc`; sends nothing to the process.
    pub fn examine(pid: u32) -> Result<Self> {
        let directory = heapr_proc::folder(pid);
        let status = Fields::of_process(pid).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::NoProcess { pid },
            _ => Error::Proc { path: directory.join("status").display().to_string(), source },
        })?;
        // The second user id is the effective one.
        let uid = status.words("Uid").nth(1).and_then(|uid| uid.parse().ok()).unwrap_or(u32::MAX);
        let thread_group = status.number::<u32>("Tgid");
        if thread_group.is_some_and(|thread_group| thread_group != pid)
            || status.text("State").is_some_and(|state| state.starts_with('Z'))
        {
            return Err(Error::NoProcess { pid });
        }
        let executable = heapr_proc::executable(pid).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => denied(pid, uid),
            io::ErrorKind::NotFound => {
                Error::NotV8 { pid, program: status.text("Name").unwrap_or("a kernel thread").to_owned() }
            }
            _ => Error::Proc { path: directory.join("exe").display().to_string(), source },
        })?;
        let (network, own_network) =
            (heapr_proc::namespace(pid, "net"), heapr_proc::namespace(heapr_proc::own_pid(), "net"));
        Ok(Self {
            pid,
            inner_pid: heapr_proc::inner_pid(pid),
            uid,
            runtime: runtime(&executable, &directory),
            program: program_name(&executable),
            arguments: heapr_proc::command_line(pid),
            node_options: heapr_proc::variable(pid, "NODE_OPTIONS"),
            caught_signals: status.bits("SigCgt").unwrap_or(0),
            // Namespaces that cannot be read count as equal.
            is_in_other_network: network.is_some() && own_network.is_some() && network != own_network,
            start_ticks: start_ticks(pid).unwrap_or(0),
        })
    }

    /// Start time in clock ticks after boot; with the pid it identifies the process.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Whether the examined process is still alive, and its id has not been reused.
    pub fn is_alive(&self) -> bool {
        self.start_ticks != 0 && start_ticks(self.pid) == Some(self.start_ticks) && is_alive(self.pid)
    }

    /// Whether the process has a handler for a signal; without one, most signals end a process.
    pub fn catches(&self, signal: rustix::process::Signal) -> bool {
        self.caught_signals & (1 << (signal.as_raw() - 1)) != 0
    }

    /// Returns the reason why the main thread does not run, if that state lasts.
    pub fn standstill(&self) -> Option<Standstill> {
        standstill::of(self.pid)
    }

    /// Refuses a process whose main thread does not run. It would handle the signal later, when
    /// heapr is not there to close its port.
    pub(crate) fn refuse_standing_still(&self) -> Result<()> {
        match self.standstill() {
            Some(standstill) => Err(Error::StandsStill { pid: self.pid, standstill }),
            None => Ok(()),
        }
    }

    /// Sends a signal, if the process catches it.
    pub(crate) fn send(
        &self,
        signal: rustix::process::Signal,
        name: &'static str,
        advice: &'static str,
    ) -> Result<()> {
        // The facts are read again just before: handlers and processes come and go.
        let now = Self::examine(self.pid)?;
        if now.start_ticks != self.start_ticks {
            return Err(Error::ProcessEnded { pid: self.pid });
        }
        if !now.catches(signal) {
            return Err(Error::SignalNotCaught { pid: self.pid, signal: name, advice });
        }
        self.refuse_standing_still()?;
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed())
            .ok_or(Error::NoProcess { pid: self.pid })?;
        rustix::process::kill_process(pid, signal).map_err(|source| match source {
            rustix::io::Errno::PERM => Error::NoPermission { pid: self.pid, uid: self.uid },
            source => Error::Signal { pid: self.pid, signal: name, source: source.into() },
        })
    }

    /// Whether an argument ends with a port: `9229`, `-i127.0.0.1:9229`, `--inspector-addr=9229`.
    pub(crate) fn names_port(&self, port: u16) -> bool {
        let port = port.to_string();
        let is_end = |rest: &str| !rest.ends_with(|character: char| character.is_ascii_digit());
        self.arguments.iter().any(|argument| argument.strip_suffix(&port).is_some_and(is_end))
    }

    /// Returns the value of an option on the command line or in `NODE_OPTIONS`: `--name=value` or
    /// `--name value`. The value is empty for an option without one.
    pub(crate) fn option(&self, name: &str) -> Option<String> {
        self.values(name).into_iter().next()
    }

    /// Whether Node's permission model is on, which disables the inspector unless it is allowed.
    pub(crate) fn has_permissions(&self) -> bool {
        ["--permission", "--experimental-permission"].iter().any(|option| self.option(option).is_some())
    }

    /// Returns the values of an option that may be given several times.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        // Arguments after the script belong to the program. A separate value looks like a script,
        // so one such argument is accepted.
        let mut scripts = 0;
        let of_command_line = self.arguments.iter().skip(1).map(String::as_str).take_while(|argument| {
            scripts += usize::from(!argument.starts_with('-'));
            scripts < 2
        });
        let of_command_line: Vec<&str> = of_command_line.collect();
        let of_environment = split_node_options(self.node_options.as_deref().unwrap_or(""));
        let of_environment = of_environment.iter().map(String::as_str).collect();
        let mut values = Vec::new();
        for arguments in [of_command_line, of_environment] {
            for (at, argument) in arguments.iter().enumerate() {
                match argument.strip_prefix(name).map(|rest| (rest, rest.strip_prefix('='))) {
                    Some((_, Some(value))) => values.push(value.to_owned()),
                    Some(("", None)) => {
                        let next = arguments.get(at + 1).filter(|next| !next.starts_with('-'));
                        values.push(next.copied().unwrap_or_default().to_owned());
                    }
                    _ => {}
                }
            }
        }
        values
    }
}

/// Splits `NODE_OPTIONS` as Node does: quotes protect spaces, and within quotes a backslash escapes
/// the next character.
fn split_node_options(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut option = None;
    let mut is_quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                option.get_or_insert_with(String::new);
            }
            ' ' if !is_quoted => options.extend(option.take()),
            '\\' if is_quoted => option.get_or_insert_with(String::new).extend(characters.next()),
            character => option.get_or_insert_with(String::new).push(character),
        }
    }
    options.extend(option);
    options
}

fn program_name(executable: &Path) -> String {
    let name = executable.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

/// Returns the error for denied access to a process.
pub(super) fn denied(pid: u32, uid: u32) -> Error {
    // A status that cannot be read gives no reason.
    let status = Fields::of_process(pid).unwrap_or_default();
    match closed_process::reason(&Fields::of_self(), &status) {
        Some(reason) => Error::Forbidden { pid, reason },
        None => Error::NoPermission { pid, uid },
    }
}

fn runtime(executable: &Path, directory: &Path) -> Runtime {
    let name = program_name(executable).to_ascii_lowercase();
    // Bun's package uses this name on every system.
    let name = name.strip_suffix(".exe").unwrap_or(&name).to_owned();
    let beside = |file: &str| {
        // In a container the path is only valid below the process's own root.
        let inside = directory.join("root").join(executable.strip_prefix("/").unwrap_or(executable));
        inside.parent().is_some_and(|parent| parent.join(file).exists())
    };
    let is_program = |runtime: &Runtime| *runtime != Runtime::Embedder && runs_javascript(*runtime);
    let of_name = runtimes::of_program(&name).filter(is_program);
    if let Some(runtime) = of_name.filter(|&runtime| runtime != Runtime::Chrome) {
        runtime
    } else if beside("resources/app.asar") || beside("resources/default_app.asar") {
        Runtime::Electron
    } else if let Some(runtime) = of_name {
        runtime
    } else if let Some(runtime) = runtime_of_libraries(directory) {
        runtime
    } else {
        runtime_inside(&directory.join("exe")).unwrap_or(Runtime::Other)
    }
}

fn runs_javascript(runtime: Runtime) -> bool {
    runtime.is_v8() || runtime == Runtime::Bun
}

/// Returns the runtime of JavaScript whose library a process has mapped; Node's, if it is there.
fn runtime_of_libraries(directory: &Path) -> Option<Runtime> {
    let maps = fs::read(directory.join("maps")).ok()?;
    let files = maps.split(|&byte| byte == b'\n').filter_map(|line| line.rsplit(|&byte| byte == b'/').next());
    let found = files.filter_map(|file| runtimes::of_library(str::from_utf8(file).ok()?));
    let mut found: Vec<Runtime> = found.filter(|&runtime| runs_javascript(runtime)).collect();
    found.sort_by_key(|&runtime| runtime != Runtime::Node);
    found.first().copied()
}

/// Largest number of bytes searched in an executable; single-file Node programs have about 100 MB.
const SEARCHED_BYTES_MAX: u64 = 512 << 20;

/// Finds the runtime in an executable of any name. Every Node exports the first name to add-ons;
/// the second one is an event of V8's inspector. The names are assembled here, the second one
/// reversed. Otherwise heapr's own executable would contain them.
fn runtime_inside(path: &Path) -> Option<Runtime> {
    let of_node = [&b"\0node_"[..], b"module_", b"register\0"].concat();
    let of_inspector = b"etadpUstatSpaeh.reliforPpaeH".iter().rev().copied().collect::<Vec<u8>>();
    let [of_node, of_inspector] = [&of_node, &of_inspector].map(memchr::memmem::Finder::new);
    let mut file = fs::File::open(path).ok()?.take(SEARCHED_BYTES_MAX);
    let mut buffer = vec![0_u8; 1 << 20];
    let mut kept = 0;
    let mut found = None;
    loop {
        let read = file.read(&mut buffer[kept..]).ok()?;
        if read == 0 {
            return found;
        }
        let filled = kept + read;
        if of_node.find(&buffer[..filled]).is_some() {
            return Some(Runtime::Node);
        }
        if found.is_none() && of_inspector.find(&buffer[..filled]).is_some() {
            found = Some(Runtime::Embedder);
        }
        // A name that spans two pieces is found together with the end of the first piece.
        kept = of_inspector.needle().len().min(filled);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

/// Returns a path below the root of the process, which may be a container's.
pub(crate) fn below_root(pid: u32, path: &Path) -> PathBuf {
    let mut inside = PathBuf::from(format!("/proc/{pid}/root"));
    let relative = path.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or(path.as_os_str().as_bytes());
    inside.push(Path::new(std::ffi::OsStr::from_bytes(relative)));
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(arguments: &[&str], node_options: Option<&str>) -> Process {
        let mut process = Process::examine(std::process::id()).unwrap();
        process.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        process.node_options = node_options.map(str::to_owned);
        process
    }

    #[test]
    fn options_are_found_where_node_finds_them() {
        let option = |arguments: &[&str], environment| with(arguments, environment).option("--inspect-port");
        assert_eq!(option(&["node", "--inspect-port=17", "a.js"], None).as_deref(), Some("17"));
        assert_eq!(option(&["node", "--inspect-port", "17", "a.js"], None).as_deref(), Some("17"));
        assert_eq!(option(&["node", "-r", "x", "--inspect-port=17"], None).as_deref(), Some("17"));
        assert_eq!(option(&["node", "a.js"], Some("--a --inspect-port=17")).as_deref(), Some("17"));
        assert_eq!(option(&["node", "--inspect-portal=17", "a.js"], None), None);
        assert_eq!(option(&["node", "a.js", "b", "--inspect-port=17"], None), None);
        assert_eq!(option(&[], Some("")), None);
    }

    #[test]
    fn quotes_hold_blanks_together() {
        let split = |text| split_node_options(text);
        assert_eq!(split(r#"--a  "--b=c d" --e="f\"g""#), ["--a", "--b=c d", "--e=f\"g"]);
        assert_eq!(split(r#"\a "\"#), ["\\a", ""]);
    }

    #[test]
    fn this_process_is_no_node() {
        let process = Process::examine(std::process::id()).unwrap();
        assert_eq!((process.runtime, process.inner_pid), (Runtime::Other, std::process::id()));
        assert!(process.is_alive() && !process.is_in_other_network);
    }

    #[test]
    fn threads_and_processes_that_are_not_there_are_told() {
        assert!(matches!(Process::examine(u32::MAX), Err(Error::NoProcess { .. })));
        let thread = std::thread::spawn(|| {
            let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            Process::examine(thread)
        });
        assert!(matches!(thread.join().unwrap(), Err(Error::NoProcess { .. })));
    }
}
