//! Builds that packages are made from. They are optimized: one for C libraries as old as glibc
//! 2.28, and one that needs no C library.
//!
//! A program that is linked against a newer glibc needs its newer versions of functions. `zig`
//! brings the older ones, and `cargo-zigbuild` lets Cargo use it. The static build is for musl's
//! systems.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::architecture::Architecture;

/// Kind of system that a program is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Any glibc from [`GLIBC`] on.
    Glibc,
    /// Any Linux, without libraries.
    Static,
}

/// Version of glibc that is linked against.
const GLIBC: &str = "2.28";
/// Packages of PyPI, including the compiler.
const TOOLS: &[&str] = &["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

impl Build {
    /// Returns the target, as Rust names it.
    pub(crate) fn target(self, architecture: &Architecture) -> String {
        let library = match self {
            Self::Glibc => "gnu",
            Self::Static => "musl",
        };
        format!("{}-unknown-linux-{library}", architecture.name)
    }

    /// Builds the program and returns its path.
    pub(crate) fn release(self, architecture: &Architecture, folder: &Path) -> anyhow::Result<PathBuf> {
        let triple = self.target(architecture);
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("build"), PathBuf::from);
        // The same source gives the same program, independent of the folder.
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home =
            home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).context("no CARGO_HOME")?;
        let flags = format!(
            "--remap-path-prefix={}=heapr --remap-path-prefix={}=registry",
            crate::root().display(),
            home.join("registry/src").display()
        );
        let mut build = self.cargo(&triple, folder)?;
        build.current_dir(crate::root()).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", flags);
        build.env("HEAPR_COMMIT", commit()?).env("CARGO_INCREMENTAL", "0");
        // Debug information for the separate file.
        build.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
        build.args(["--release", "--package", "heapr", "--package", "cargo-heapr"]);
        crate::run(&mut build)?;
        Ok(target.join(triple).join("release/heapr"))
    }

    /// Returns Cargo's command, with the suitable linker.
    fn cargo(self, triple: &str, folder: &Path) -> anyhow::Result<Command> {
        let mut asked = Command::new("rustc");
        asked.args(["--print", "target-libdir", "--target", triple]);
        if !Path::new(crate::output_of(&mut asked)?.trim()).is_dir() {
            bail!("there is no standard library for it: rustup target add {triple}");
        }
        match self {
            Self::Glibc => {
                let tools = folder.join("tools/bin");
                if !tools.join("cargo-zigbuild").exists() {
                    crate::run(Command::new("python3").args(["-m", "venv"]).arg(folder.join("tools")))?;
                    crate::run(Command::new(tools.join("pip")).args(["install", "--quiet"]).args(TOOLS))?;
                }
                let path = std::env::var_os("PATH").unwrap_or_default();
                let all = std::iter::once(tools.clone()).chain(std::env::split_paths(&path));
                let path = std::env::join_paths(all)?;
                let mut zigbuild = Command::new(tools.join("cargo-zigbuild"));
                zigbuild.env("PATH", path).arg("zigbuild");
                zigbuild.args(["--target", &format!("{triple}.{GLIBC}")]);
                Ok(zigbuild)
            }
            Self::Static => {
                let mut cargo = crate::cargo();
                cargo.args(["build", "--target", triple]);
                Ok(cargo)
            }
        }
    }
}

/// Returns the commit, and whether any file was changed since.
pub(super) fn commit() -> anyhow::Result<String> {
    let git =
        |arguments: &[&str]| crate::output_of(Command::new("git").current_dir(crate::root()).args(arguments));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(format!("{}{}", commit.trim(), if is_changed { ", changed since" } else { "" }))
}
