//! Installs each package where nothing of heapr exists, and uses it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::architecture::Architecture;
use super::clean_root::{CleanRoot, RELEASES};
use super::elf_needs::ElfNeeds;
use super::payload::{self, copy};

/// Script of a newcomer's first steps: the version, a recording, a report, a running program.
const FIRST_USE: &str = "heapr --version
heapr run -o /tmp/first.heapr -- perl -e 'my @kept = map { \"$_\" x 100 } 1 .. 20000; print scalar @kept, \"\\n\"'
heapr report /tmp/first.heapr --top 1 --depth 3
sleep 1000 & running=$!
heapr start second --pid $running -o /tmp/second.heapr
heapr stop second >/dev/null
kill $running
test -s /usr/share/man/man1/heapr-snapshot-take.1.gz || test -s /opt/*/share/man/man1/heapr-snapshot-take.1.gz
cat /usr/share/doc/heapr/THIRD-PARTY-LICENCES.txt /opt/*/share/doc/heapr/THIRD-PARTY-LICENCES.txt 2>/dev/null | grep -q '== clap '
";

/// Unpacks and uses the tarball in each release.
pub(crate) fn tarball(file: &Path) -> anyhow::Result<()> {
    let unpacked = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    crate::run(tar.arg("-xzf").arg(file).args(["--strip-components", "1", "-C"]).arg(unpacked.path()))?;
    let glibc = glibc_of(&unpacked.path().join("bin/heapr"))?;
    in_each_release(file, Some(&glibc), |root, name| {
        root.run(&format!("tar -xzf /{name} -C /opt && ln -s /opt/heapr-*/bin/* /usr/local/bin/"))
    })
}

/// Installs and uses the package in each release; then the book's pages of ten minutes are tried
/// with its program.
pub(crate) fn deb(file: &Path) -> anyhow::Result<()> {
    let unpacked = tempfile::tempdir()?;
    crate::run(Command::new("dpkg-deb").arg("-x").arg(file).arg(unpacked.path()))?;
    let glibc = glibc_of(&unpacked.path().join("usr/bin/heapr"))?;
    in_each_release(file, Some(&glibc), |root, name| root.run(&format!("dpkg -i /{name}")))?;
    let mut book = crate::cargo();
    book.args(["test", "--package", "heapr", "--test", "book", "--", "commands_of_the_book"]);
    crate::run(book.env("HEAPR", unpacked.path().join("usr/bin/heapr")).env("HEAPR_BOOK", "ten-minutes"))
}

/// Installs and uses the rpm package. No root of an rpm distribution can be made, and Debian's has
/// no list of rpm packages. So the symbol versions that it requires are searched for in Debian's C
/// library.
pub(crate) fn rpm(file: &Path) -> anyhow::Result<()> {
    let requires =
        crate::output_of(Command::new("rpm").args(["--query", "--requires", "--package"]).arg(file))?;
    in_each_release(file, None, |root, name| {
        for line in requires.lines().filter_map(|line| line.strip_prefix("libc.so.6(GLIBC_")) {
            let version = format!("GLIBC_{}", line.split(')').next().unwrap_or_default());
            ensure!(has_glibc(root, &version)?, "{name} requires {version}");
        }
        crate::output_of(
            Command::new("rpm")
                .args(["--install", "--nodeps", "--ignorearch", "--root"])
                .arg(root.path())
                .arg(file),
        )
    })
}

