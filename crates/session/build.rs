//! Builds the agent as a shared object, to be embedded in programs that link this crate.
//! Compressed, it is a third as large.
//!
//! The agent needs another panic strategy and its own link options, which Cargo cannot set for one
//! crate of a workspace. So a separate Cargo builds it, into this crate's output directory: from
//! the workspace, or from the sources that a package of this crate holds.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;

include!("src/content_hash.rs");

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let packed = manifest.join("agent-sources");
    let workspace = if packed.exists() {
        println!("cargo::rerun-if-changed={}", packed.display());
        unpacked(&packed, &output)
    } else {
        let workspace = manifest.join("../..");
        for path in ["crates/known", "crates/wire", "crates/ring", "crates/agent", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", workspace.join(path).display());
        }
        workspace
    };
    let library = build_agent(&workspace, &output.join("agent"));
    let content = std::fs::read(&library).expect("the agent was built");
    println!("cargo::rustc-env=HEAPR_AGENT_BYTES={}", content.len());
    println!("cargo::rustc-env=HEAPR_AGENT_HASH={}", content_hash(&content));
    println!("cargo::rustc-env=HEAPR_AGENT_LIBRARY={}", compressed(&library, &content).display());
}

/// Copies packed sources, whose manifests have another name there, and returns their workspace.
fn unpacked(packed: &Path, output: &Path) -> PathBuf {
    let workspace = output.join("agent-sources");
    copy(packed, &workspace);
    workspace
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("OUT_DIR can be written");
    for entry in std::fs::read_dir(from).expect("the packed sources can be read") {
        let path = entry.expect("the packed sources can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        let target = to.join(name.strip_suffix(".packed").unwrap_or(&name));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("OUT_DIR can be written");
        }
    }
}

fn build_agent(workspace: &Path, target: &Path) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace)
        .args(["rustc", "--quiet", "--package", "heapr-agent", "--crate-type", "cdylib"])
        .args(["--features", "cdylib", "--profile", "agent"])
        .arg("--target-dir")
        .arg(target);
    let other_processor = other_processor();
    if let Some(triple) = &other_processor {
        command.arg("--target").arg(triple);
    }
    command
        .args(["--", "-C", "force-unwind-tables=yes", "-C", "link-arg=-nostdlib"])
        .args(["-C", "link-arg=-Wl,-z,nodelete,-z,now,--gc-sections,-soname,libheapr_agent.so"]);
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "aarch64") {
        // The functions that choose atomic instructions at run time need the C library.
        command.args(["-C", "target-feature=-outline-atomics"]);
    }
    // Settings of the outer build (clippy's wrapper, coverage flags) and of the shell must not
    // apply to the agent.
    for variable in [
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CLIPPY_ARGS",
        "CARGO_TARGET_DIR",
        "CARGO_INCREMENTAL",
        "CARGO_BUILD_TARGET",
        // Linker for an older C library: the agent is not linked to any.
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        "CARGO_MAKEFLAGS",
        "MAKEFLAGS",
    ] {
        command.env_remove(variable);
    }
    let status = command.status().expect("cargo can be started");
    assert!(status.success(), "building the agent failed: see the messages above");
    target.join(other_processor.unwrap_or_default()).join("agent/libheapr_agent.so")
}

/// Target that is built for, if it is not the machine that builds: then Cargo has a folder for it.
fn other_processor() -> Option<String> {
    let [target, host] = ["TARGET", "HOST"].map(|name| env::var(name).expect("cargo sets it"));
    (target != host).then_some(target)
}

/// Writes the compressed library beside it and returns the path.
fn compressed(library: &Path, content: &[u8]) -> PathBuf {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory can be written");
    let path = library.with_extension("so.z");
    std::fs::write(&path, encoder.finish().expect("memory can be written")).expect("OUT_DIR can be written");
    path
}
