//! Processes that a flag applies to: by the name of the program, or by its unit, package or control
//! group.
//!
//! | target | fits a process whose |
//! |---|---|
//! | `name redis-server` | executable has that file name, or was started by it (a link, a script) |
//! | `unit nginx.service` | control group ends in, or passes through, that unit |
//! | `flatpak org.gnome.Maps` | control group is that of the application's scope |
//! | `snap firefox` | control group or executable is that snap's |
//! | `cgroup /user.slice/x` | control group is that one or below it |
//! | `pid 4711` | number is that; it ends with the process |

use std::path::{Path, PathBuf};

use heapr_proc::{is_alive, pids, start_ticks};
use serde::{Deserialize, Serialize};

use crate::flags::FlagError;

/// Processes that a flag applies to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagTarget {
    /// File name of the executable.
    Name(String),
    /// Systemd unit.
    Unit(String),
    /// Id of a Flatpak application.
    Flatpak(String),
    /// Name of a snap.
    Snap(String),
    /// Control group, from the root of the hierarchy.
    Cgroup(String),
    /// Single running process; the start time distinguishes it from a later one with the same id.
    Pid {
        /// Process id.
        pid: u32,
        /// Start time, in clock ticks since boot.
        start_ticks: u64,
    },
}

/// Facts of a starting or running process that flags refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id.
    pub pid: u32,
    /// Path of the executable.
    pub executable: PathBuf,
    /// File name by which the process was started, where it differs: of a symbolic link, or of a
    /// script.
    pub started_as: String,
    /// Control group, from the root of the hierarchy; empty if unknown.
    pub control_group: String,
    /// Start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessFacts {
    /// Name of the process for people: the name by which it was started, else that of the
    /// executable.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = if self.started_as.is_empty() { executable_name(&self.executable) } else { None };
        name.unwrap_or(&self.started_as)
    }

    /// Reads all processes that may be read.
    #[must_use]
    pub fn of_all() -> Vec<Self> {
        pids().filter_map(Self::of).collect()
    }

    /// Reads `pid`; `None` if it is gone or may not be read.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let executable = heapr_proc::executable(pid).ok()?;
        Some(Self {
            pid,
            executable,
            started_as: started_as(pid).unwrap_or_default(),
            control_group: control_group(pid).unwrap_or_default(),
            start_ticks: start_ticks(pid)?,
        })
    }
}

/// Returns the name by which a process was started. The kernel stores 15 bytes of it; the rest
/// comes from the first argument, if that begins with the same bytes.
fn started_as(pid: u32) -> Option<String> {
    const KEPT_BYTES: usize = 15;
    const ARGUMENT_BYTES_MAX: u64 = 4096;
    let name = heapr_proc::thread_name(pid, pid)?;
    if name.len() < KEPT_BYTES {
        return Some(name);
    }
    let mut line = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/cmdline")).ok()?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, ARGUMENT_BYTES_MAX), &mut line).ok()?;
    let first = String::from_utf8_lossy(line.split(|&byte| byte == 0).next()?).into_owned();
    let whole = first.rsplit('/').next().filter(|whole| whole.starts_with(&name));
    Some(whole.map_or(name, str::to_owned))
}

/// Returns the path in the hierarchy of cgroup 2, or in that of systemd where both versions are
/// mounted.
pub(crate) fn control_group(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |beginning: &str| text.lines().find_map(|line| line.strip_prefix(beginning)).map(str::to_owned);
    let of_systemd =
        || text.lines().find_map(|line| line.split_once(":name=systemd:")).map(|(_, path)| path.to_owned());
    of("0::").filter(|path| path != "/").or_else(of_systemd).or_else(|| of("0::"))
}

impl FlagTarget {
    /// Returns a target for the running process `pid`.
    ///
    /// # Errors
    /// The process does not exist or has ended, or `pid` is a thread's id.
    pub fn running(pid: u32) -> Result<Self, FlagError> {
        let refused = |reason| FlagError::BadTarget { field: "pid", value: pid.to_string(), reason };
        let start_ticks = start_ticks(pid).ok_or_else(|| refused("there is no such process"))?;
        // The kernel shows a thread by its id too, but lists processes only.
        if !pids().any(|other| other == pid) {
            return Err(refused("this is a thread: give the process's number"));
        }
        if !is_alive(pid) {
            return Err(refused("the process has ended"));
        }
        Ok(Self::Pid { pid, start_ticks })
    }

