//! Disk with Debian's packages, kernel, and the first file system that the kernel starts from.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::processor::Processor;

const MIRROR: &str = "http://deb.debian.org/debian";

/// Packages of the machine beside Debian's smallest set and the kernel.
const PACKAGES: &[&str] = &[
    "busybox-static",
    "dbus",
    "default-jdk-headless",
    "g++",
    "gdb",
    "git",
    "jq",
    "libgoogle-perftools-dev",
    "libjemalloc-dev",
    "libmimalloc-dev",
    "lua5.1",
    "lua5.3",
    "lua5.4",
    "luajit",
    "musl-tools",
    "nodejs",
    "perl",
    "php-cli",
    "procps",
    "python3",
    "redis-server",
    "redis-tools",
    "ruby",
    "runc",
    "sqlite3",
    "strace",
    "systemd",
    "valgrind",
];

/// Links that the packages' scripts would have made, as none of these runs. Some are to programs
/// of one release.
const LINKS: &[(&str, &str)] = &[
    ("usr/bin/awk", "mawk"),
    ("usr/bin/c++", "g++"),
    ("usr/bin/cc", "gcc"),
    ("usr/bin/java", "../lib/jvm/default-java/bin/java"),
    ("usr/bin/javac", "../lib/jvm/default-java/bin/javac"),
    ("usr/bin/php", "php8.2"),
    ("usr/bin/php", "php8.4"),
    ("usr/bin/which", "which.debianutils"),
];

/// Modules without which there is no disk; those that they need come along.
const MODULES: &[&str] = &["virtio_pci", "virtio_mmio", "virtio_blk", "crc32c_generic", "ext4"];

/// Text that says of what the disk was made.
fn contents(processor: &Processor) -> String {
    let packages = [&[processor.kernel, processor.gdb_needs], PACKAGES].concat();
    format!("{} {} {}\n", processor.release, processor.debian, packages.join(" "))
}

/// Makes disk, kernel and first file system, unless they are there.
pub(super) fn make(processor: &Processor, folder: &Path) -> anyhow::Result<()> {
    let made = folder.join("made");
    if fs::read_to_string(&made).is_ok_and(|text| text == contents(processor)) {
        return Ok(());
    }
    let root = folder.join("root");
    fetch(processor, &root)?;
    complete(&root)?;
    let modules = root.join("lib/modules");
    let mut versions = fs::read_dir(&modules).with_context(|| modules.display().to_string())?;
    let version = versions.next().context("no kernel among the packages")??.file_name();
    let version = version.to_str().context("the kernel's version")?.to_owned();
    crate::run(Command::new("depmod").arg("-b").arg(&root).arg(&version))?;
    fs::copy(root.join(format!("boot/vmlinuz-{version}")), folder.join("vmlinuz")).context("vmlinuz")?;
    first_file_system(&root, &version, folder)?;
    disk(&root, &folder.join("root.img"), 4 << 30)?;
    fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    fs::write(&made, contents(processor)).with_context(|| made.display().to_string())
}

/// Fetches the packages and unpacks them. None of their scripts runs: they are another processor's.
fn fetch(processor: &Processor, root: &Path) -> anyhow::Result<()> {
    let packages = [&[processor.kernel, processor.gdb_needs], PACKAGES].concat().join(",");
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| root.display().to_string())?;
    }
    let mut fetch = Command::new("debootstrap");
    fetch.args(["--foreign", "--variant=minbase"]).arg(format!("--arch={}", processor.debian));
    // What was fetched stays for the next disk.
    let kept = root.with_file_name("archives");
    fs::create_dir_all(&kept).with_context(|| kept.display().to_string())?;
    fetch.arg(format!("--cache-dir={}", kept.display()));
    fetch.arg(format!("--include={packages}")).arg(processor.release).arg(root).arg(MIRROR);
    let log = root.with_extension("log");
    fetch.stdout(fs::File::create(&log).with_context(|| log.display().to_string())?);
    crate::run(&mut fetch).with_context(|| format!("{} has the messages", log.display()))?;
    let archives = root.join("var/cache/apt/archives");
    for entry in fs::read_dir(&archives).with_context(|| archives.display().to_string())? {
        let package = entry?.path();
        if package.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        let unpacked = "set -e; dpkg-deb --fsys-tarfile \"$1\" | tar -x --keep-directory-symlink -C \"$2\"";
        crate::run(Command::new("sh").args(["-c", unpacked, "sh"]).arg(&package).arg(root))?;
        fs::remove_file(&package)?;
    }
    Ok(())
}

