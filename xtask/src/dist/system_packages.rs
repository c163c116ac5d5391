//! Tarball, `.deb` and `.rpm`: the payload below a prefix.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::payload::{Payload, copy_folder, write};

/// Time of all files in packages, in seconds since 1970: the same files give the same package. It
/// is the begin of 1980, as rpmbuild takes 0 for no time.
const EPOCH: &str = "315532800";
const DESCRIPTION: &str = "records, snapshots and explains the heaps of running programs";

/// Packs the payload below a folder named after the version; the debug information goes into a
/// second tarball.
pub(crate) fn tarball(payload: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let kind = if payload.needs.is_some() { "" } else { "-static" };
    let name = format!("heapr-{}-{}-linux{kind}", payload.version, payload.architecture.name);
    let debug = folder.join(format!("{name}-debug.tar.gz"));
    let folder_of_it = payload.debug.parent().context("a folder")?;
    tar(payload, &debug, folder_of_it, "heapr.debug", &format!("s,^,{name}/bin/,"))?;
    let file = folder.join(format!("{name}.tar.gz"));
    tar(payload, &file, &payload.usr, ".", &format!("s,^\\.,{name},"))?;
    Ok(file)
}

/// Packs the content of a folder under other names, without owners and times.
fn tar(payload: &Payload, file: &Path, folder: &Path, what: &str, names: &str) -> anyhow::Result<()> {
    crate::run(
        Command::new("tar")
            .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mtime=@0"])
            .arg(format!("--use-compress-program=gzip -{}n", payload.compression))
            .args(["--transform", names, "--file"])
            .arg(file)
            .arg("-C")
            .arg(folder)
            .arg(what),
    )
}

/// Makes Debian's package.
pub(crate) fn deb(payload: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let root = fresh(folder, "deb")?;
    copy_folder(&payload.usr, &root.join("usr"))?;
    fs::create_dir_all(root.join("DEBIAN"))?;
    let needs = payload.needs.as_ref().context("a static program is in no Debian package")?;
    let (major, minor) = needs.glibc;
    let has_gcc = needs.libraries.iter().any(|name| name == "libgcc_s.so.1");
    let gcc = if has_gcc { ", libgcc-s1" } else { "" };
    let control = format!(
        "Package: heapr\nVersion: {}\nArchitecture: {}\nMaintainer: heapr's authors <heapr@example.invalid>\n\
         Section: devel\nPriority: optional\nDepends: libc6 (>= {major}.{minor}){gcc}\nDescription: {DESCRIPTION}\n \
         Every allocation of a program with its whole stack, live snapshots of\n native and JavaScript heaps, \
         and what stands out in words. No rebuild.\n",
        payload.version, payload.architecture.debian
    );
    write(&root.join("DEBIAN/control"), control.as_bytes())?;
    let file = folder.join(format!("heapr_{}_{}.deb", payload.version, payload.architecture.debian));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "--build"]).arg(&root).arg(&file);
    build.env("SOURCE_DATE_EPOCH", EPOCH);
    crate::output_of(&mut build)?;
    Ok(file)
}

/// Makes the package of Fedora, openSUSE and related distributions.
pub(crate) fn rpm(payload: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let top = fresh(folder, "rpm")?;
    // rpmbuild itself reads the required C library's version from the program.
    let spec = format!(
        "Name: heapr\nVersion: {}\nRelease: 1\nSummary: {DESCRIPTION}\nLicense: MIT OR Apache-2.0\n\
         %global _build_id_links none\n%global _buildhost heapr\n%global use_source_date_epoch_as_buildtime 1\n\
         %global clamp_mtime_to_source_date_epoch 1\n%global source_date_epoch_from_changelog 0\n%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n%description\n{DESCRIPTION}\n\
         %install\ncp -a {}/. %{{buildroot}}/usr\n%files\n/usr/bin/*\n/usr/lib/systemd/system/*\n/usr/share/*\n",
        payload.version,
        payload.usr.display()
    );
    write(
        &top.join("heapr.spec"),
        spec.replace("%install\n", "%install\nmkdir -p %{buildroot}/usr\n").as_bytes(),
    )?;
    let mut build = Command::new("rpmbuild");
    build.env("SOURCE_DATE_EPOCH", EPOCH);
    build.args(["-bb", "--quiet", "--define"]).arg(format!("_topdir {}", top.display()));
    build
        .args(["--define", "_rpmfilename heapr.rpm", "--target", payload.architecture.name])
        .arg(top.join("heapr.spec"));
    crate::output_of(&mut build)?;
    let file = folder.join(format!("heapr-{}-1.{}.rpm", payload.version, payload.architecture.name));
    fs::rename(top.join("RPMS/heapr.rpm"), &file).context("rpmbuild has made no package")?;
    Ok(file)
}

/// Creates an empty folder.
pub(crate) fn fresh(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join("stage").join(name);
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}
