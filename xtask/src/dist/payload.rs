//! Contents of all packages, gathered once into a folder that looks like `/usr`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::architecture::Architecture;
use super::build::Build;
use super::elf_needs::ElfNeeds;
use super::{licences, sbom};

/// Bytes that a release's program is to have at most, without debug information. More is told,
/// and the packages are made.
const BINARY_BYTES_MAX: u64 = 20 << 20;

/// Lists that users extend: paths in the repository, and names in packages.
const LISTS: &[(&str, &str)] = &[
    ("docs/cull-list.txt", "cull-list.txt"),
    ("crates/query/src/library_frames.txt", "library-frames.txt"),
    ("crates/query/src/wrapper_frames.txt", "wrapper-frames.txt"),
];

/// Files in `packaging` that watch a unit, and the containers of a node.
const UNIT: &str = "heapr-watch@.service";
const DAEMON_SET: &str = "heapr-watch-daemonset.yaml";

/// Files of a package.
#[derive(Debug)]
pub(crate) struct Payload {
    /// Folder with `bin` and `share`, as below `/usr`.
    pub(crate) usr: PathBuf,
    /// Debug information of the program.
    pub(crate) debug: PathBuf,
    pub(crate) version: String,
    /// Needed libraries; `None`: only Linux is needed.
    pub(crate) needs: Option<ElfNeeds>,
    pub(crate) build: Build,
    pub(crate) architecture: &'static Architecture,
    /// Level of gzip and deflate. A given program is packed to be tried, not to be sent.
    pub(crate) compression: u32,
}

/// Prints the program's size and what it needs.
fn tell_size(bytes: u64, needs: &str, is_release: bool) {
    println!("dist: the program has {:.1} MiB and needs {needs}", bytes as f64 / f64::from(1 << 20));
    if is_release && bytes > BINARY_BYTES_MAX {
        let most = BINARY_BYTES_MAX >> 20;
        println!(
            "dist: more than the {most} MiB that a release is to have: docs/decisions/0016-build-profile.md"
        );
    }
}

impl Payload {
    /// Gathers the files below `folder`.
    pub(crate) fn gather(
        (build, architecture): (Build, &'static Architecture),
        binary: &Path,
        folder: &Path,
        is_release: bool,
    ) -> anyhow::Result<Self> {
        let stage = folder.join("stage").join(build.target(architecture));
        if stage.exists() {
            fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
        }
        let usr = stage.join("usr");
        let made = |path: &str| -> anyhow::Result<PathBuf> {
            let path = usr.join(path);
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
            Ok(path)
        };
        let bin = made("bin")?;
        let program = bin.join("heapr");
        let debug = stage.join("heapr.debug");
        crate::run(architecture.tool("objcopy").arg("--only-keep-debug").arg(binary).arg(&debug))?;
        strip(architecture, binary, &program)?;
        let mut link = architecture.tool("objcopy");
        crate::run(link.current_dir(&stage).arg("--add-gnu-debuglink=heapr.debug").arg(&program))?;
        let cargo_heapr = binary.with_file_name("cargo-heapr");
        if cargo_heapr.exists() {
            strip(architecture, &cargo_heapr, &bin.join("cargo-heapr"))?;
        }
        let bytes = program.metadata()?.len();
        let needs = match build {
            Build::Glibc => Some(ElfNeeds::of(&program, architecture)?),
            Build::Static => None,
        };
        let shown =
            needs.as_ref().map_or("nothing".to_owned(), |ElfNeeds { glibc: (major, minor), .. }| {
                format!("glibc {major}.{minor}")
            });
        tell_size(bytes, &shown, is_release);
        let manual = made("share/man/man1")?;
        crate::run(architecture.program(&program).args(["man", "-f", "--into"]).arg(&manual))?;
        let pages =
            fs::read_dir(&manual)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
        crate::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).args(pages))?;
        for (shell, path, name) in [
            ("bash", "share/bash-completion/completions", "heapr"),
            ("zsh", "share/zsh/vendor-completions", "_heapr"),
            ("fish", "share/fish/vendor_completions.d", "heapr.fish"),
        ] {
            let text = crate::output_of(architecture.program(&program).args(["completions", shell]))?;
            write(&made(path)?.join(name), text.as_bytes())?;
        }
        let lists = made("share/heapr")?;
        for (from, name) in LISTS {
            copy(&crate::root().join(from), &lists.join(name))?;
        }
        // Folder that `find_package(heapr)` searches.
        let cmake = made("share/heapr/cmake")?;
        copy(&crate::root().join("packaging/heapr-config.cmake"), &cmake.join("heapr-config.cmake"))?;
        let documents = made("share/doc/heapr")?;
        add_watches(&made("lib/systemd/system")?, &documents)?;
        for name in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            copy(&crate::root().join(name), &documents.join(name))?;
        }
        copy_folder(&crate::root().join("docs"), &documents.join("docs"))?;
        let commands = crate::output_of(architecture.program(&program).args(["man", "--markdown"]))?;
        write(&documents.join("docs/book/commands.md"), commands.as_bytes())?;
        crate::book::write(&documents.join("html"))?;
        write(&documents.join("THIRD-PARTY-LICENCES.txt"), licences::texts()?.as_bytes())?;
        write(&documents.join("heapr.cdx.json"), sbom::cyclone_dx()?.as_bytes())?;
        Ok(Self {
            usr,
            debug,
            version: crate::version()?,
            needs,
            build,
            architecture,
            compression: if is_release { 9 } else { 1 },
        })
    }

    /// Folder of the documents.
    pub(crate) fn documents(&self) -> PathBuf {
        self.usr.join("share/doc/heapr")
    }

    /// Path of the program.
    pub(crate) fn program(&self) -> PathBuf {
        self.usr.join("bin/heapr")
    }
}

/// Adds the files that watch. `systemctl start heapr-watch@web` watches web.service.
fn add_watches(units: &Path, documents: &Path) -> anyhow::Result<()> {
    let packaging = crate::root().join("packaging");
    copy(&packaging.join(UNIT), &units.join(UNIT))?;
    copy(&packaging.join(DAEMON_SET), &documents.join(DAEMON_SET))
}

fn strip(architecture: &Architecture, from: &Path, to: &Path) -> anyhow::Result<()> {
    crate::run(architecture.tool("strip").arg("--strip-all").arg("-o").arg(to).arg(from))
}

/// Writes a file that all users may read.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::write(path, content).with_context(|| path.display().to_string())
}

/// Copies a file.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to).with_context(|| format!("{} -> {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies a folder with all files below it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}
