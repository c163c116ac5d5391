//! What a target can reach of ours: the agent's file, the shared buffers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whether a program finds the session by the two variables alone: it sees the agent's file under its path, calls us by
/// the same number, and has the rights to open the buffers among our descriptors (those that tracing us would need).
pub(crate) fn finds_session(pid: u32, agent: &Path) -> bool {
    let same_link = |name: &str| {
        let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/{name}"));
        matches!((of(&pid.to_string()), of("self")), (Ok(theirs), Ok(ours)) if theirs == ours)
    };
    same_link("pid") && same_link("user") && sees_file(pid, agent) && has_our_rights(pid)
}

/// The same user and group throughout, and no capability less.
fn has_our_rights(pid: u32) -> bool {
    let read = |who: &str| std::fs::read_to_string(format!("/proc/{who}/status"));
    let (Ok(theirs), Ok(ours)) = (read(&pid.to_string()), read("self")) else { return false };
    let line = |text: &str, name: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let own_ids = |name: &str| {
        let words = line(&ours, name)?;
        Some(words.split_ascii_whitespace().next()?.to_owned())
    };
    // All four of theirs are ours.
    let is_same = |name: &str| match (line(&theirs, name), own_ids(name)) {
        (Some(theirs), Some(own)) => theirs.split_ascii_whitespace().all(|id| id == own),
        _ => false,
    };
    let capabilities =
        |text: &str| line(text, "CapPrm:").and_then(|value| u64::from_str_radix(&value, 16).ok());
    let has_all = match (capabilities(&theirs), capabilities(&ours)) {
        (Some(theirs), Some(ours)) => ours & !theirs == 0,
        _ => false,
    };
    is_same("Uid:") && is_same("Gid:") && has_all
}

/// Whether the process sees, under this path, the file that we see.
pub(crate) fn sees_file(pid: u32, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix("/") else { return false };
    let theirs = std::fs::metadata(
        Path::new(&format!("/proc/{}/root", heapr_proc::telling_thread(pid))).join(relative),
    );
    let ours = std::fs::metadata(path);
    matches!((theirs, ours), (Ok(theirs), Ok(ours)) if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}
