//! Miri over the crates whose code is their own: undefined behaviour that no test shows.

use std::process::Command;

use anyhow::Context as _;

/// What Miri can run in minutes: it knows no C (zstd, below the trace), no assembly and few system
/// calls, and the heaps of the tests of graphs are too large for it.
const CRATES: [&str; 2] = ["heapr-wire", "heapr-table"];

/// Runs their tests, or says that this machine has no Miri.
pub(crate) fn run() -> anyhow::Result<()> {
    // (Asking cargo for a toolchain that is not there may fetch it.)
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
    // A case of proptest takes a thousand times as long there. Its seeds are files.
    tests.env("PROPTEST_CASES", "4").env("MIRIFLAGS", "-Zmiri-disable-isolation");
    // What the outer cargo sets is for another toolchain.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        tests.env_remove(variable);
    }
    tests.env("CARGO_TARGET_DIR", crate::root().join("target/miri"));
    crate::run(&mut tests).context("miri")
}
