//! Each package installed where nothing of heapr is, and used.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::clean_root::{CleanRoot, RELEASES};
use super::payload::copy;

/// What somebody does first: which build it is, a recording, a report, a program that runs already.
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
    in_each_release(file, |root, name| {
        root.run(&format!("tar -xzf /{name} -C /opt && ln -s /opt/heapr-*/bin/* /usr/local/bin/"))
    })
}

/// Installs and uses the package in each release.
pub(crate) fn deb(file: &Path) -> anyhow::Result<()> {
    in_each_release(file, |root, name| root.run(&format!("dpkg -i /{name}")))
}

/// The same for the package of other distributions. No root of theirs can be made, and Debian's
/// has no list of rpm's: so what it requires of the C library is looked for in the library.
pub(crate) fn rpm(file: &Path) -> anyhow::Result<()> {
    let requires =
        crate::output_of(Command::new("rpm").args(["--query", "--requires", "--package"]).arg(file))?;
    in_each_release(file, |root, name| {
        let library = std::fs::read(root.path().join("lib/x86_64-linux-gnu/libc.so.6"))?;
        for line in requires.lines().filter_map(|line| line.strip_prefix("libc.so.6(GLIBC_")) {
            let version = format!("GLIBC_{}", line.split(')').next().unwrap_or_default());
            let is_there = library.windows(version.len()).any(|window| window == version.as_bytes());
            ensure!(is_there, "{name} requires {version}");
        }
        crate::output_of(
            Command::new("rpm")
                .args(["--install", "--nodeps", "--ignorearch", "--root"])
                .arg(root.path())
                .arg(file),
        )
    })
}

fn in_each_release(
    file: &Path,
    install: impl Fn(&CleanRoot, &str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    for release in RELEASES {
        let root = CleanRoot::of(release)?;
        let name = file.file_name().context("a file")?;
        copy(file, &root.path().join(name))?;
        let begin = Instant::now();
        install(&root, &name.to_string_lossy()).with_context(|| format!("{release}: cannot install"))?;
        let text = root.run(FIRST_USE).with_context(|| format!("{release}: cannot use"))?;
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
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Installs the wheel in a fresh environment, and runs the program and the tests of the plugin.
pub(crate) fn wheel(file: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let environment = folder.path().join("venv");
    crate::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let bin = environment.join("bin");
    let mut install = Command::new(bin.join("pip"));
    install
        .args(["install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("{}[pytest]", file.display()));
    crate::run(&mut install)?;
    let version = crate::output_of(Command::new(bin.join("heapr")).arg("--version"))?;
    print!("check: {} in a fresh environment:\n{}", file.display(), indented(&version));
    let tests = crate::root().join("python/tests");
    let mut pytest = Command::new(bin.join("python"));
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytester"]).arg(tests);
    crate::run(pytest.current_dir(folder.path()).env_remove("PYTHONPATH"))?;
    if Command::new("uvx").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let mut uvx = Command::new("uvx");
        let said = crate::output_of(uvx.arg("--from").arg(file).args(["heapr", "-V"]))?;
        ensure!(said.starts_with("heapr "), "uvx heapr: {said}");
        println!("check: uvx heapr -V: {}", said.trim());
    }
    Ok(())
}

/// Installs the npm package in a fresh project, and runs the program and the tests of its helpers.
pub(crate) fn npm(file: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("package.json"), "{\"name\": \"fresh\", \"private\": true}\n")?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund"]).arg(file);
    crate::run(install.current_dir(folder.path()))?;
    let mut npx = Command::new("npx");
    let version = crate::output_of(npx.args(["--no", "heapr", "--version"]).current_dir(folder.path()))?;
    print!("check: {} in a fresh project:\n{}", file.display(), indented(&version));
    for entry in std::fs::read_dir(crate::root().join("node/test"))? {
        let path = entry?.path();
        copy(&path, &folder.path().join(path.file_name().context("a file")?))?;
    }
    crate::run(Command::new("node").arg("--test").current_dir(folder.path()))
}
