//! Makes the npm package: the program and the helpers for tests of Node programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::payload::{Payload, copy, copy_folder, write};
use super::system_packages::fresh;

/// Makes the package and returns its path.
pub(crate) fn make(payload: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let package = fresh(folder, "npm")?;
    copy_folder(&crate::root().join("node"), &package)?;
    for tests in ["test", "runners"] {
        fs::remove_dir_all(package.join(tests)).context(tests)?;
    }
    fs::create_dir_all(package.join("bin"))?;
    copy(&payload.program(), &package.join("bin/heapr"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENCES.txt"] {
        copy(&payload.documents().join(name), &package.join(name))?;
    }
    let manifest = package.join("package.json");
    let mut about: Value =
        serde_json::from_str(&fs::read_to_string(&manifest).context("node/package.json")?)?;
    about["version"] = payload.version.clone().into();
    about["cpu"] = vec![payload.architecture.node].into();
    write(&manifest, format!("{about:#}\n").as_bytes())?;
    // npm names the file alike for each processor: one that was made before stays.
    let stage = package.parent().context("a folder")?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(stage).current_dir(&package);
    let name = crate::output_of(&mut pack)?;
    let packed = stage.join(name.trim());
    let file = folder.join(format!("heapr-{}{}.tgz", payload.version, payload.architecture.node_suffix));
    fs::rename(&packed, &file).with_context(|| packed.display().to_string())?;
    Ok(file)
}
