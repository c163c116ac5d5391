//! Makes every package from one build, installs each of them and uses it (`cargo xtask dist`).
//!
//! ```text
//! cargo zigbuild ──> binary ──> payload (content of all ──> tarball, .deb, .rpm, wheel, npm
//! (or --binary FILE)            packages)                   └─> --check: clean roots, containers,
//!                                                               a venv, an npm project
//! cargo build for musl ──> payload ──> static tarball
//! ```

mod architecture;
mod build;
mod check;
mod clean_root;
mod crates;
mod elf_needs;
mod image;
mod licences;
mod node_package;
mod payload;
mod sbom;
mod sums;
mod system_packages;
mod tools;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use architecture::Architecture;
use build::Build;
pub(crate) use licences::check as check_licences;
pub(crate) use licences::dependencies;
use payload::Payload;

/// Function that makes a kind of package from the payload in a folder.
type Make = fn(&Payload, &Path) -> anyhow::Result<PathBuf>;
/// Function that installs a package and uses it.
type Check = fn(&Path) -> anyhow::Result<()>;

/// Kind of package: name, build, largest size in bytes of a release's package, maker, and check.
type Kind = (&'static str, Build, u64, Make, Check);

const KINDS: &[Kind] = &[
    ("tar", Build::Glibc, 20 << 20, system_packages::tarball, check::tarball),
    ("deb", Build::Glibc, 20 << 20, system_packages::deb, check::deb),
    ("rpm", Build::Glibc, 20 << 20, system_packages::rpm, check::rpm),
    ("wheel", Build::Glibc, 12 << 20, wheel::make, check::wheel),
    ("npm", Build::Glibc, 12 << 20, node_package::make, check::npm),
    ("crates", Build::Glibc, 4 << 20, crates::make, crates::check),
    // Uses the tarball: `packaging/Containerfile`.
    ("image", Build::Glibc, 20 << 20, system_packages::tarball, image::check),
    ("static", Build::Static, 20 << 20, system_packages::tarball, check::without_glibc),
];

/// Runs the command.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (mut binary, mut only, mut is_checked, mut is_twice) = (None, Vec::new(), false, false);
    let mut architecture = Architecture::here().context("packages are made on no such processor")?;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--binary" => binary = Some(PathBuf::from(words.next().context("--binary FILE")?)),
            "--only" => only.extend(words.next().context("--only KIND,…")?.split(',')),
            "--target" => {
                let target = words.next().context("--target TARGET")?;
                architecture = Architecture::of_target(target).with_context(|| {
                    format!("no package is made for {target}: {}", Architecture::targets())
                })?;
            }
            "--check" => is_checked = true,
            "--twice" => is_twice = true,
            other => {
                bail!(
                    "dist knows no {other}: [--binary FILE] [--target TARGET] [--only KIND,…] [--check] [--twice]"
                )
            }
        }
    }
    if let Some(unknown) = only.iter().find(|kind| KINDS.iter().all(|(name, ..)| name != *kind)) {
        let names: Vec<&str> = KINDS.iter().map(|(name, ..)| *name).collect();
        bail!("dist makes no {unknown}: it makes {}", names.join(", "));
    }
    let is_here = Architecture::here() == Some(architecture);
    if is_checked && !is_here {
        bail!("packages are checked on a machine of their processor: leave --check out");
    }
    if binary.is_none() && !is_here {
        bail!("packages for another processor are made from a program that is there: --binary FILE");
    }
    if let Some(lacks) = (!is_here).then(|| tools::missing_for(architecture)).flatten() {
        bail!("{lacks}");
    }
    // With a given program, only the packages of that kind of build are made.
    let is_asked = |(name, build, ..): &&Kind| {
        only.contains(name) || only.is_empty() && (binary.is_none() || *build == Build::Glibc)
    };
    let asked: Vec<&Kind> = KINDS.iter().filter(is_asked).collect();
    let (kinds, left_out) = tools::split(asked, binary.is_some());
    for (name, lacks) in &left_out {
        println!("dist: no {name}: {lacks}");
    }
    if !only.is_empty() && !left_out.is_empty() {
        bail!("not all that --only names can be made here: see above");
    }
    if kinds.is_empty() {
        bail!("nothing can be made here: see above");
    }
    let names: Vec<&str> = kinds.iter().map(|(name, ..)| *name).collect();
    println!("dist: makes {}", names.join(", "));
    let folder = crate::root().join("target/dist");
    let files = make_all(&kinds, architecture, binary.as_deref(), &folder)?;
    sums::write(&files, &folder)?;
    if is_twice {
        let again = folder.join("again");
        let second = make_all(&kinds, architecture, binary.as_deref(), &again)?;
        sums::compare(&files, &second)?;
        println!("dist: a second build gave the same {} files", files.len());
    }
    if is_checked {
        kinds.iter().zip(&files).try_for_each(|((.., check), file)| check(file))?;
    }
    for (name, lacks) in &left_out {
        println!("dist: was not made: {name}: {lacks}");
    }
    Ok(())
}

/// Makes Debian's package for a target from a program that is there.
pub(crate) fn deb_of(target: &str, binary: &Path) -> anyhow::Result<PathBuf> {
    let architecture = Architecture::of_target(target).with_context(|| format!("no package for {target}"))?;
    let kinds: Vec<&Kind> = KINDS.iter().filter(|(name, ..)| *name == "deb").collect();
    let files = make_all(&kinds, architecture, Some(binary), &crate::root().join("target/dist/given"))?;
    files.into_iter().next().context("no package was made")
}

/// Makes packages of these kinds below a folder, and returns their files in the same order.
fn make_all(
    kinds: &[&Kind],
    architecture: &'static Architecture,
    binary: Option<&Path>,
    folder: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let is_release = binary.is_none();
    let mut payload: Option<Payload> = None;
    let mut files = Vec::new();
    for (name, build, bytes_max, make, _) in kinds {
        let made = match payload.take().filter(|payload| payload.build == *build) {
            Some(payload) => payload,
            None => {
                let binary = match binary {
                    Some(binary) => crate::root().join(binary),
                    None => build.release(architecture, folder)?,
                };
                Payload::gather((*build, architecture), &binary, folder, is_release)?
            }
        };
        let file = make(payload.insert(made), folder).with_context(|| format!("package {name}"))?;
        let bytes = file.metadata().with_context(|| file.display().to_string())?.len();
        println!("dist: {} ({:.1} MiB)", file.display(), bytes as f64 / f64::from(1 << 20));
        if is_release && bytes > *bytes_max {
            bail!("{} has {bytes} bytes: at most {bytes_max} may be", file.display());
        }
        files.push(file);
    }
    Ok(files)
}
