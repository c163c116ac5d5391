//! Makes a release (`cargo xtask release VERSION`): version, changelog, commit, tag, packages, and
//! a script that publishes them, for whoever has the registries' keys.
//!
//! `--dry-run` does all of it on a copy of the last commit, and leaves the sources as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

/// Settings of git in the copy of a dry run: nothing of this user's asks, signs or runs there.
const OF_A_COPY: [(&str, &str); 5] = [
    ("user.name", "dry run"),
    ("user.email", "dry-run@localhost"),
    ("commit.gpgsign", "false"),
    ("tag.gpgsign", "false"),
    ("core.hooksPath", "/dev/null"),
];

/// End of the changelog's title of a version that is being worked on.
const UNRELEASED: &str = ", not released yet";

/// Runs the command.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (mut version, mut binary, mut is_dry) = (None, None, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--dry-run" => is_dry = true,
            "--binary" => binary = Some(PathBuf::from(words.next().context("--binary FILE")?)),
            word if version.is_none() && !word.starts_with('-') => version = Some(word),
            other => bail!("release knows no {other}: VERSION [--dry-run] [--binary FILE]"),
        }
    }
    let version = version.context("release VERSION [--dry-run] [--binary FILE]")?;
    ensure!(numbers(version).is_some(), "{version} is no version: three numbers, as in 1.2.3");
    ensure!(is_dry || binary.is_none(), "--binary is for --dry-run: a release is built from its own sources");
    let root = crate::root();
    if is_dry {
        let copy = tempfile::tempdir().context("a folder for the copy")?;
        let sources = copy.path().join("heapr");
        git(&root, &["clone", "--quiet", "--shared", ".", &sources.display().to_string()])?;
        for (key, value) in OF_A_COPY {
            git(&sources, &["config", key, value])?;
        }
        prepare(&sources, version, true)?;
        return packages(&root, version, Some(binary.as_deref()));
    }
    let changed = git(&root, &["status", "--porcelain", "--untracked-files=no"])?;
    ensure!(changed.is_empty(), "files are changed and not committed:\n{changed}");
    prepare(&root, version, false)?;
    packages(&root, version, None)?;
    println!("release: look at the commit and the packages, then: target/dist/publish");
    Ok(())
}

/// Writes the version and the changelog, commits both, and sets the tag. `is_dry`: a changelog in
/// which all is released is left as it is, so that the check of a release itself succeeds.
fn prepare(sources: &Path, version: &str, is_dry: bool) -> anyhow::Result<()> {
    let tag = format!("v{version}");
    ensure!(git(sources, &["tag", "--list", &tag])?.is_empty(), "there is a tag {tag} already");
    let manifest = sources.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).context("Cargo.toml")?;
    let present = version_in(&text).context("Cargo.toml has no version of the workspace")?.to_owned();
    ensure!(numbers(version) >= numbers(&present), "{version} is older than {present}, which Cargo.toml has");
    fs::write(&manifest, with_version(&text, &present, version)).context("Cargo.toml")?;
    // Cargo.lock names the crates of the workspace, too.
    let mut update = crate::cargo();
    crate::run(update.current_dir(sources).args(["update", "--workspace", "--offline", "--quiet"]))?;
    let changelog = sources.join("CHANGELOG.md");
    let text = fs::read_to_string(&changelog).context("CHANGELOG.md")?;
    if is_dry && title(&text).is_some_and(|title| !title.ends_with(UNRELEASED)) {
        println!("release: CHANGELOG.md stays as it is: nothing in it is \"…{UNRELEASED}\"");
    } else {
        let today = crate::output_of(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
        fs::write(&changelog, released(&text, version, today.trim())?).context("CHANGELOG.md")?;
    }
    let message = format!("release: {version}");
    git(sources, &["commit", "--quiet", "--all", "--message", &message])?;
    git(sources, &["tag", "--annotate", &tag, "--message", &message])?;
    println!("release: {}", git(sources, &["show", "--stat", "--oneline", "HEAD"])?.trim());
    Ok(())
}

/// Makes the packages and the script that publishes them. `dry`: the program of a dry run, if it
/// has one, from which the package is made that needs nothing else.
fn packages(root: &Path, version: &str, dry: Option<Option<&Path>>) -> anyhow::Result<()> {
    // A process of its own: this one may have been built before the version was written.
    let mut dist = crate::cargo();
    dist.current_dir(root).args(["xtask", "dist"]);
    match dry {
        None => crate::run(dist.args(["--check", "--twice"]))?,
        Some(Some(binary)) => {
            crate::run(dist.arg("--binary").arg(binary).args(["--only", "tar,crates", "--twice"]))?
        }
        Some(None) => println!("release: no packages: a dry run makes them from --binary FILE"),
    }
    let folder = root.join("target/dist");
    fs::create_dir_all(&folder).context("target/dist")?;
    let script = folder.join("publish");
    fs::write(&script, publishing(version)).context("target/dist/publish")?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).context("target/dist/publish")?;
    crate::run(Command::new("sh").arg("-n").arg(&script))?;
    println!("release: {}", script.display());
    Ok(())
}

