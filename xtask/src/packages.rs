//! List of the system packages for building, testing and measuring; CI and the README refer to it.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// Debian packages and, for each, a file or command that shows that the package is installed.
const PACKAGES: &[(&str, &str)] = &[
    ("binutils", "nm"),
    ("fish", "fish"),
    ("gcc", "gcc"),
    ("g++", "g++"),
    ("chromium", "chromium"),
    ("firefox-esr", "firefox-esr"),
    ("clang", "clang++"),
    ("cmake", "cmake"),
    ("curl", "curl"),
    ("debuginfod", "debuginfod-find"),
    ("default-jdk-headless", "javac"),
    ("gdb", "gdb"),
    ("git", "git"),
    ("golang", "go"),
    ("heaptrack", "heaptrack"),
    ("jq", "jq"),
    ("libclang-rt-dev", "/usr/share/doc/libclang-rt-dev"),
    ("libgoogle-perftools-dev", "/usr/include/gperftools/tcmalloc.h"),
    ("libjemalloc-dev", "/usr/include/jemalloc/jemalloc.h"),
    ("libmimalloc-dev", "/usr/include/mimalloc.h"),
    ("libtalloc-dev", "/usr/include/talloc.h"),
    ("llvm", "llvm-symbolizer"),
    ("lua5.1", "/usr/bin/lua5.1"),
    ("lua5.3", "/usr/bin/lua5.3"),
    ("lua5.4", "/usr/bin/lua5.4"),
    ("luajit", "/usr/bin/luajit"),
    ("meson", "meson"),
    ("musl-tools", "musl-gcc"),
    ("ninja-build", "ninja"),
    ("nodejs", "node"),
    ("npm", "npm"),
    ("php-cli", "php"),
    ("openssl", "openssl"),
    ("python3", "python3"),
    ("python3-gevent", "/usr/lib/python3/dist-packages/gevent"),
    ("python3-numpy", "/usr/lib/python3/dist-packages/numpy"),
    ("python3-venv", "/usr/share/doc/python3-venv"),
    ("redis-server", "redis-server"),
    ("redis-tools", "redis-benchmark"),
    ("ruby", "ruby"),
    ("sqlite3", "sqlite3"),
    ("strace", "strace"),
    ("valgrind", "valgrind"),
    ("xz-utils", "xz"),
    ("zsh", "zsh"),
];

/// Prints the packages, one per line.
#[expect(clippy::unnecessary_wraps, reason = "one of the commands of main")]
pub(crate) fn print() -> anyhow::Result<()> {
    for (package, _) in PACKAGES {
        println!("{package}");
    }
    Ok(())
}

/// Installs the missing packages of the list without questions, as root or by sudo.
pub(crate) fn install_missing() -> anyhow::Result<()> {
    install(PACKAGES)
}

/// Installs those of the packages, each with its sign, that are missing.
pub(crate) fn install(packages: &[(&str, &str)]) -> anyhow::Result<()> {
    let missing: Vec<_> =
        packages.iter().filter(|(_, sign)| !is_there(sign)).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    let script = "set -e; if [ $(id -u) = 0 ]; then as=; else as='sudo -n'; fi; export DEBIAN_FRONTEND=noninteractive; \
                  $as apt-get update -q; $as apt-get install -q -y --no-install-recommends \"$@\"";
    crate::run(
        Command::new("sh").args(["-c", script, "sh"]).args(&missing).stdin(std::process::Stdio::null()),
    )
    .context("the tests need these packages")
}

/// Makes sure of the standard library for a target.
pub(crate) fn add_target(triple: &str) -> anyhow::Result<()> {
    let added = Command::new("rustup").args(["target", "add", triple]).output();
    if !added.is_ok_and(|output| output.status.success()) {
        anyhow::bail!("there is no standard library for {triple}: rustup target add {triple} must work");
    }
    Ok(())
}

fn is_there(sign: &str) -> bool {
    if sign.starts_with('/') {
        return Path::new(sign).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(sign).is_file())
}
