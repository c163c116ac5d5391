//! Files that heapr reads, by their names.

use std::path::{Path, PathBuf};

use super::candidates::{Candidates, Kind};

/// Ends of the names of traces and snapshots, heapr's own and other tools'.
const ENDS: &[&str] = &[
    ".heapr",
    ".heapsnapshot",
    ".heaptimeline",
    ".heapprofile",
    ".hprof",
    ".pprof",
    ".pb",
    ".prof",
    ".heap",
    ".dhat",
    ".folded",
];
/// Beginnings of the names that other tools give.
const BEGINNINGS: &[&str] = &["heaptrack.", "massif.out", "dhat.out", "dhat-heap", "jeprof.", "memray-"];
/// Ends of packed files.
const PACKED: &[&str] = &[".gz", ".zst"];

/// Returns the traces and folders that begin as the typed word does.
pub(super) fn in_folder(typed: &str) -> Candidates {
    let mut found = Candidates::new(Kind::Paths);
    let plain = unquoted(typed);
    let (folder, begin) = plain
        .rsplit_once('/')
        .map_or(("", plain.as_str()), |(folder, name)| (&plain[..folder.len() + 1], name));
    let place = match folder {
        "" => PathBuf::from("."),
        folder => expanded(folder),
    };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_hidden = name.starts_with('.') && !begin.starts_with('.');
        if is_hidden || !name.starts_with(begin) {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            found.add("", format!("{folder}{name}/"), "");
        } else if is_trace(&name) && path.is_file() {
            found.add("", format!("{folder}{name}"), "");
        }
    }
    found.list.sort_unstable_by(|one, other| one.word.cmp(&other.word));
    found
}

/// Returns the traces of [`in_folder`]; without any, the shell lists all files.
pub(super) fn or_files(typed: &str) -> Candidates {
    let found = in_folder(typed);
    let has_trace = found.list.iter().any(|candidate| !candidate.word.ends_with('/'));
    if has_trace { found } else { Candidates::new(Kind::Files) }
}

fn is_trace(name: &str) -> bool {
    let plain = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    ENDS.iter().any(|end| plain.ends_with(end)) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Returns a word as the shell would pass it: without quotes and backslashes.
fn unquoted(typed: &str) -> String {
    if let Some(quoted) = typed.strip_prefix(['"', '\'']) {
        return quoted.to_owned();
    }
    let mut plain = String::new();
    let mut letters = typed.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

fn expanded(folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_all_tools_are_known_by_name() {
        for name in [
            "a.heapr",
            "a.heapsnapshot",
            "a.heapsnapshot.gz",
            "heaptrack.server.123.zst",
            "massif.out.7",
            "dhat.out.7",
            "heap.pb.gz",
            "a.hprof",
            "jeprof.1.0.heap",
        ] {
            assert!(is_trace(name), "{name}");
        }
        assert!(!is_trace("notes.txt") && !is_trace("a.tar.gz"));
        assert_eq!(unquoted("a\\ b"), "a b");
        assert_eq!(unquoted("\"a b"), "a b");
    }
}
