//! Checks the rules of ARCHITECTURE.md that a compiler does not enforce. They are dependency
//! directions, no circles among the modules of a crate, where `unsafe` is, and which crate prints.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::comment_width;
use crate::function_shape;
use crate::known_names;
use crate::module_circles;
use crate::processor_words;
use crate::sources::{code_of, rust_files};
use crate::ui_circles;
use crate::unused_sources;

/// Allowed dependencies of each crate inside the workspace.
const ALLOWED: &[(&str, &[&str])] = &[
    ("known", &[]),
    ("wire", &["known"]),
    ("ring", &["wire"]),
    ("agent", &["known", "wire", "ring"]),
    ("testkit", &[]),
    ("test", &[]),
    ("files", &[]),
    ("proc", &["files", "known"]),
    ("glibc_heap", &["known", "proc"]),
    ("resident", &["known", "proc", "glibc_heap", "table", "trace"]),
    ("unwind", &["known"]),
    ("inject", &["known", "wire", "proc", "glibc_heap", "unwind"]),
    ("allocators", &["known", "wire", "symbols"]),
    ("trace", &["files", "table"]),
    ("ledger", &["trace"]),
    ("native", &["graph", "known", "proc", "trace"]),
    ("managed", &["known", "native", "proc", "table", "v8"]),
    (
        "session",
        &[
            "files",
            "known",
            "wire",
            "ring",
            "proc",
            "glibc_heap",
            "inject",
            "allocators",
            "symbols",
            "trace",
            "ledger",
            "native",
            "managed",
            "resident",
        ],
    ),
    ("capi", &["session"]),
    ("symbols", &["files", "known", "unwind"]),
    ("query", &["known", "trace", "ledger", "symbols", "table"]),
    ("explore", &["query", "trace", "ledger", "symbols"]),
    ("table", &[]),
    ("filters", &["files", "query", "trace", "table"]),
    ("export", &["query", "trace", "table", "filters"]),
    ("import", &["files", "trace", "ledger", "symbols", "v8"]),
    ("findings", &["known", "query", "trace", "table", "v8"]),
    ("graph", &[]),
    ("v8", &["files", "graph", "table"]),
    ("mcp", &["files", "filters", "proc", "query", "table"]),
    ("incident", &["files", "proc", "table"]),
    ("inspector", &["known", "proc", "table"]),
    (
        "server",
        &[
            "files", "query", "explore", "findings", "table", "filters", "export", "import", "graph", "v8",
            "symbols", "trace", "session", "resident",
        ],
    ),
];
/// Crates that must not need the standard library.
const NO_STD: &[&str] = &["known", "wire", "ring", "agent"];
/// Crates that may hold unsafe code; in `symbols` one file may.
const UNSAFE: &[&str] = &["agent", "ring", "inject", "capi"];
/// Only crate that prints or ends the process.
const PRINTS: &str = "heapr";

/// Checks all rules and lists every breach.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut breaches = Vec::new();
    let dependencies = workspace_dependencies()?;
    for (name, needs) in &dependencies {
        let Some(short) = short_name(name) else { continue };
        let Some((_, allowed)) = ALLOWED.iter().find(|(allowed, _)| *allowed == short) else {
            breaches.push(format!("{name} is not in the table of allowed dependencies"));
            continue;
        };
        for need in needs {
            let is_inside = short_name(need).or((need == "heapr").then(|| "heapr".to_owned()));
            match is_inside {
                Some(inside) if !allowed.contains(&inside.as_str()) => {
                    breaches.push(format!("{name} must not depend on {need}"))
                }
                None if NO_STD.contains(&short.as_str()) => {
                    breaches.push(format!("{name} must not depend on {need}: no_std"))
                }
                _ => {}
            }
        }
        check_sources(&short, &mut breaches)?;
    }
    check_sources("heapr", &mut breaches)?;
    for folder in ["crates", "xtask"] {
        breaches.extend(comment_width::too_wide(&crate::root().join(folder))?);
    }
    check_shapes(&mut breaches)?;
    breaches.extend(processor_words::breaches(&crate::root())?);
    breaches.extend(known_names::breaches(&crate::root())?);
    let circles = ui_circles::circles(&crate::root().join("ui/src"))?;
    breaches.extend(circles.iter().map(|circle| format!("ui/src: modules import one another: {circle}")));
    check_modules(dependencies.keys().map(String::as_str), &mut breaches)?;
    if !breaches.is_empty() {
        bail!("the architecture's rules are broken:\n  {}", breaches.join("\n  "));
    }
    println!("check-deps: {} crates keep the rules", dependencies.len());
    Ok(())
}