/// Writes what the packages' scripts would have written, and removes what takes room only.
fn complete(root: &Path) -> anyhow::Result<()> {
    for (name, text) in [
        ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n"),
        ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("etc/hosts", "127.0.0.1 localhost\n"),
    ] {
        fs::write(root.join(name), text).with_context(|| name.to_owned())?;
    }
    for folder in ["usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists"] {
        let _ = fs::remove_dir_all(root.join(folder));
    }
    for (name, target) in LINKS {
        let place = root.join(name);
        let is_there = place.with_file_name(target).symlink_metadata().is_ok();
        if is_there && !place.is_symlink() {
            std::os::unix::fs::symlink(target, &place).with_context(|| place.display().to_string())?;
        }
    }
    // Links to this machine's own, if the packages were fetched by another user than root.
    for folder in ["proc", "sys", "dev", "work", "results"] {
        let place = root.join(folder);
        if place.is_symlink() {
            fs::remove_file(&place)?;
        }
        fs::create_dir_all(&place)?;
    }
    Ok(())
}

/// Makes the archive with which the kernel begins: busybox, the disks' modules, and a script.
fn first_file_system(root: &Path, version: &str, folder: &Path) -> anyhow::Result<()> {
    let first = folder.join("first");
    fs::create_dir_all(first.join("bin"))?;
    fs::create_dir_all(first.join("modules"))?;
    fs::copy(root.join("bin/busybox"), first.join("bin/busybox")).context("busybox")?;
    let modules = root.join("lib/modules").join(version);
    let lines = fs::read_to_string(modules.join("modules.dep")).context("modules.dep")?;
    let mut order: Vec<String> = Vec::new();
    for wanted in MODULES {
        let is_it = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or(path);
            let name = file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko");
            name.is_some_and(|name| name.replace('-', "_") == **wanted)
        };
        // A module that is not listed is part of the kernel itself.
        let Some((path, needs)) =
            lines.lines().filter_map(|line| line.split_once(':')).find(|line| is_it(line.0))
        else {
            continue;
        };
        // The last need is the first to be loaded.
        for path in needs.split_whitespace().rev().chain([path]) {
            if !order.iter().any(|known| known == path) {
                order.push(path.to_owned());
            }
        }
    }
    let mut names = String::new();
    for path in &order {
        let name = path.rsplit('/').next().unwrap_or(path);
        let copy = first.join("modules").join(name);
        fs::copy(modules.join(path), &copy).with_context(|| path.clone())?;
        if name.ends_with(".xz") {
            crate::run(Command::new("unxz").arg(&copy))?;
        }
        names.push_str(name.trim_end_matches(".xz"));
        names.push('\n');
    }
    fs::write(first.join("order"), names)?;
    let script = first.join("init");
    fs::write(&script, include_str!("init.sh"))?;
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let pack = "find . | cpio --quiet -o -H newc | gzip -1 > ../initrd";
    crate::run(Command::new("sh").args(["-ec", pack]).current_dir(&first))?;
    fs::remove_dir_all(&first).context("the first file system")
}

/// Makes a disk of a folder, with so many bytes.
pub(super) fn disk(folder: &Path, image: &Path, bytes: u64) -> anyhow::Result<()> {
    let file = fs::File::create(image).with_context(|| image.display().to_string())?;
    file.set_len(bytes).with_context(|| image.display().to_string())?;
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-d"]).arg(folder).arg(image);
    let outcome = crate::output_of(&mut make);
    ensure!(outcome.is_ok(), "{}: {:#}", image.display(), outcome.unwrap_err());
    Ok(())
}