/// `glibc`: version of the C library without which a release is left out.
fn in_each_release(
    file: &Path,
    glibc: Option<&str>,
    install: impl Fn(&CleanRoot, &str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let mut used = 0_usize;
    for release in RELEASES {
        let root = CleanRoot::of(release)?;
        let name = file.file_name().context("a file")?;
        if let Some(version) = glibc
            && !has_glibc(&root, version)?
        {
            println!("check: {} not tried in {release}: its C library has no {version}", name.display());
            continue;
        }
        copy(file, &root.path().join(name))?;
        let begin = Instant::now();
        install(&root, &name.to_string_lossy()).with_context(|| format!("{release}: cannot install"))?;
        let text = root.run(FIRST_USE).with_context(|| format!("{release}: cannot use"))?;
        used += 1;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(
            text.contains("20000\n") && text.contains("PERL") || text.contains("perl"),
            "{release}: {text}"
        );
        println!(
            "check: {} in {release}: installed and used in {seconds:.1} s\n{}",
            name.display(),
            indented(&text)
        );
    }
    ensure!(used > 0, "{}: no release has the C library that it needs", file.display());
    Ok(())
}

/// Version of the C library that an unpacked program needs. A given program (`--binary`) may be
/// built for newer systems than some releases are.
fn glibc_of(program: &Path) -> anyhow::Result<String> {
    let architecture = Architecture::here().context("packages are not made for this processor")?;
    let (major, minor) = ElfNeeds::of(program, architecture)?.glibc;
    Ok(format!("GLIBC_{major}.{minor}"))
}

/// Whether the C library of a root has symbols of a version.
fn has_glibc(root: &CleanRoot, version: &str) -> anyhow::Result<bool> {
    let path = root.path().join("lib/x86_64-linux-gnu/libc.so.6");
    let library = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(library.windows(version.len()).any(|window| window == version.as_bytes()))
}

pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// C program for a system with musl.
const MUSL_PROGRAM: &str = "#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void keep(void) { malloc(1001); }
int main(void) { for (int i = 0; i < 5000; i++) keep(); puts(\"kept\"); sleep(2); return 0; }
";

/// Uses the static program in a root with only the program, musl's loader and a program for musl.
pub(crate) fn without_glibc(file: &Path) -> anyhow::Result<()> {
    let root = CleanRoot::empty()?;
    let inside = |path: &str| root.path().join(path);
    crate::run(
        Command::new("tar").arg("-xzf").arg(file).args(["--strip-components=1", "-C"]).arg(root.path()),
    )?;
    std::fs::write(inside("keeps.c"), MUSL_PROGRAM)?;
    let mut build = Command::new("musl-gcc");
    crate::run(build.args(["-g", "-fno-builtin", "-o"]).arg(inside("bin/keeps")).arg(inside("keeps.c")))?;
    copy(Path::new("/lib/ld-musl-x86_64.so.1"), &inside("lib/ld-musl-x86_64.so.1"))?;
    let begin = Instant::now();
    let text = root.run_beside(
        r#"unset XDG_RUNTIME_DIR; export TMPDIR=/tmp
            chroot "$1" /bin/heapr --version
            chroot "$1" /bin/heapr run -o /tmp/first.heapr -- /bin/keeps
            chroot "$1" /bin/heapr report /tmp/first.heapr --top 1 --depth 3
            chroot "$1" /bin/keeps & sleep 0.5
            chroot "$1" /bin/heapr start second --pid $! -o /tmp/second.heapr
            chroot "$1" /bin/heapr stop second >/dev/null"#,
        "",
    )?;
    ensure!(text.contains("keeps!keep"), "{text}");
    println!(
        "check: {} with musl and nothing else: used in {:.1} s\n{}",
        file.display(),
        begin.elapsed().as_secs_f64(),
        indented(&text)
    );
    Ok(())
}

/// Example of a newcomer's own program.
const FIRST_PYTHON: &str = "kept = [bytearray(1000) for _ in range(20000)]\nprint(len(kept))\n";

/// Installs the wheel in a fresh environment, and runs the program and the tests of the plugin.
pub(crate) fn wheel(file: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let environment = folder.path().join("venv");
    std::fs::write(folder.path().join("app.py"), FIRST_PYTHON)?;
    crate::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let bin = environment.join("bin");
    let pip = |what: &[&str]| {
        let mut install = Command::new(bin.join("pip"));
        crate::run(install.args(["install", "--quiet", "--disable-pip-version-check"]).args(what))
    };
    let begin = Instant::now();
    pip(&[&file.display().to_string()])?;
    let heapr = |words: &[&str]| {
        let mut heapr = Command::new(bin.join("heapr"));
        printed(heapr.args(words).current_dir(folder.path()))
    };
    let mut said = heapr(&["--version"])?;
    said += &heapr(&["run", "-o", "app.heapr", "--", "python3", "app.py"])?;
    ensure!(said.contains("20000\n") && said.contains("outstanding"), "{said}");
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "check: {} in a fresh environment: installed and used in {seconds:.1} s\n{}",
        file.display(),
        indented(&said)
    );
    pip(&[&format!("{}[pytest]", file.display()), "ipython", "pytest-xdist", "pytest-forked"])?;
    let tests = crate::root().join("python/tests");
    let mut pytest = Command::new(bin.join("python"));
    pytest.args(["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-p", "pytester"]).arg(tests);
    crate::run(pytest.current_dir(folder.path()).env_remove("PYTHONPATH"))?;
    if Command::new("uvx").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let begin = Instant::now();
        let mut uvx = Command::new("uvx");
        uvx.arg("--from").arg(file).args(["heapr", "run", "-o", "uvx.heapr", "--", "ls"]);
        let said = printed(uvx.current_dir(folder.path()))?;
        ensure!(said.contains("app.py") && said.contains("heapr: wrote uvx.heapr"), "uvx heapr: {said}");
        println!("check: uvx heapr run -- ls: {:.1} s\n{}", begin.elapsed().as_secs_f64(), indented(&said));
    }
    Ok(())
}

/// Returns all output of a command, which must succeed.
pub(super) fn printed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    Ok(text)
}

/// Installs the npm package in a fresh project, and runs the program. Also runs the tests of its
/// helpers with Node's own runner, with Jest and with Vitest.
pub(crate) fn npm(file: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("package.json"), "{\"name\": \"fresh\", \"private\": true}\n")?;
    let npm = |what: &[&str]| {
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund"]).args(what);
        crate::run(install.current_dir(folder.path()))
    };
    let npx = |words: &[&str]| {
        printed(Command::new("npx").args(["--no", "--"]).args(words).current_dir(folder.path()))
    };
    let begin = Instant::now();
    npm(&[&file.display().to_string()])?;
    let mut said = npx(&["heapr", "--version"])?;
    said +=
        &npx(&["heapr", "run", "-o", "node.heapr", "--", "node", "-e", "global.kept = Buffer.alloc(9e6)"])?;
    ensure!(said.contains("outstanding"), "{said}");
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "check: {} in a fresh project: installed and used in {seconds:.1} s\n{}",
        file.display(),
        indented(&said)
    );
    for (from, to) in [("test", "test"), ("runners", "runners")] {
        payload::copy_folder(&crate::root().join("node").join(from), &folder.path().join(to))?;
    }
    crate::run(Command::new("node").args(["--test", "test/"]).current_dir(folder.path()))?;
    npm(&["--save-dev", "jest", "vitest"])?;
    for runner in
        [&["jest", "--ci", "runners/jest.test.js"][..], &["vitest", "run", "runners/vitest.test.mjs"]]
    {
        println!("check: {}\n{}", runner[0], indented(&npx(runner)?));
    }
    Ok(())
}
