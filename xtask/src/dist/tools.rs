//! Programs that the packages are made with, and how to have those that are missing.

use std::path::Path;
use std::process::Command;

use super::Kind;
use super::architecture::Architecture;
use super::build::Build;

/// Programs that every package needs, and the package of Debian with each.
const ALWAYS: &[(&str, &str)] = &[
    ("objcopy", "binutils"),
    ("strip", "binutils"),
    ("readelf", "binutils"),
    ("gzip", "gzip"),
    ("tar", "tar"),
];
/// Programs of single kinds.
const OF_KINDS: &[(&str, &str, &str)] = &[
    ("deb", "dpkg-deb", "apt-get install dpkg"),
    ("rpm", "rpmbuild", "apt-get install rpm, dnf install rpm-build"),
    ("npm", "npm", "apt-get install npm, or nodejs.org"),
];

/// Divides kinds into those that can be made, and those that cannot, each with what is missing.
/// `has_binary`: the program is given.
pub(super) fn split(
    asked: Vec<&'static Kind>,
    has_binary: bool,
) -> (Vec<&'static Kind>, Vec<(&'static str, String)>) {
    let (mut can, mut cannot) = (Vec::new(), Vec::new());
    for kind in asked {
        match missing(kind, has_binary) {
            None => can.push(kind),
            Some(lacks) => cannot.push((kind.0, lacks)),
        }
    }
    (can, cannot)
}

/// Returns what is missing for a kind, and how to have it.
fn missing((name, build, ..): &Kind, has_binary: bool) -> Option<String> {
    let lacks =
        |program: &str, how: String| (!is_there(program)).then(|| format!("there is no {program} ({how})"));
    let always =
        ALWAYS.iter().find_map(|(program, package)| lacks(program, format!("apt-get install {package}")));
    let of_kind = || {
        let own = OF_KINDS.iter().filter(|(kind, ..)| kind == name);
        own.into_iter().find_map(|(_, program, how)| lacks(program, (*how).to_owned()))
    };
    let of_build = || match (has_binary, build) {
        (true, _) => None,
        (false, Build::Glibc) => missing_venv(),
        (false, Build::Static) => missing_musl(),
    };
    always.or_else(of_kind).or_else(of_build)
}

/// Returns what is missing for packages of another processor, and how to have it.
pub(super) fn missing_for(other: &Architecture) -> Option<String> {
    let tools = [other.tool("objcopy"), other.tool("strip"), other.program(Path::new("heapr"))];
    let program = tools.iter().filter_map(|tool| tool.get_program().to_str()).find(|name| !is_there(name))?;
    Some(format!(
        "there is no {program} (apt-get install binutils-{}-linux-gnu qemu-user-static libc6-{}-cross)",
        other.name.replace('_', "-"),
        other.debian
    ))
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The compiler for old versions of glibc comes from PyPI, into an environment of its own.
fn missing_venv() -> Option<String> {
    let outcome = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
    let is_there = outcome.is_ok_and(|outcome| outcome.status.success());
    (!is_there).then(|| "there is no python3 with venv (apt-get install python3-venv)".to_owned())
}

/// The static program needs Rust's library for musl, and a C compiler for it.
fn missing_musl() -> Option<String> {
    let target = Build::Static.target(Architecture::here()?);
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", &target]).output();
    let has_library = asked.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    });
    if !has_library {
        return Some(format!("there is no standard library for it (rustup target add {target})"));
    }
    (!is_there("musl-gcc")).then(|| "there is no musl-gcc (apt-get install musl-tools)".to_owned())
}

#[test]
fn a_missing_program_is_named_with_how_to_have_it() {
    let kind = super::KINDS.iter().find(|(name, ..)| *name == "rpm").unwrap();
    match missing(kind, true) {
        None => assert!(is_there("rpmbuild")),
        Some(lacks) => assert!(lacks.contains("apt-get install"), "{lacks}"),
    }
    assert!(!is_there("no-such-program-of-heapr"));
    for (kind, ..) in OF_KINDS {
        assert!(super::KINDS.iter().any(|(name, ..)| name == kind), "{kind}");
    }
}
