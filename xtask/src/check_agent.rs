//! Checks what the built agent exports to the target and imports from it.

use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use heapr_wire::{CALLED, EXPORTED_COUNT};

/// Exports of the agent besides the functions of [`heapr_wire::CALLED`]: the other entry points
/// that it replaces.
const EXPORTS: &[&str] = &[
    "mmap64",
    // Facts about the agent for an injector.
    "heapr_injection",
    // Called by programs with pools of their own, if it exists: heapr_heap.h.
    "heapr_heap_free",
    // Unloaded code must not be mistaken for what is loaded at its address next.
    "dlclose",
    // JIT code is unwound by the tables that the program registers for it.
    "__deregister_frame",
    "__deregister_frame_info",
    "__deregister_frame_info_bases",
    "__register_frame",
    "__register_frame_info",
    "__register_frame_info_bases",
    "__register_frame_info_table",
    "__register_frame_info_table_bases",
    "__register_frame_table",
    // Libraries that are bound past the agent: their bindings are redirected to it.
    "dlmopen",
    "dlopen",
    // The agent has a key of thread-local values, and gives it up when the program needs the last
    // one.
    "pthread_key_create",
    "tss_create",
    // A program started with an environment of its own making is followed: these functions add what
    // the loader needs.
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fexecve",
    "posix_spawn",
    "posix_spawnp",
    // A program that forbids itself what the agent does must not be killed for it.
    "prctl",
    "syscall",
    // Memory that the program locks must not include the agent's.
    "mlockall",
    // AddressSanitizer's runtime asks whether its library may come second.
    "__asan_default_options",
];
/// Everything that the agent may import from the target. The function allocates nothing and sets no
/// errno, and is called only where code is seen for the first time.
const IMPORTS: &[&str] = &["dl_iterate_phdr"];
/// Weak symbols that the agent checks for and never calls.
const WEAK_IMPORTS: &[&str] = &["__asan_init", "__hwasan_init", "__msan_init", "__tsan_init", "_r_debug"];

/// Checks the given file, or the agent that heapr embeds, freshly built.
pub(crate) fn run(file: Option<&str>) -> anyhow::Result<()> {
    let agent = file.map_or_else(|| agent_of("heapr-session"), |file| Ok(file.into()))?;
    let names = |options: &[&str]| -> anyhow::Result<Vec<String>> {
        let text = crate::output_of(Command::new("nm").args(options).arg(&agent))?;
        let last = |line: &str| {
            line.split_whitespace().next_back().map(|name| name.split('@').next().unwrap_or(name).to_owned())
        };
        Ok(text.lines().filter_map(last).collect())
    };
    let mut breaches = Vec::new();
    let exports = names(&["-D", "--defined-only"])?;
    let expected = [&CALLED[..EXPORTED_COUNT], EXPORTS].concat();
    for name in exports.iter().filter(|name| !expected.contains(&name.as_str())) {
        breaches.push(format!("exports {name}"));
    }
    for name in expected.iter().filter(|name| !exports.iter().any(|export| export == *name)) {
        breaches.push(format!("does not export {name}"));
    }
    let is_allowed = |name: &str| IMPORTS.contains(&name) || WEAK_IMPORTS.contains(&name);
    for name in names(&["-D", "--undefined-only"])?.iter().filter(|name| !is_allowed(name)) {
        breaches.push(format!("imports {name}"));
    }
    for name in names(&["-C", "--defined-only"])?.iter().filter(|name| name.contains("core::panicking")) {
        breaches.push(format!("links {name}"));
    }
    breaches.extend(crate::agent_code::breaches(&agent)?);
    if !breaches.is_empty() {
        bail!("{}:\n  {}", agent.display(), breaches.join("\n  "));
    }
    println!("check-agent: {} keeps the lists", agent.display());
    Ok(())
}

/// Builds heapr with its agent, and returns the path of the agent's file.
pub(crate) fn built_agent() -> anyhow::Result<PathBuf> {
    agent_of("heapr")
}

/// Builds a package that embeds the agent, and returns the path of the agent's file.
fn agent_of(package: &str) -> anyhow::Result<PathBuf> {
    crate::run(crate::cargo().args(["build", "--release", "--quiet", "--package", package]))?;
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let mut folders = vec![target_folder()?.join("release/build")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == "libheapr_agent.so") {
                let time = path.metadata()?.modified()?;
                if newest.as_ref().is_none_or(|(newest, _)| time > *newest) {
                    newest = Some((time, path));
                }
            }
        }
    }
    Ok(newest.context("no libheapr_agent.so was built")?.1)
}

/// Returns the folder in which cargo builds.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    let text = crate::output_of(crate::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata")?;
    Ok(metadata["target_directory"].as_str().context("target_directory")?.into())
}
