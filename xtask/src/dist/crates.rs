//! Makes the packages of crates.io: one a crate, from a copy of the last commit in which each crate
//! holds all that it needs.
//!
//! The page and the agent's sources lie outside of the crates that embed them, where no package of
//! a crate reaches. In the copy they are within:
//!
//! ```text
//! ui/dist                                  -> crates/server/page
//! Cargo.toml, crates/{agent,known,…}       -> crates/session/agent-sources
//! ```
//! There each `Cargo.toml` is named `Cargo.toml.packed`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::payload::{Payload, copy_folder, write};
use super::system_packages::fresh;

/// Sources that the copy has.
const SOURCES: &[&str] =
    &["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "crates", "ui/dist"];
/// Crates that are for this repository alone.
const OWN: &[&str] = &["testkit", "capi"];
/// Crates that the agent is built from.
const AGENT: [&str; 4] = ["agent", "known", "ring", "wire"];
/// Author and time of the copy's commit, which Cargo writes into the packages: two copies give the
/// same ones.
const COMMIT: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "heapr"),
    ("GIT_AUTHOR_EMAIL", "heapr@example.invalid"),
    ("GIT_AUTHOR_DATE", "1980-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "heapr"),
    ("GIT_COMMITTER_EMAIL", "heapr@example.invalid"),
    ("GIT_COMMITTER_DATE", "1980-01-01T00:00:00Z"),
];

/// Makes the packages, and returns that of the program. They are of the last commit.
pub(crate) fn make(_: &Payload, folder: &Path) -> anyhow::Result<PathBuf> {
    let copy = fresh(folder, "crates")?;
    let mut archive = Command::new("sh");
    archive.args(["-c", "into=$1; shift; git archive HEAD \"$@\" | tar -x -C \"$into\"", "sh"]);
    crate::run(archive.arg(&copy).args(SOURCES).current_dir(crate::root()))?;
    let version = crate::version()?;
    complete(&copy, &version)?;
    for words in [
        &["init", "--quiet"][..],
        &["add", "--all", "--force"],
        &[
            "-c",
            "commit.gpgsign=false",
            "-c",
            "core.hooksPath=/dev/null",
            "commit",
            "--quiet",
            "--message",
            "copy",
        ],
    ] {
        crate::run(Command::new("git").arg("-C").arg(&copy).args(words).envs(COMMIT.iter().copied()))?;
    }
    package(&copy, &["--no-verify"])?;
    let name = format!("heapr-{version}.crate");
    let file = folder.join(&name);
    fs::copy(copy.join("target/package").join(&name), &file).with_context(|| name.clone())?;
    Ok(file)
}

/// Builds each package from what is in it.
pub(crate) fn check(program: &Path) -> anyhow::Result<()> {
    package(&program.with_file_name("stage").join("crates"), &[])
}

fn package(copy: &Path, words: &[&str]) -> anyhow::Result<()> {
    // A process of its own: settings of the outer build are not those of the copy.
    let mut cargo = crate::cargo();
    cargo.current_dir(copy).args(["package", "--workspace", "--quiet", "--target-dir", "target"]);
    for own in OWN {
        cargo.arg("--exclude").arg(format!("heapr-{own}"));
    }
    crate::run(cargo.args(words))
}

/// Makes each crate of the copy one that can stand alone.
fn complete(copy: &Path, version: &str) -> anyhow::Result<()> {
    let workspace = read(&copy.join("Cargo.toml"))?;
    let crates = copy.join("crates");
    sources_of_agent(&crates, &workspace)?;
    write(&copy.join("Cargo.toml"), with_versions(&workspace, version).as_bytes())?;
    for entry in fs::read_dir(&crates).context("crates")? {
        let entry = entry?;
        if OWN.iter().all(|own| entry.file_name() != *own) {
            let manifest = entry.path().join("Cargo.toml");
            // Tests stay here, and crates ask for one another in theirs.
            let text = without(&read(&manifest)?, "[dev-dependencies").replace("publish = false\n", "");
            write(&manifest, text.as_bytes())?;
        }
    }
    // An installed crate is built by its own profile, not by that of a workspace.
    let manifest = crates.join("heapr/Cargo.toml");
    write(&manifest, format!("{}\n{}", read(&manifest)?, release_profile(&workspace)?).as_bytes())?;
    fs::copy(copy.join("README.md"), crates.join("heapr/README.md")).context("README.md")?;
    copy_folder(&copy.join("ui/dist"), &crates.join("server/page"))
}

