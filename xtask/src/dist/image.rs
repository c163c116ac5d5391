//! Builds the container image by `podman`, and uses it on a program in another container.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::check::{indented, printed};
use super::clean_root::CleanRoot;
use super::payload::copy;

/// Base of the image in this check, so that nothing has to be fetched.
const BASE: &str = "localhost/heapr-check-base";
const IMAGE: &str = "localhost/heapr-check";
const APP: &str = "heapr-check-app";

/// Program that allocates.
const PROGRAM: &str = r#"my @kept; while (1) { push @kept, "y" x 9000; select undef, undef, undef, 0.01 }"#;

/// Builds the image of the tarball. A container of it beside a program records that program, and so
/// does the host.
pub(crate) fn check(tarball: &Path) -> anyhow::Result<()> {
    if Command::new("podman").arg("--version").output().is_err() {
        println!("check: no image was built: there is no podman");
        return Ok(());
    }
    let podman = |words: &[&str]| printed(Command::new("podman").args(words));
    let root = CleanRoot::of("bookworm")?;
    let import = r#"tar -C "$1" -c --exclude=./proc . | podman import --quiet - "$2""#;
    printed(Command::new("sh").args(["-ec", import, "sh"]).arg(root.path()).arg(BASE))?;
    let context = tempfile::tempdir()?;
    copy(tarball, &context.path().join(tarball.file_name().context("a file")?))?;
    let recipe = crate::root().join("packaging/Containerfile").display().to_string();
    let base = format!("BASE={BASE}");
    let folder = context.path().display().to_string();
    podman(&["build", "--quiet", "--build-arg", &base, "-t", IMAGE, "-f", &recipe, &folder])?;
    let mut said = podman(&["run", "--rm", IMAGE, "heapr", "--version"])?;
    podman(&["run", "--detach", "--rm", "--name", APP, BASE, "perl", "-e", PROGRAM])?;
    let outcome = record(&folder).map(|text| said.push_str(&text));
    podman(&["kill", "--signal", "KILL", APP])?;
    outcome?;
    println!("check: {IMAGE}\n{}", indented(&said));
    Ok(())
}

/// Records from a container that shares the program's processes, then from the host.
fn record(folder: &str) -> anyhow::Result<String> {
    let podman = |words: &[&str]| printed(Command::new("podman").args(words));
    let processes = format!("container:{APP}");
    let volume = format!("{folder}:/work");
    let inside = "heapr start app --pid 1 -o app.heapr && sleep 1 && heapr stop app";
    let beside = ["run", "--rm", "--pid", &processes, "--cap-add", "SYS_PTRACE", "--volume", &volume];
    let said = podman(&[&beside[..], &[IMAGE, "sh", "-ec", inside]].concat())?;
    ensure!(said.contains("outstanding") || said.contains("Memory grows"), "{said}");
    let pid = podman(&["inspect", "--format", "{{.State.Pid}}", APP])?;
    let mounted = format!("/proc/{}/root", pid.trim());
    ensure!(Path::new(&mounted).exists(), "the program has ended");
    Ok(said)
}
