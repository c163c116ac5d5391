//! Properties of a process: inner id, executable, arguments, names, namespaces, size.

use std::path::PathBuf;
use std::{fs, io};

use crate::fields::Fields;
use crate::first_thread::folder;
use crate::whole_file;

/// Process id in the process's own namespace; `pid` itself if unknown.
pub fn inner_pid(pid: u32) -> u32 {
    Fields::of_process(pid).ok().and_then(|status| status.last_number("NStgid")).unwrap_or(pid)
}

/// Path of the program's file.
///
/// # Errors
/// Returns an error if the process is gone, may not be read, or is a kernel thread.
pub fn executable(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(folder(pid).join("exe"))
}

/// Arguments of a process; empty if they cannot be read.
pub fn command_line(pid: u32) -> Vec<String> {
    command_words(&whole_file::read(folder(pid).join("cmdline")).unwrap_or_default())
}

/// Splits a command line in the kernel's format, in which each word ends with a zero.
pub fn command_words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let arguments = bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    arguments.filter(|_| !bytes.is_empty()).collect()
}

/// Value of a variable in the environment with which the program was started.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    let bytes = whole_file::read(folder(pid).join("environ")).ok()?;
    let value = |line: &[u8]| Some(line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned());
    let value = bytes.split(|&byte| byte == 0).find_map(value)?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// Name of a thread, up to 15 bytes; `None` if the thread does not exist.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = whole_file::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).into_owned())
}

/// Inode number of the namespace of a kind (`pid`, `net`, …) of a process.
pub fn namespace(pid: u32, kind: &str) -> Option<u32> {
    let link = fs::read_link(folder(pid).join("ns").join(kind)).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// Resident memory in bytes; `None` for a process that has released its memory, as an ending one
/// has.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let sizes = whole_file::text(folder(pid).join("statm")).ok()?;
    let pages: u64 = sizes.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64).filter(|&bytes| bytes > 0)
}

/// Soft limit of a process, by the kernel's name of it, such as `Max data size`.
pub fn soft_limit(pid: u32, kind: &str) -> Option<u64> {
    let limits = whole_file::text(folder(pid).join("limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix(kind))?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_told() {
        let pid = std::process::id();
        assert_eq!(inner_pid(pid), pid);
        assert_eq!(executable(pid).unwrap(), std::env::current_exe().unwrap());
        assert_eq!(command_line(pid), std::env::args().collect::<Vec<_>>());
        assert_eq!(variable(pid, "PATH"), std::env::var("PATH").ok());
        assert!(thread_name(pid, pid).is_some());
        assert!(namespace(pid, "pid").is_some());
        assert!(resident_bytes(pid).is_some_and(|bytes| bytes > 100_000));
        assert!(soft_limit(pid, "Max open files").is_some_and(|count| count > 2));
    }

    #[test]
    fn no_process_is_told_nothing_of() {
        assert!(executable(u32::MAX).is_err());
        assert!(command_line(u32::MAX).is_empty() && variable(u32::MAX, "PATH").is_none());
        assert_eq!((namespace(u32::MAX, "pid"), inner_pid(u32::MAX)), (None, u32::MAX));
    }
}