/// Puts the sources of the agent into the crate that builds it.
fn sources_of_agent(crates: &Path, workspace: &str) -> anyhow::Result<()> {
    let into = crates.join("session/agent-sources");
    fs::create_dir_all(&into).context("agent-sources")?;
    let members = AGENT.map(|name| format!("\"crates/{name}\"")).join(", ");
    ensure!(workspace.contains(MEMBERS), "Cargo.toml has other members than {MEMBERS}");
    let workspace = workspace
        .replace(MEMBERS, &format!("members = [{members}]"))
        .replace("default-members = [\"crates/heapr\"]\n", "");
    write(&into.join(PACKED), without(&workspace, "[profile.dev").as_bytes())?;
    fs::copy(crates.with_file_name("Cargo.lock"), into.join("Cargo.lock")).context("Cargo.lock")?;
    for name in AGENT {
        let own = into.join("crates").join(name);
        copy_folder(&crates.join(name).join("src"), &own.join("src"))?;
        let manifest = read(&crates.join(name).join("Cargo.toml"))?;
        write(&own.join(PACKED), without(&manifest, "[dev-dependencies").as_bytes())?;
    }
    Ok(())
}

/// Members of the workspace, as `Cargo.toml` has them.
const MEMBERS: &str = "members = [\"crates/*\", \"xtask\"]";
/// Name of a manifest within a package: Cargo leaves out folders that have a `Cargo.toml`.
const PACKED: &str = "Cargo.toml.packed";

/// Returns the workspace's manifest with the version beside each path of a crate, as a registry
/// asks for. Crates of other versions do not fit together.
fn with_versions(workspace: &str, version: &str) -> String {
    let line = |line: &str| match line.strip_suffix("\" }") {
        Some(begin)
            if line.contains("{ path = \"crates/")
                && OWN.iter().all(|own| !begin.ends_with(&format!("/{own}"))) =>
        {
            format!("{begin}\", version = \"={version}\" }}\n")
        }
        _ => format!("{line}\n"),
    };
    workspace.replace(MEMBERS, "members = [\"crates/*\"]").lines().map(line).collect()
}

/// Returns a manifest without the sections whose title begins so.
fn without(manifest: &str, title: &str) -> String {
    let mut is_kept = true;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_kept = !line.starts_with(title);
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns the profile of a release in the workspace's manifest.
fn release_profile(workspace: &str) -> anyhow::Result<String> {
    let begin = workspace.find("[profile.release]").context("Cargo.toml has no [profile.release]")?;
    let profile = workspace[begin..].split("\n[profile.agent]").next().unwrap_or_default();
    // The lines above the next table are its comment.
    let mut lines: Vec<&str> = profile.lines().collect();
    while lines.last().is_some_and(|line| line.is_empty() || line.starts_with('#')) {
        lines.pop();
    }
    Ok(lines.join("\n") + "\n")
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

#[test]
fn a_packed_crate_names_versions_and_no_crate_for_tests() {
    let workspace = read(&crate::root().join("Cargo.toml")).unwrap();
    let with = with_versions(&workspace, "1.2.3");
    assert!(with.contains("heapr-wire = { path = \"crates/wire\", version = \"=1.2.3\" }\n"), "{with}");
    assert!(with.contains("heapr-testkit = { path = \"crates/testkit\" }\n") && !with.contains("\"xtask\""));
    let agent = read(&crate::root().join("crates/agent/Cargo.toml")).unwrap();
    let agent = without(&agent, "[dev-dependencies");
    assert!(
        !agent.contains("testkit") && agent.contains("heapr-ring") && agent.contains("[features]"),
        "{agent}"
    );
    let profile = release_profile(&workspace).unwrap();
    assert!(
        profile.starts_with("[profile.release]\n")
            && profile.contains("tungstenite")
            && !profile.contains("agent")
    );
}
