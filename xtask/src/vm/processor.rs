//! Differences between the machines.

use std::process::Command;

/// A processor that a machine can be made for.
#[derive(Debug)]
pub(super) struct Processor {
    /// Name of the machine: the kernel's name of the processor, and what else is its own.
    pub(super) name: &'static str,
    /// Debian's release.
    pub(super) release: &'static str,
    /// Package of the kernel.
    pub(super) kernel: &'static str,
    /// Package that gdb needs by a virtual name, which debootstrap does not resolve.
    pub(super) gdb_needs: &'static str,
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

/// Packages for building for aarch64 and emulating it, each with its sign.
const OF_AARCH64: &[(&str, &str)] = &[
    ("debootstrap", "debootstrap"),
    ("e2fsprogs", "mke2fs"),
    ("cpio", "cpio"),
    ("kmod", "depmod"),
    ("gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
    ("g++-aarch64-linux-gnu", "aarch64-linux-gnu-g++"),
    ("qemu-system-arm", "qemu-system-aarch64"),
];
/// The emulator of aarch64, with the quick form of pointer authentication: the real one takes most
/// of its time.
const AARCH64_EMULATOR: &[&str] = &["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"];

const ALL: &[Processor] = &[
    Processor {
        name: "aarch64",
        release: "bookworm",
        kernel: "linux-image-arm64",
        gdb_needs: "libboost-regex1.74.0",
        debian: "arm64",
        target: "aarch64-unknown-linux-gnu",
        prefix: "aarch64-linux-gnu",
        packages: OF_AARCH64,
        emulator: AARCH64_EMULATOR,
        console: "ttyAMA0",
    },
    // Pages of 16 KiB, and a later glibc.
    Processor {
        name: "aarch64-16k",
        release: "trixie",
        kernel: "linux-image-arm64-16k",
        gdb_needs: "libboost-regex1.83.0",
        debian: "arm64",
        target: "aarch64-unknown-linux-gnu",
        prefix: "aarch64-linux-gnu",
        packages: OF_AARCH64,
        emulator: AARCH64_EMULATOR,
        console: "ttyAMA0",
    },
    Processor {
        name: "x86_64",
        release: "bookworm",
        kernel: "linux-image-amd64",
        gdb_needs: "libboost-regex1.74.0",
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
        // Under emulation an unoptimised program takes several times as long.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        // Read by the crate of the tests' tools.
        command.env("HEAPR_TEST_EMULATED", "1");
        command
    }

    /// Names of all processors, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = ALL.iter().map(|processor| processor.name).collect();
        format!("a processor is one of {}", names.join(", "))
    }
}
