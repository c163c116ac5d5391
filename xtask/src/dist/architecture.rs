//! Processors that packages are made for, and their names in each kind of package.

use std::path::Path;
use std::process::Command;

/// Processor of a package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Name for Rust, rpm, wheels and tarballs.
    pub(crate) name: &'static str,
    /// Name for Debian.
    pub(crate) debian: &'static str,
    /// Name for npm.
    pub(crate) node: &'static str,
    /// End of the name of npm's file, which has no processor of its own.
    pub(crate) node_suffix: &'static str,
    /// File name of the loader.
    pub(crate) loader: &'static str,
    /// Prefix of the tools that read and change its programs.
    tools: &'static str,
    /// Command and arguments that run its programs on another processor.
    emulator: &'static [&'static str],
}

const ALL: &[Architecture] = &[
    Architecture {
        name: "x86_64",
        debian: "amd64",
        node: "x64",
        node_suffix: "",
        loader: "ld-linux-x86-64.so.2",
        tools: "x86_64-linux-gnu-",
        emulator: &["qemu-x86_64-static", "-L", "/usr/x86_64-linux-gnu"],
    },
    Architecture {
        name: "aarch64",
        debian: "arm64",
        node: "arm64",
        node_suffix: "-arm64",
        loader: "ld-linux-aarch64.so.1",
        tools: "aarch64-linux-gnu-",
        emulator: &["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
    },
];

impl Architecture {
    /// Processor of a target, as Rust names it.
    pub(crate) fn of_target(target: &str) -> Option<&'static Self> {
        let (name, rest) = target.split_once('-')?;
        ALL.iter().find(|one| one.name == name && rest == "unknown-linux-gnu")
    }

    /// Processor of this machine.
    pub(crate) fn here() -> Option<&'static Self> {
        ALL.iter().find(|one| one.is_here())
    }

    fn is_here(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// Targets that packages are made for, for messages.
    pub(crate) fn targets() -> String {
        let targets: Vec<String> = ALL.iter().map(|one| format!("{}-unknown-linux-gnu", one.name)).collect();
        targets.join(", ")
    }

    /// Command of a tool for its programs, such as `strip`.
    pub(crate) fn tool(&self, name: &str) -> Command {
        if self.is_here() { Command::new(name) } else { Command::new(format!("{}{name}", self.tools)) }
    }

    /// Command that runs one of its programs.
    pub(crate) fn program(&self, program: &Path) -> Command {
        match self.emulator {
            [emulator, arguments @ ..] if !self.is_here() => {
                let mut command = Command::new(emulator);
                command.args(arguments).arg(program);
                command
            }
            _ => Command::new(program),
        }
    }
}

#[test]
fn targets_have_their_processor() {
    assert!(
        ALL.iter()
            .all(|one| { Architecture::of_target(&format!("{}-unknown-linux-gnu", one.name)) == Some(one) })
    );
    assert_eq!(Architecture::of_target("riscv64gc-unknown-linux-gnu"), None);
    assert_eq!(Architecture::of_target(&format!("{}-pc-windows-msvc", ALL[0].name)), None);
}
