//! Differences between the machines.

use std::process::Command;

/// A processor that a machine can be made for.
#[derive(Debug)]
pub(super) struct Processor {
    /// Name, as the kernel has it.
    pub(super) name: &'static str,
    /// Architecture, as Debian names it.
    pub(super) debian: &'static str,
    /// Target, as Rust names it.
    pub(super) target: &'static str,
    /// Prefix of the compilers.
    pub(super) prefix: &'static str,
    /// Packages for building and emulating, each with a command that shows that it is installed.
    pub(super) packages: &'static [(&'static str, &'static str)],
    /// Program that emulates the machine, and its arguments.
    pub(super) emulator: &'static [&'static str],
    /// Device of the kernel's messages.
    pub(super) console: &'static str,
}

const ALL: &[Processor] = &[
    Processor {
        name: "aarch64",
        debian: "arm64",
        target: "aarch64-unknown-linux-gnu",
        prefix: "aarch64-linux-gnu",
        packages: &[
            ("debootstrap", "debootstrap"),
            ("e2fsprogs", "mke2fs"),
            ("cpio", "cpio"),
            ("kmod", "depmod"),
            ("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
            ("qemu-system-arm", "qemu-system-aarch64"),
        ],
        // The quick form of pointer authentication: the real one takes most of the emulator's time.
        emulator: &["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"],
        console: "ttyAMA0",
    },
    Processor {
        name: "x86_64",
        debian: "amd64",
        target: "x86_64-unknown-linux-gnu",
        prefix: "x86_64-linux-gnu",
        packages: &[
            ("debootstrap", "debootstrap"),
            ("e2fsprogs", "mke2fs"),
            ("cpio", "cpio"),
            ("kmod", "depmod"),
            ("gcc", "x86_64-linux-gnu-gcc"),
            ("qemu-system-x86", "qemu-system-x86_64"),
        ],
        emulator: &["qemu-system-x86_64", "-M", "q35", "-cpu", "max"],
        console: "ttyS0",
    },
];

impl Processor {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|processor| processor.name == name)
    }

    /// True for this machine's own processor, for which nothing is built anew.
    pub(super) fn is_here(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// Words of cargo that choose the target.
    pub(super) fn target_words(&self) -> Vec<&'static str> {
        if self.is_here() { Vec::new() } else { vec!["--target", self.target] }
    }

    /// Folder of the built programs in the repository.
    pub(super) fn built(&self) -> std::path::PathBuf {
        let target = std::path::Path::new("target");
        if self.is_here() { target.join("debug") } else { target.join(self.target).join("debug") }
    }

    /// Cargo's command, with the compilers for the target.
    pub(super) fn cargo(&self) -> Command {
        let mut command = crate::cargo();
        // Other compilers' names would have all of this machine's builds made anew.
        if self.is_here() {
            return command;
        }
        let (target, compiler) = (self.target.replace('-', "_"), format!("{}-gcc", self.prefix));
        command.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()), &compiler);
        command.env(format!("CC_{target}"), &compiler);
        command
    }

    /// Names of all processors, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = ALL.iter().map(|processor| processor.name).collect();
        format!("a processor is one of {}", names.join(", "))
    }
}
