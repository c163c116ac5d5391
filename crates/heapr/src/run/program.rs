//! Finds the program, and whether it can be traced.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use heapr_known::machine::HERE;
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use super::sanitizer;

/// Program to run.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) traceability: Traceability,
}

/// Way in which the agent gets into the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Traceability {
    Yes,
    /// Program without a loader: the agent is injected from outside.
    Held,
    /// Program with a loader and no library, injected from outside. A preloaded agent calls the C
    /// library, and would end this program.
    HeldAlone,
    /// Untraceable: the reason, and an alternative.
    No(String),
}

/// Reason why a program cannot be run at all.
#[derive(Debug)]
pub(crate) enum Refusal {
    NotFound(String),
    NotExecutable(String),
}

impl Refusal {
    /// Exit code that a shell would return.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable(_) => 126,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) => write!(formatter, "{name}: no such program"),
            Self::NotExecutable(name) => write!(formatter, "{name}: not executable"),
        }
    }
}

/// Finds a program as execvp does.
pub(crate) fn find(name: &OsStr) -> Result<Found, Refusal> {
    let shown = name.to_string_lossy().into_owned();
    if name.is_empty() {
        return Err(Refusal::NotFound(shown));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match std::fs::metadata(&path) {
            Err(_) => Err(Refusal::NotFound(shown)),
            Ok(_) if !is_executable(&path) => Err(Refusal::NotExecutable(shown)),
            Ok(_) => Ok(examine(path)),
        };
    }
    let mut is_there = false;
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
    for directory in std::env::split_paths(&search) {
        let path = if directory.as_os_str().is_empty() { PathBuf::from(name) } else { directory.join(name) };
        if is_executable(&path) {
            return Ok(examine(path));
        }
        is_there |= path.is_file();
    }
    Err(if is_there { Refusal::NotExecutable(shown) } else { Refusal::NotFound(shown) })
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn examine(path: PathBuf) -> Found {
    let traceability = traceability(&path, 0);
    Found { path, traceability }
}

/// Longest chain of `#!` scripts.
const SCRIPT_DEPTH_MAX: u32 = 4;

fn traceability(path: &Path, depth: u32) -> Traceability {
    let no = |reason: &str| Traceability::No(reason.to_owned());
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| {
        (&file).take(64 << 10).read_to_end(&mut head)?;
        Ok(file)
    });
    let Ok(file) = read else {
        // The file is executable but not readable: the loader refuses a preload only if it changes
        // identity.
        return Traceability::Yes;
    };
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        if depth >= SCRIPT_DEPTH_MAX || interpreter.is_empty() {
            return Traceability::Yes;
        }
        return traceability(Path::new(OsStr::from_bytes(interpreter)), depth + 1);
    }
    if let Ok(metadata) = std::fs::metadata(path) {
        let mode = metadata.permissions().mode();
        let me = rustix::process::geteuid().as_raw();
        let my_group = rustix::process::getegid().as_raw();
        let changes_user = mode & 0o4000 != 0 && metadata.uid() != me;
        let changes_group = mode & 0o2010 == 0o2010 && metadata.gid() != my_group;
        if changes_user || changes_group {
            return no(
                "it is setuid or setgid, and the loader loads nothing into such programs: run heapr as the user that it changes to",
            );
        }
        let mut value = [0_u8; 64];
        if me != 0 && rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok() {
            return no(
                "it has file capabilities, and the loader loads nothing into such programs: run heapr as root, or a copy of it without them",
            );
        }
    }
    match elf_traceability(&head) {
        Traceability::Yes if sanitizer::needs_no_library(&file) => Traceability::HeldAlone,
        Traceability::Yes => sanitizer::obstacle(&file).map_or(Traceability::Yes, Traceability::No),
        no => no,
    }
}

fn elf_traceability(head: &[u8]) -> Traceability {
    let no = |reason: &str| Traceability::No(reason.to_owned());
    if !head.starts_with(b"\x7fELF") {
        return no("it is neither an ELF program nor a script");
    }
    let header = FileHeader64::<LittleEndian>::parse(head).ok();
    let Some(header) = header
        .filter(|header| header.endian().is_ok() && header.e_machine(LittleEndian).0 == HERE.elf_number)
    else {
        return no(&format!("it is for another processor than {}: use heapr on that machine", HERE.name));
    };
    // Program headers that lie elsewhere are for the kernel to judge.
    let Ok(segments) = header.program_headers(LittleEndian, head) else { return Traceability::Yes };
    let has_interpreter = segments.iter().any(|segment| segment.p_type(LittleEndian) == elf::PT_INTERP);
    if has_interpreter { Traceability::Yes } else { Traceability::Held }
}
