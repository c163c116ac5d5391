//! Directory in which a Node process writes its snapshot on a signal, and a check that it can be
//! written. If it cannot, Node throws an exception that ends the program.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use heapr_proc::Fields;
use rustix::fs::StatVfsMountFlags;

use super::error::{Error, Result};
use super::process::{Process, below_root};

/// Capability `CAP_DAC_OVERRIDE`, which allows writing wherever the file system is writable.
const MAY_WRITE_ANYWHERE: u64 = 1 << 1;
/// Permission bits of a directory in which files can be created.
const WRITE_AND_ENTER: u32 = 0o3;

/// Returns `--diagnostic-dir` or the working directory, as the process sees it.
pub(crate) fn written_place(process: &Process) -> PathBuf {
    let working = PathBuf::from(format!("/proc/{}/cwd", process.pid));
    let working = fs::read_link(&working).unwrap_or(working);
    match process.option("--diagnostic-dir").filter(|directory| !directory.is_empty()) {
        Some(directory) => working.join(directory),
        None => working,
    }
}

/// Refuses a process that cannot write its snapshot.
pub(crate) fn refuse_unwritable(process: &Process, signal: &'static str) -> Result<()> {
    let place = written_place(process);
    let hindrance = hindrance_of(&below_root(process.pid, &place), &Writer::of(process))
        .or_else(|| by_node(process, &place));
    match hindrance {
        Some(reason) => Err(Error::CannotWrite {
            pid: process.pid,
            signal,
            directory: place.display().to_string(),
            reason,
        }),
        None => Ok(()),
    }
}

/// User and groups with which a process creates files.
struct Writer {
    uid: Option<u32>,
    gids: Vec<u32>,
    may_write_anywhere: bool,
}

impl Writer {
    fn of(process: &Process) -> Self {
        let status = Fields::of_process(process.pid).unwrap_or_default();
        // The last of the four ids applies to files.
        let gids = status.words("Groups").filter_map(|gid| gid.parse().ok());
        Self {
            uid: status.last_number("Uid"),
            gids: gids.chain(status.last_number("Gid")).collect(),
            may_write_anywhere: status.bits("CapEff").is_some_and(|bits| bits & MAY_WRITE_ANYWHERE != 0),
        }
    }
}

fn hindrance_of(directory: &Path, writer: &Writer) -> Option<&'static str> {
    let facts = match fs::metadata(directory) {
        Ok(facts) if facts.is_dir() => facts,
        Ok(_) => return Some("is no directory"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some("is not there"),
        // The process may have access to a directory that is closed to heapr.
        Err(_) => return None,
    };
    let disk = rustix::fs::statvfs(directory).ok();
    if disk.is_some_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        return Some("is on a read-only file system");
    }
    let shift = match () {
        () if writer.uid == Some(facts.uid()) => 6,
        () if writer.gids.contains(&facts.gid()) => 3,
        () => 0,
    };
    let may_write = writer.may_write_anywhere || facts.mode() >> shift & WRITE_AND_ENTER == WRITE_AND_ENTER;
    (!may_write).then_some("its user may not write to")
}

/// Returns the reason if Node's permission model forbids writing.
fn by_node(process: &Process, place: &Path) -> Option<&'static str> {
    let working = fs::read_link(format!("/proc/{}/cwd", process.pid)).unwrap_or_default();
    let covers = |allowed: &String| {
        let allowed = allowed.strip_suffix('*').unwrap_or(allowed);
        // `*` alone allows everything.
        allowed.is_empty() || place.starts_with(working.join(allowed.trim_start_matches("./")))
    };
    let is_allowed = !process.has_permissions() || process.values("--allow-fs-write").iter().any(covers);
    (!is_allowed).then_some("Node's --permission does not let it write to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_node_does_not_allow_is_told() {
        let mut process = Process::examine(std::process::id()).unwrap();
        process.node_options = None;
        let mut is_refused = |arguments: &[&str], place: &str| {
            let all = [&["node"], arguments, &["a.js"]].concat();
            process.arguments = all.into_iter().map(str::to_owned).collect();
            by_node(&process, Path::new(place)).is_some()
        };
        assert!(!is_refused(&[], "/srv"));
        for flag in ["--permission", "--experimental-permission"] {
            assert!(is_refused(&[flag], "/srv"), "{flag}");
            for allowed in ["*", "/srv", "/srv/", "/srv/*", "/"] {
                assert!(!is_refused(&[flag, &format!("--allow-fs-write={allowed}")], "/srv"), "{allowed}");
            }
            // Node treats a list with commas as one path.
            for allowed in ["/srv/logs", "/sr", "/x,/srv"] {
                assert!(is_refused(&[flag, &format!("--allow-fs-write={allowed}")], "/srv"), "{allowed}");
            }
            assert!(!is_refused(&[flag, "--allow-fs-write=/x", "--allow-fs-write=/srv"], "/srv/logs"));
        }
        let here = std::env::current_dir().unwrap();
        assert!(!is_refused(&["--permission", "--allow-fs-write=."], here.to_str().unwrap()));
    }

    #[test]
    fn a_directory_that_is_closed_to_the_user_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let facts = fs::metadata(folder.path()).unwrap();
        let writer = |uid, gids: &[u32], may_write_anywhere| Writer {
            uid: Some(uid),
            gids: gids.to_vec(),
            may_write_anywhere,
        };
        let (uid, gid) = (facts.uid(), facts.gid());
        for (mode, by_owner, by_group, by_other) in
            [(0o755, true, false, false), (0o070, false, true, false), (0o1777, true, true, true)]
        {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let may = |writer: &Writer| hindrance_of(folder.path(), writer).is_none();
            assert_eq!(may(&writer(uid, &[], false)), by_owner, "{mode:o}");
            assert_eq!(may(&writer(uid + 1, &[gid], false)), by_group, "{mode:o}");
            assert_eq!(may(&writer(uid + 1, &[gid + 1], false)), by_other, "{mode:o}");
            assert!(may(&writer(uid + 1, &[], true)), "{mode:o}");
        }
        let gone = folder.path().join("gone");
        assert_eq!(hindrance_of(&gone, &writer(uid, &[], true)), Some("is not there"));
        fs::write(&gone, "").unwrap();
        assert_eq!(hindrance_of(&gone, &writer(uid, &[], true)), Some("is no directory"));
    }
}