/// Returns the folder and the Rust name of one of heapr's crates: its name without the prefix.
fn short_name(package: &str) -> Option<String> {
    package.strip_prefix("heapr-").map(|short| short.replace('-', "_"))
}

/// Returns package name -> names of its normal and build dependencies.
fn workspace_dependencies() -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let text = crate::output_of(crate::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata")?;
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().context("packages")? {
        let needs = package["dependencies"].as_array().context("dependencies")?.iter();
        let needs = needs.filter(|need| need["kind"].as_str() != Some("dev"));
        let needs = needs.filter_map(|need| need["name"].as_str().map(str::to_owned)).collect();
        found.insert(package["name"].as_str().context("name")?.to_owned(), needs);
    }
    Ok(found)
}

/// Finds modules of one crate that import one another, and files that are no module.
fn check_modules<'a>(names: impl Iterator<Item = &'a str>, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    for name in names {
        let short = short_name(name).unwrap_or_else(|| name.to_owned());
        let folder = if short == "xtask" { "xtask/src".to_owned() } else { format!("crates/{short}/src") };
        for circle in module_circles::circles(&crate::root().join(&folder))? {
            breaches.push(format!("{folder}: modules import one another: {circle}"));
        }
        let unused = unused_sources::unused(&crate::root().join(&folder))?;
        breaches.extend(unused.iter().map(|file| format!("{file}: no module names this file")));
    }
    Ok(())
}

/// Finds empty files, and functions of unhandy shape outside of tests.
fn check_shapes(breaches: &mut Vec<String>) -> anyhow::Result<()> {
    let root = crate::root();
    for path in [rust_files(&root.join("crates"))?, rust_files(&root.join("xtask"))?].concat() {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        if text.trim().is_empty() {
            breaches.push(format!("{shown} is empty"));
        }
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (line, name, what) in function_shape::breaches(code).into_iter().filter(|_| !is_test(&path)) {
            breaches.push(format!("{shown}:{line}: {name} {what}"));
        }
    }
    Ok(())
}

fn check_sources(short: &str, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    let root = crate::root();
    let folder = root.join("crates").join(short).join("src");
    let mut unsafe_files = Vec::new();
    for path in rust_files(&folder)? {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let code = code_of(&text);
        let is_top = path.parent() == Some(&folder)
            && path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
        if is_top {
            check_attributes(short, &code, &shown, breaches);
        }
        if has_word(&code, "unsafe") {
            unsafe_files.push(shown.clone());
        }
        if short != PRINTS && short != "testkit" && !is_test(&path) {
            let prints = ["println!", "print!", "eprintln!", "eprint!", "process::exit("];
            for call in prints.iter().filter(|call| code.contains(*call)) {
                breaches.push(format!("{shown}: {call}: only the command line prints or exits"));
            }
        }
    }
    let limit = match short {
        short if UNSAFE.contains(&short) => usize::MAX,
        "symbols" => 1,
        _ => 0,
    };
    if unsafe_files.len() > limit {
        breaches.push(format!("unsafe code in {}", unsafe_files.join(", ")));
    }
    Ok(())
}

fn check_attributes(short: &str, code: &str, shown: &str, breaches: &mut Vec<String>) {
    if NO_STD.contains(&short) && !code.contains("no_std") {
        breaches.push(format!("{shown} is not no_std"));
    }
    let forbids = if short == "symbols" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
    let may = UNSAFE.contains(&short);
    if !may && !code.contains(forbids) && !code.contains("#![forbid(unsafe_code)]") {
        breaches.push(format!("{shown} lacks {forbids}"));
    }
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

fn has_word(code: &str, word: &str) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    code.match_indices(word).any(|(at, _)| {
        !is_letter(code[..at].chars().next_back()) && !is_letter(code[at + word.len()..].chars().next())
    })
}
