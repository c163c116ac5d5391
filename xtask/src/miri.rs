//! Runs Miri over crates without foreign code, for undefined behaviour that no test shows.

use std::process::Command;

use anyhow::Context as _;

/// Crates that Miri can run in minutes. It supports no C (zstd, below the trace), no assembly and
/// few system calls. The heaps of the tests of graphs are too large for it.
const CRATES: [&str; 2] = ["heapr-wire", "heapr-table"];

/// Runs the crates' tests, or reports that this machine has no Miri.
pub(crate) fn run() -> anyhow::Result<()> {
    // Asking cargo for a missing toolchain could download it.
    let installed = Command::new("rustup")
        .args(["component", "list", "--toolchain", "nightly", "--installed"])
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let has = |name: &str| installed.lines().any(|line| line.starts_with(name));
    if !has("miri") || !has("rust-src") {
        println!(
            "not run: this machine has no Miri (rustup component add --toolchain nightly miri rust-src)"
        );
        return Ok(());
    }
    let mut tests = Command::new("cargo");
    tests.current_dir(crate::root()).args(["+nightly", "miri", "test", "--lib"]);
    for name in CRATES {
        tests.args(["-p", name]);
    }
    // A case of proptest takes a thousand times as long under Miri. The seeds of proptest are
    // files.
    tests.env("PROPTEST_CASES", "4").env("MIRIFLAGS", "-Zmiri-disable-isolation");
    // Variables of the outer cargo are for another toolchain.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        tests.env_remove(variable);
    }
    tests.env("CARGO_TARGET_DIR", crate::root().join("target/miri"));
    crate::run(&mut tests).context("miri")
}
