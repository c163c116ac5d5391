//! Clean systems to install packages in: Debian's releases by `debootstrap`, made once, copied for
//! each use. Needs root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// System that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct CleanRoot {
    folder: tempfile::TempDir,
}

/// Debian 11, 12 and 13.
pub(crate) const RELEASES: &[&str] = &["bullseye", "bookworm", "trixie"];

const MIRROR: &str = "http://deb.debian.org/debian";

impl CleanRoot {
    /// Returns a copy of a freshly installed release; `HEAPR_CLEAN_ROOTS` names a folder of such
    /// releases.
    pub(crate) fn of(release: &str) -> anyhow::Result<Self> {
        let roots = std::env::var_os("HEAPR_CLEAN_ROOTS").map(PathBuf::from);
        let roots = roots.unwrap_or_else(|| crate::root().join("target/dist/roots"));
        let made = roots.join(release);
        if !made.join("bin/sh").exists() {
            std::fs::create_dir_all(&roots)?;
            let mut make = Command::new("debootstrap");
            crate::run(make.args(["--variant=minbase", release]).arg(&made).arg(MIRROR))?;
        }
        let folder = tempfile::tempdir_in(&roots)?;
        crate::run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(made.join(".")).arg(folder.path()))?;
        Ok(Self { folder })
    }

    /// Returns a root without any system, for programs that need no libraries.
    pub(crate) fn empty() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        for made in ["proc", "bin", "lib", "tmp", "dev"] {
            std::fs::create_dir(folder.path().join(made))?;
        }
        Ok(Self { folder })
    }

    /// Path of the root.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script in the root, with a separate process namespace and `/proc`. Returns the
    /// output.
    pub(crate) fn run(&self, script: &str) -> anyhow::Result<String> {
        let inside = r#"exec chroot "$1" /usr/bin/env -i HOME=/root \
            PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C sh -ec "$2""#;
        self.run_beside(inside, script)
    }

    /// Runs a script beside the root, which may have no shell. `$1` is the root, and the script
    /// changes to it itself; `$2` is its argument.
    pub(crate) fn run_beside(&self, script: &str, argument: &str) -> anyhow::Result<String> {
        let script = format!("mount -t proc proc \"$1/proc\"\nexec 2>&1\n{script}");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", &script, "sh"]);
        command.arg(self.path()).arg(argument).stdin(std::process::Stdio::null());
        crate::output_of(&mut command)
    }
}
