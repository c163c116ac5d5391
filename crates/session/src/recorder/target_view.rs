//! What a target can reach of ours: the agent's file, the shared buffers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use heapr_proc::Fields;

/// Whether a program finds the session by the two variables alone: it sees the agent's file under
/// its path, calls us by the same number, and has the rights to open the buffers among our
/// descriptors (those that tracing us would need).
pub(crate) fn finds_session(pid: u32, agent: &Path) -> bool {
    let own = heapr_proc::own_pid();
    let shares = |kind: &str| {
        let ours = heapr_proc::namespace(own, kind);
        ours.is_some() && heapr_proc::namespace(pid, kind) == ours
    };
    shares("pid") && shares("user") && sees_file(pid, agent) && has_our_rights(pid)
}

/// The same user and group throughout, and no capability less.
fn has_our_rights(pid: u32) -> bool {
    let (Ok(theirs), ours) = (Fields::of_process(pid), Fields::of_self()) else { return false };
    // All four of theirs are ours.
    let is_same = |name: &str| {
        let own = ours.words(name).next();
        own.is_some() && theirs.text(name).is_some() && theirs.words(name).all(|id| Some(id) == own)
    };
    let has_all = match (theirs.bits("CapPrm"), ours.bits("CapPrm")) {
        (Some(theirs), Some(ours)) => ours & !theirs == 0,
        _ => false,
    };
    is_same("Uid") && is_same("Gid") && has_all
}

/// Whether the process sees, under this path, the file that we see.
pub(crate) fn sees_file(pid: u32, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix("/") else { return false };
    let theirs = std::fs::metadata(heapr_proc::folder(pid).join("root").join(relative));
    let ours = std::fs::metadata(path);
    matches!((theirs, ours), (Ok(theirs), Ok(ours)) if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}
