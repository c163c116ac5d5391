//! Words that a program has stored in the kernel: data of epoll events, values of timers.

use crate::first_thread::folder;
use crate::whole_file;

/// Returns the words that the kernel stores for a process, each list with its owner: an epoll
/// descriptor or the timers. Zeros are left out.
pub fn kernel_words(pid: u32) -> Vec<(String, Vec<u64>)> {
    let folder = folder(pid);
    let mut found = Vec::new();
    let descriptors = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    for descriptor in descriptors {
        let link = std::fs::read_link(descriptor.path()).unwrap_or_default();
        if link.as_os_str() != "anon_inode:[eventpoll]" {
            continue;
        }
        let number = descriptor.file_name().to_string_lossy().into_owned();
        let text = whole_file::text(folder.join("fdinfo").join(&number)).unwrap_or_default();
        found.push((format!("epoll fd {number}"), epoll_words(&text)));
    }
    let timers = whole_file::text(folder.join("timers")).unwrap_or_default();
    found.push(("timers".to_owned(), timer_words(&timers)));
    found.retain(|(_, words)| !words.is_empty());
    found
}

/// Parses lines `tfd:        5 events:       19 data:     7f0012345678  pos:0 …`.
fn epoll_words(text: &str) -> Vec<u64> {
    let data = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("data:")?;
        u64::from_str_radix(rest.split_ascii_whitespace().next()?, 16).ok()
    });
    data.filter(|&word| word != 0).collect()
}

/// Parses lines `signal: 10/00007f0012345678`.
fn timer_words(text: &str) -> Vec<u64> {
    let values = text.lines().filter_map(|line| {
        let (_, value) = line.strip_prefix("signal:")?.split_once('/')?;
        u64::from_str_radix(value.trim().trim_start_matches("0x"), 16).ok()
    });
    values.filter(|&word| word != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_values_are_told() {
        let epoll = "pos:\t0\nflags:\t02\ntfd:        7 events:       19 data:     5559a12b32a0  pos:0 ino:1 sdev:9\n";
        assert_eq!(epoll_words(epoll), [0x5559_a12b_32a0]);
        let timers = "ID: 0\nsignal: 10/00005581b2ff6320\nnotify: signal/pid.5\nClockID: 1\n";
        assert_eq!(timer_words(timers), [0x5581_b2ff_6320]);
    }
}
