//! heapr for aarch64 on a machine of another processor. A cross compiler builds it, and it records
//! the victims under the emulation of single programs (`qemu-aarch64-static`).
//!
//! The emulation has no ptrace, and no memory that a fork clears (`MADV_WIPEONFORK`), so that
//! children of fork are not recorded in it. Its memory order is the host's, which is stronger than
//! the processor's, so that faults of the order do not show.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// Prefix of the compilers, and name of the folder with the processor's libraries.
const PREFIX: &str = "aarch64-linux-gnu";

/// Packages for building and emulating, each with a command that shows that it is installed.
pub(crate) const PACKAGES: &[(&str, &str)] = &[
    ("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
    ("g++-aarch64-linux-gnu", "aarch64-linux-gnu-g++"),
    ("qemu-user-static", "qemu-aarch64-static"),
];

/// Victims that CI tries: one for each part of the agent's code for the processor.
const FEW: &[&str] = &[
    "before_and_after_main",
    "cross_thread",
    "entry_points",
    "entry_points_cpp",
    "errno_kept",
    "exceptions",
    "exec_chain",
    "failing_calls",
    "grows",
    "hands_over",
    "huge_block",
    "leaves_ten",
    "realloc_forms",
];

/// Crates with code of their own for the processor.
const WITH_CODE: &[&str] =
    &["heapr-agent", "heapr-inject", "heapr-known", "heapr-ring", "heapr-symbols", "heapr-wire"];

/// Option under which a machine that cannot build for the processor, or run its programs, is no
/// failure.
const WHERE_POSSIBLE: &str = "--where-possible";

/// Builds heapr for aarch64 and runs the tests of the victims whose names have one of the words.
/// Without a word it runs those of [`FEW`], and lints the code for the processor; with `all` it
/// runs all.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (options, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|&&word| word == WHERE_POSSIBLE);
    match prepare() {
        Err(error) if !options.is_empty() => {
            println!("not run: aarch64: {error:#}");
            return Ok(());
        }
        outcome => outcome?,
    }
    if words.is_empty() {
        let mut lint = cargo();
        lint.env("CARGO_PROFILE_DEV_DEBUG", "0");
        lint.args(["clippy", "--quiet", "--target", TRIPLE, "--all-targets"]);
        lint.args(WITH_CODE.iter().flat_map(|name| ["-p", name])).args(["--", "-D", "warnings"]);
        crate::run(&mut lint)?;
    }
    let mut build = cargo();
    build.args(["build", "--quiet", "--target", TRIPLE, "-p", "heapr", "--bin", "heapr"]);
    // No debugger reads it here, and it is most of what a build leaves on the disk.
    build.env("CARGO_PROFILE_DEV_DEBUG", "0");
    crate::run(&mut build)?;
    let recorder = std::env::current_dir()?.join("target").join(TRIPLE).join("debug/heapr");
    let mut tests = cargo();
    tests.args(["test", "--quiet", "-p", "heapr", "--test", "it", "--"]);
    match words[..] {
        [] => tests.args(FEW.iter().map(|name| format!("victims::{name}"))).arg("--exact"),
        ["all"] => tests.arg("victims::"),
        ref words => tests.args(words.iter().map(|word| format!("victims::{word}"))),
    };
    tests
        .env("HEAPR_TEST_RECORDER", recorder)
        .env("HEAPR_TEST_PROCESSOR", PREFIX)
        .env("QEMU_LD_PREFIX", format!("/usr/{PREFIX}"));
    crate::run(&mut tests)
}

/// Installs what building and running needs.
fn prepare() -> anyhow::Result<()> {
    crate::packages::install(PACKAGES)?;
    crate::packages::add_target(TRIPLE)?;
    register()
}

fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", format!("{PREFIX}-gcc"))
        .env("CC_aarch64_unknown_linux_gnu", format!("{PREFIX}-gcc"));
    command
}

/// Tells the kernel which program runs files of the processor, so that emulated programs can start
/// others.
fn register() -> anyhow::Result<()> {
    const FOLDER: &str = "/proc/sys/fs/binfmt_misc";
    // Name, magic number and mask of ELF files of the processor; F: the emulator is opened now.
    const RULE: &str = ":qemu-aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\
                        \\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:\
                        /usr/bin/qemu-aarch64-static:F";
    if Path::new(FOLDER).join("qemu-aarch64").exists() {
        return Ok(());
    }
    if !Path::new(FOLDER).join("register").exists() {
        crate::run(Command::new("mount").args(["-t", "binfmt_misc", "none", FOLDER]))
            .context("emulated programs start others by the kernel's binfmt_misc, which root must mount")?;
    }
    std::fs::write(Path::new(FOLDER).join("register"), RULE)
        .context("root must register qemu-aarch64 for files of aarch64")
}
