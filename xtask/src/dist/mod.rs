//! `cargo xtask dist`: every package from one build, and each of them installed and used.
//!
//! ```text
//! cargo zigbuild ──> binary ──> payload (what all packages hold) ──> tarball, .deb, .rpm, wheel, npm
//! (or --binary FILE)                                                    └─> --check: clean roots, a venv, an npm project
//! ```

mod build;
mod check;
mod clean_root;
mod elf_needs;
mod licences;
mod node_package;
mod payload;
mod sbom;
mod system_packages;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

pub(crate) use licences::check as check_licences;
use payload::Payload;

/// How a kind of package is made: from the payload into a folder.
type Make = fn(&Payload, &Path) -> anyhow::Result<PathBuf>;
/// How it is installed and used.
type Check = fn(&Path) -> anyhow::Result<()>;

/// Name, most bytes of a package of a release, how it is made, how it is checked.
const KINDS: &[(&str, u64, Make, Check)] = &[
    ("tar", 20 << 20, system_packages::tarball, check::tarball),
    ("deb", 20 << 20, system_packages::deb, check::deb),
    ("rpm", 20 << 20, system_packages::rpm, check::rpm),
    ("wheel", 12 << 20, wheel::make, check::wheel),
    ("npm", 12 << 20, node_package::make, check::npm),
];

/// Runs the command.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (mut binary, mut only, mut is_checked) = (None, Vec::new(), false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--binary" => binary = Some(PathBuf::from(words.next().context("--binary FILE")?)),
            "--only" => only.extend(words.next().context("--only KIND,…")?.split(',')),
            "--check" => is_checked = true,
            other => bail!("dist knows no {other}: [--binary FILE] [--only KIND,…] [--check]"),
        }
    }
    if let Some(unknown) = only.iter().find(|kind| KINDS.iter().all(|(name, ..)| name != *kind)) {
        let names: Vec<&str> = KINDS.iter().map(|(name, ..)| *name).collect();
        bail!("dist makes no {unknown}: it makes {}", names.join(", "));
    }
    let folder = crate::root().join("target/dist");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let is_release = binary.is_none();
    let binary = match binary {
        Some(binary) => crate::root().join(binary),
        None => build::release(&folder)?,
    };
    let payload = Payload::gather(&binary, &folder, is_release)?;
    for (name, bytes_max, make, check) in KINDS {
        if !only.is_empty() && !only.contains(name) {
            continue;
        }
        let file = make(&payload, &folder)?;
        let bytes = file.metadata().with_context(|| file.display().to_string())?.len();
        println!("dist: {} ({:.1} MiB)", file.display(), bytes as f64 / f64::from(1 << 20));
        if is_release && bytes > *bytes_max {
            bail!("{} has {bytes} bytes: at most {bytes_max} may be", file.display());
        }
        if is_checked {
            check(&file)?;
        }
    }
    Ok(())
}
