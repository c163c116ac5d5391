//! Checksums of packages, a manifest of them, and whether two builds are equal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::build;

/// Writes `SHA256SUMS`, as `sha256sum --check` reads it, and `manifest.json`. Packages that were
/// made before under other names are in neither.
pub(super) fn write(files: &[PathBuf], folder: &Path) -> anyhow::Result<()> {
    let sums = of(files)?;
    let text: String = sums.iter().map(|(name, (sum, _))| format!("{sum}  {name}\n")).collect();
    let packages: Vec<_> = sums
        .iter()
        .map(|(name, (sum, bytes))| json!({"file": name, "bytes": bytes, "sha256": sum}))
        .collect();
    let manifest = json!({
        "schema": "heapr.dist/1",
        "version": crate::version()?,
        "commit": build::commit()?,
        "packages": packages,
    });
    for (name, text) in [("SHA256SUMS", text), ("manifest.json", format!("{manifest:#}\n"))] {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("dist: {}", path.display());
    }
    Ok(())
}

/// Compares the files of two builds.
pub(super) fn compare(first: &[PathBuf], second: &[PathBuf]) -> anyhow::Result<()> {
    let (first, second) = (of(first)?, of(second)?);
    let differ: Vec<&str> = first
        .iter()
        .filter(|(name, sum)| second.get(*name) != Some(sum))
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(differ.is_empty(), "a second build gave other files: {}", differ.join(", "));
    Ok(())
}

/// Returns name -> checksum and size.
fn of(files: &[PathBuf]) -> anyhow::Result<BTreeMap<String, (String, u64)>> {
    let sum = |path: &PathBuf| {
        let content = std::fs::read(path).with_context(|| path.display().to_string())?;
        let name = path.file_name().context("a file")?.to_string_lossy().into_owned();
        let sum = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok((name, (sum, content.len() as u64)))
    };
    files.iter().map(sum).collect()
}

#[test]
fn other_contents_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |below: &str, name: &str, text: &str| {
        let path = folder.path().join(below);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(name), text).unwrap();
        path.join(name)
    };
    let first = [file("one", "a", "1"), file("one", "b", "2")];
    compare(&first, &[file("two", "a", "1"), file("two", "b", "2")]).unwrap();
    let said = compare(&first, &[file("two", "a", "1"), file("two", "b", "3")]).unwrap_err().to_string();
    assert!(said.ends_with("other files: b"), "{said}");
    let sums = of(&first).unwrap();
    assert_eq!(sums["a"].0, "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
}
