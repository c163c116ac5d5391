//! The build that packages are made from: optimized, and for C libraries as old as glibc 2.28.
//!
//! Linked against a newer one, a program needs its newer versions of functions. `zig` brings the
//! older ones; `cargo-zigbuild` has Cargo use it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// What is linked against.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const GLIBC: &str = "2.28";
/// PyPI's packages, the compiler among them.
const TOOLS: &[&str] = &["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Builds it; the program's path.
pub(crate) fn release(folder: &Path) -> anyhow::Result<PathBuf> {
    let tools = folder.join("tools/bin");
    if !tools.join("cargo-zigbuild").exists() {
        crate::run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("tools")))?;
        crate::run(Command::new(tools.join("pip")).args(["install", "--quiet"]).args(TOOLS))?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(tools.clone()).chain(std::env::split_paths(&path)))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("build"), PathBuf::from);
    // The same source gives the same program, wherever it lies.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).context("no CARGO_HOME")?;
    let flags = format!(
        "--remap-path-prefix={}=heapr --remap-path-prefix={}=registry",
        crate::root().display(),
        home.join("registry/src").display()
    );
    let mut build = Command::new(tools.join("cargo-zigbuild"));
    build.current_dir(crate::root()).env("PATH", path).env("CARGO_TARGET_DIR", &target);
    build.env("RUSTFLAGS", flags).env("HEAPR_COMMIT", commit()?).env("CARGO_INCREMENTAL", "0");
    build.args(["zigbuild", "--release", "--package", "heapr", "--package", "cargo-heapr"]);
    build.args(["--target", &format!("{TARGET}.{GLIBC}")]);
    crate::run(&mut build)?;
    Ok(target.join(TARGET).join("release/heapr"))
}

/// The commit, and whether anything was changed since.
fn commit() -> anyhow::Result<String> {
    let git =
        |arguments: &[&str]| crate::output_of(Command::new("git").current_dir(crate::root()).args(arguments));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(format!("{}{}", commit.trim(), if is_changed { ", changed since" } else { "" }))
}
