//! Checks what a target can reach of the recorder's: the agent's file, the shared buffers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use heapr_proc::Fields;

/// Whether a program finds the session by the two variables alone. It must see the agent's file
/// under its path and know the recorder by the same process id. It also needs the rights to open
/// the buffers among the recorder's descriptors, which are those of tracing it.
pub(crate) fn finds_session(pid: u32, agent: &Path) -> bool {
    let own = heapr_proc::own_pid();
    let shares = |kind: &str| {
        let ours = heapr_proc::namespace(own, kind);
        ours.is_some() && heapr_proc::namespace(pid, kind) == ours
    };
    shares("pid") && shares("user") && sees_file(pid, agent) && has_our_rights(pid)
}

/// Whether a process has our user and group throughout, and at least our capabilities.
fn has_our_rights(pid: u32) -> bool {
    let (Ok(theirs), ours) = (Fields::of_process(pid), Fields::of_self()) else { return false };
    // All four ids of the process must be ours.
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

/// Whether the process sees the same file under this path as we do.
pub(crate) fn sees_file(pid: u32, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix("/") else { return false };
    let theirs = std::fs::metadata(heapr_proc::folder(pid).join("root").join(relative));
    let ours = std::fs::metadata(path);
    matches!((theirs, ours), (Ok(theirs), Ok(ours)) if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}
