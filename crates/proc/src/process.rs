//! What a process is: its id inside, executable, arguments, names, namespaces, size.

use std::path::PathBuf;
use std::{fs, io};

use crate::fields::Fields;
use crate::first_thread::folder;
use crate::whole_file;

/// The process id as the process sees itself; the same number if it cannot be told.
pub fn inner_pid(pid: u32) -> u32 {
    Fields::of_process(pid).ok().and_then(|status| status.last_number("NStgid")).unwrap_or(pid)
}

/// The path of the program's file.
///
/// # Errors
/// It is gone, may not be looked at, or is a thread of the kernel.
pub fn executable(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(folder(pid).join("exe"))
}

/// The arguments; none if they cannot be read.
pub fn command_line(pid: u32) -> Vec<String> {
    command_words(&whole_file::read(folder(pid).join("cmdline")).unwrap_or_default())
}

/// The words of a command line as the kernel keeps it: each has a zero behind it.
pub fn command_words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let arguments = bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    arguments.filter(|_| !bytes.is_empty()).collect()
}

/// The value of a variable of the environment with which the program was started.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    let bytes = whole_file::read(folder(pid).join("environ")).ok()?;
    let value = |line: &[u8]| Some(line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned());
    let value = bytes.split(|&byte| byte == 0).find_map(value)?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// The name of a thread, of which the kernel keeps 15 bytes; `None` if it does not exist.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = whole_file::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).into_owned())
}

/// The namespace of a kind (`pid`, `net`, …) in which a process is, by the number of its inode.
pub fn namespace(pid: u32, kind: &str) -> Option<u32> {
    let link = fs::read_link(folder(pid).join("ns").join(kind)).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// Resident memory; none of a process that has given its memory back, as one does that is ending.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let sizes = fs::read_to_string(folder(pid).join("statm")).ok()?;
    let pages: u64 = sizes.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64).filter(|&bytes| bytes > 0)
}

/// A limit of the process's own by the kernel's name for it, as `Max data size`.
pub fn soft_limit(pid: u32, kind: &str) -> Option<u64> {
    let limits = fs::read_to_string(folder(pid).join("limits")).ok()?;
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
