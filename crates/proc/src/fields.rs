//! Files with lines `Name:   value`: status of processes and threads, memory of the machine.

use std::path::Path;
use std::str::{FromStr, SplitAsciiWhitespace};

use crate::first_thread::folder;
use crate::whole_file;

/// Lines of such a file.
#[derive(Debug, Clone, Default)]
pub struct Fields(String);

impl Fields {
    /// Reads `/proc/PID/status` of a process.
    ///
    /// # Errors
    /// Returns an error if the process is gone or may not be read.
    pub fn of_process(pid: u32) -> std::io::Result<Self> {
        Self::read(folder(pid).join("status"))
    }

    /// Reads the status of a thread; `None` if it is gone.
    pub fn of_thread(pid: u32, tid: u32) -> Option<Self> {
        Self::read(format!("/proc/{pid}/task/{tid}/status")).ok()
    }

    /// Reads the status of this process; empty without `/proc`.
    pub fn of_self() -> Self {
        Self::read("/proc/self/status").unwrap_or_default()
    }

    /// Reads the machine's memory, `/proc/meminfo`; empty without `/proc`.
    pub fn of_machine() -> Self {
        Self::read("/proc/meminfo").unwrap_or_default()
    }

    fn read(path: impl AsRef<Path>) -> std::io::Result<Self> {
        Ok(Self::parse(&whole_file::read(path)?))
    }

    /// Parses a file's content. A program's name may contain any bytes.
    pub fn parse(text: &[u8]) -> Self {
        Self(String::from_utf8_lossy(text).into_owned())
    }

    /// Text after `NAME:`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Words after `NAME:`; empty if there is no such line.
    pub fn words(&self, name: &str) -> SplitAsciiWhitespace<'_> {
        self.text(name).unwrap_or_default().split_ascii_whitespace()
    }

    /// First word, as a number.
    pub fn number<Number: FromStr>(&self, name: &str) -> Option<Number> {
        self.words(name).next()?.parse().ok()
    }

    /// Last word, as a number: in a line of ids the one in the innermost namespace.
    pub fn last_number(&self, name: &str) -> Option<u32> {
        self.words(name).last()?.parse().ok()
    }

    /// Amount in bytes, from a value in kB.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.number::<u64>(name)?.checked_mul(1024)
    }

    /// Set of bits, such as capabilities or signals.
    pub fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.text(name)?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_names() {
        let fields = Fields::parse(
            b"Name:\t\xff x\nSeccomp_filters:\t3\nSeccomp:\t2\nNStgid:\t70\t7\nVmRSS:\t   12 kB\nSigCgt:\t00f0\nbroken",
        );
        assert_eq!(fields.text("Name"), Some("\u{fffd} x"));
        assert_eq!((fields.number("Seccomp"), fields.last_number("NStgid")), (Some(2), Some(7)));
        assert_eq!((fields.bytes("VmRSS"), fields.bits("SigCgt")), (Some(12 << 10), Some(0xf0)));
        assert_eq!((fields.text("VmR"), fields.number::<u32>("Name")), (None, None));
    }

    #[test]
    fn this_process_and_the_machine_have_some() {
        let pid = std::process::id();
        assert_eq!(Fields::of_process(pid).unwrap().number("Tgid"), Some(pid));
        assert!(Fields::of_self().bytes("VmRSS").is_some_and(|bytes| bytes > 100_000));
        assert!(Fields::of_machine().bytes("MemAvailable").is_some());
        assert!(Fields::of_process(u32::MAX).is_err());
    }
}