/// Returns the script that publishes a release.
fn publishing(version: &str) -> String {
    format!(
        r#"#!/bin/sh
# Publishes heapr {version}: the tag, the crates, the wheel, the npm package and the image. Run it where the packages are.
#   TWINE_PASSWORD         token of PyPI         NODE_AUTH_TOKEN   token of npm
#   CARGO_REGISTRY_TOKEN   token of crates.io
#   IMAGE                  name of the image, as in registry.example/heapr (podman login before)
set -eu
cd "$(dirname "$0")"
: "${{TWINE_PASSWORD:?}}" "${{NODE_AUTH_TOKEN:?}}" "${{CARGO_REGISTRY_TOKEN:?}}" "${{IMAGE:?}}"
for program in cargo git podman npm python3 sha256sum; do
    command -v "$program" >/dev/null || {{ echo "there is no $program" >&2; exit 1; }}
done
sha256sum --check --quiet SHA256SUMS
grep -q '"version": "{version}"' manifest.json || {{ echo "manifest.json is of another version" >&2; exit 1; }}
commit=$(git -C ../.. rev-parse --short=12 'v{version}^{{commit}}')
grep -q "\"commit\": \"$commit\"" manifest.json || {{ echo "the packages are not of the tag v{version}" >&2; exit 1; }}
for file in heapr-{version}-*.whl heapr-{version}.tgz; do
    grep -q "  $file\$" SHA256SUMS || {{ echo "$file is not in SHA256SUMS" >&2; exit 1; }}
done
git -C ../.. push --follow-tags origin HEAD
(cd stage/crates && cargo publish --workspace --no-verify --exclude heapr-testkit --exclude heapr-capi)
python3 -m venv publishing && publishing/bin/pip install --quiet twine
TWINE_USERNAME=__token__ publishing/bin/twine upload --non-interactive --skip-existing heapr-{version}-*.whl
npm config set //registry.npmjs.org/:_authToken '${{NODE_AUTH_TOKEN}}' --location project
npm publish --access public heapr-{version}.tgz
podman build --tag "$IMAGE:{version}" --file ../../packaging/Containerfile .
podman push "$IMAGE:{version}"
"#
    )
}

/// Returns the version of the workspace in the text of `Cargo.toml`.
pub(crate) fn version_in(text: &str) -> Option<&str> {
    let workspace = text.split_once("[workspace.package]")?.1;
    let section = workspace.split("\n[").next()?;
    section.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
}

fn with_version(text: &str, present: &str, version: &str) -> String {
    text.replacen(&format!("\nversion = \"{present}\"\n"), &format!("\nversion = \"{version}\"\n"), 1)
}

/// Returns the first title of a section of the changelog.
fn title(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("## "))
}

/// Returns the changelog with the title of a release in place of that of the work.
///
/// # Errors
/// Nothing stands under the title, or no version is being worked on.
fn released(text: &str, version: &str, date: &str) -> anyhow::Result<String> {
    let title = title(text).context("CHANGELOG.md has no section")?;
    ensure!(
        title.ends_with(UNRELEASED),
        "CHANGELOG.md begins with {title}: a section \"## …{UNRELEASED}\" is missing"
    );
    let section =
        text.split_once(title).map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or_default());
    ensure!(section.lines().any(|line| line.starts_with("* ")), "CHANGELOG.md says nothing of {version}");
    Ok(text.replacen(title, &format!("## {version}, {date}"), 1))
}

/// Returns the three numbers of a version.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

fn git(folder: &Path, words: &[&str]) -> anyhow::Result<String> {
    crate::output_of(Command::new("git").arg("-C").arg(folder).args(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_its_version_and_its_section_of_the_changelog() {
        let manifest = "[workspace]\n[workspace.package]\nversion = \"0.1.0\"\n[workspace.dependencies]\nversion = \"9\"\n";
        assert_eq!(version_in(manifest), Some("0.1.0"));
        assert_eq!(version_in(&with_version(manifest, "0.1.0", "0.2.0")), Some("0.2.0"));
        let log = "# Changelog\n\n## 0.2.0, not released yet\n\n* new\n\n## 0.1.0, 2026-01-01\n";
        let released = |log| released(log, "0.2.0", "2026-02-02");
        assert!(released(log).unwrap().contains("## 0.2.0, 2026-02-02\n\n* new\n"));
        assert!(released("## 0.1.0, 2026-01-01\n* old\n").is_err());
        assert!(released("## 0.2.0, not released yet\n\n## 0.1.0\n* old\n").is_err());
        assert!(
            numbers("1.2.3") > numbers("1.2.2") && numbers("1.2").is_none() && numbers("v1.2.3").is_none()
        );
    }

    #[test]
    fn the_version_of_the_workspace_is_that_of_all_packages() {
        assert_eq!(crate::version().unwrap(), env!("CARGO_PKG_VERSION"));
        let node = fs::read_to_string(crate::root().join("node/package.json")).unwrap();
        assert!(node.contains("\"version\": \"0.0.0\""), "the version is written when it is packed");
    }

    #[test]
    fn the_script_that_publishes_is_one_of_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("publish");
        fs::write(&script, publishing("1.2.3")).unwrap();
        assert!(Command::new("sh").arg("-n").arg(&script).status().unwrap().success());
        let outcome =
            Command::new("sh").arg(&script).env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(!outcome.status.success() && said.contains("TWINE_PASSWORD"), "{said}");
        assert!(publishing("1.2.3").contains("'v1.2.3^{commit}'"));
    }
}
