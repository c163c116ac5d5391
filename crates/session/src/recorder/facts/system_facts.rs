//! Describes the machine, for the file.

use std::fs;

use heapr_trace::System;

/// Reads the facts of the machine.
pub(crate) fn system() -> System {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    System {
        kernel: format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.nodename())),
        machine: text(uname.machine()),
        distribution: distribution(),
        cpu_count: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_bytes: heapr_proc::Fields::of_machine().bytes("MemTotal").unwrap_or(0),
        page_bytes: rustix::param::page_size() as u64,
    }
}

/// Version of the running Linux kernel as (major, minor); `None` if the release has another form.
#[must_use]
pub fn kernel_version() -> Option<(u32, u32)> {
    version_of(&rustix::system::uname().release().to_string_lossy())
}

/// Parses a release: `6.1.0-18-amd64` is (6, 1).
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn distribution() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_two_numbers() {
        assert_eq!(version_of("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version_of("5.4.0-1-amd64"), Some((5, 4)));
        assert_eq!(version_of("unknown"), None);
    }
}