    /// Whether the target is a process that has ended, so that it never fits again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Pid { pid, start_ticks: began }
            if start_ticks(*pid) != Some(*began) || !is_alive(*pid))
    }

    /// Returns the option that names this kind of target, and its value.
    #[must_use]
    pub fn parts(&self) -> (&'static str, String) {
        match self {
            Self::Name(name) => ("name", name.clone()),
            Self::Unit(unit) => ("unit", unit.clone()),
            Self::Flatpak(id) => ("flatpak", id.clone()),
            Self::Snap(name) => ("snap", name.clone()),
            Self::Cgroup(path) => ("cgroup", path.clone()),
            Self::Pid { pid, .. } => ("pid", pid.to_string()),
        }
    }

    /// Refuses names that no program, unit or application can have.
    ///
    /// # Errors
    /// The reason against the name.
    pub fn check(&self) -> Result<(), FlagError> {
        /// Largest length of a file name and unit name; paths of control groups may be longer.
        const MOST_NAME_BYTES: usize = 255;
        const MOST_PATH_BYTES: usize = 4096;
        let (field, value) = self.parts();
        let is_path = matches!(self, Self::Cgroup(_));
        let most_bytes = if is_path { MOST_PATH_BYTES } else { MOST_NAME_BYTES };
        let reason = match &value {
            value if value.is_empty() => Some("it is empty"),
            value if value.len() > most_bytes => Some("it is too long"),
            value if value.chars().any(char::is_control) => Some("it has control characters"),
            value if value == "." || value == ".." => Some("it is a directory"),
            value if !is_path && value.contains('/') => Some("give the file's name without its directory"),
            value if is_path && !value.starts_with('/') => Some("it must begin with a slash"),
            value if is_path && value.split('/').any(|part| part == "..") => Some("it must not lead upwards"),
            value if is_path && value.trim_end_matches('/').is_empty() => {
                Some("the root holds every process")
            }
            _ => None,
        };
        reason.map_or(Ok(()), |reason| Err(FlagError::BadTarget { field, value, reason }))
    }

    /// Whether the target applies to `process`.
    #[must_use]
    pub fn fits(&self, process: &ProcessFacts) -> bool {
        let groups = || process.control_group.split('/').filter(|part| !part.is_empty());
        match self {
            Self::Name(name) => {
                executable_name(&process.executable) == Some(name) || process.started_as == *name
            }
            Self::Unit(unit) => {
                // `nginx` stands for the service, as for systemctl.
                groups().any(|part| part == unit || part.strip_suffix(".service") == Some(unit))
            }
            Self::Flatpak(id) => groups().any(|part| flatpak_id(part) == Some(id)),
            Self::Snap(name) => {
                let is_inside =
                    |path: &Path| path.strip_prefix("/snap").is_ok_and(|rest| rest.starts_with(name));
                groups().any(|part| snap_name(part) == Some(name)) || is_inside(&process.executable)
            }
            Self::Cgroup(path) => {
                let path = path.trim_end_matches('/');
                process
                    .control_group
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Pid { pid, start_ticks } => (process.pid, process.start_ticks) == (*pid, *start_ticks),
        }
    }
}

/// Returns the file name of an executable, without the kernel's mark of a file replaced while it
/// ran.
fn executable_name(executable: &Path) -> Option<&str> {
    let name = executable.file_name()?.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name))
}

/// Parses `app-flatpak-ID-NUMBER.scope`.
fn flatpak_id(part: &str) -> Option<&str> {
    let rest = part.strip_prefix("app-flatpak-")?.strip_suffix(".scope")?;
    rest.rsplit_once('-').map(|(id, _)| id)
}

/// Parses `snap.NAME.APP-UUID.scope` and `snap.NAME.APP.service`.
fn snap_name(part: &str) -> Option<&str> {
    part.strip_prefix("snap.")?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(executable: &str, control_group: &str) -> ProcessFacts {
        ProcessFacts {
            pid: 9,
            executable: executable.into(),
            started_as: String::new(),
            control_group: control_group.into(),
            start_ticks: 5,
        }
    }

    #[test]
    fn each_kind_of_target_fits_its_processes_and_no_others() {
        let scope = "/user.slice/user-1000.slice/user@1000.service/app.slice";
        let maps = process("/app/bin/gnome-maps", &format!("{scope}/app-flatpak-org.gnome.Maps-4711.scope"));
        let fox = process("/snap/firefox/77/firefox", &format!("{scope}/snap.firefox.firefox-a1b2.scope"));
        let web = process("/usr/sbin/nginx (deleted)", "/system.slice/nginx.service");
        let all = [&maps, &fox, &web];
        let fitting = |target: FlagTarget| {
            target.check().unwrap();
            all.map(|process| target.fits(process))
        };
        assert_eq!(fitting(FlagTarget::Name("nginx".into())), [false, false, true]);
        assert_eq!(fitting(FlagTarget::Name("ngin".into())), [false, false, false]);
        assert_eq!(fitting(FlagTarget::Unit("nginx".into())), [false, false, true]);
        assert_eq!(fitting(FlagTarget::Unit("nginx.service".into())), [false, false, true]);
        assert_eq!(fitting(FlagTarget::Unit("user@1000.service".into())), [true, true, false]);
        assert_eq!(fitting(FlagTarget::Flatpak("org.gnome.Maps".into())), [true, false, false]);
        assert_eq!(fitting(FlagTarget::Flatpak("org.gnome".into())), [false, false, false]);
        assert_eq!(fitting(FlagTarget::Snap("firefox".into())), [false, true, false]);
        assert_eq!(fitting(FlagTarget::Snap("fire".into())), [false, false, false]);
        assert_eq!(fitting(FlagTarget::Cgroup("/user.slice/".into())), [true, true, false]);
        assert_eq!(fitting(FlagTarget::Cgroup("/user".into())), [false, false, false]);
        assert_eq!(fitting(FlagTarget::Pid { pid: 9, start_ticks: 5 }), [true, true, true]);
        assert_eq!(fitting(FlagTarget::Pid { pid: 9, start_ticks: 6 }), [false, false, false]);
    }

    #[test]
    fn hostile_names_are_refused() {
        for name in ["", "a/b", "/bin/sh", "a\nb", "..", "a\0b", "\u{1b}[2J", &"x".repeat(256)] {
            assert!(FlagTarget::Name(name.to_owned()).check().is_err(), "{name:?}");
        }
        for path in ["", "a", "/", "//", "/a/../b", "/a\nb"] {
            assert!(FlagTarget::Cgroup(path.to_owned()).check().is_err(), "{path:?}");
        }
        assert!(FlagTarget::running(u32::MAX).is_err());
    }

    #[test]
    fn this_process_is_found_by_its_own_facts() {
        let facts = ProcessFacts::of(std::process::id()).unwrap();
        assert!(FlagTarget::running(std::process::id()).unwrap().fits(&facts));
        let name = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(FlagTarget::Name(name).fits(&facts));
    }
}
